// The mails that people get of Postern itself: invitations, resets, a new sign-in. They leave where the service's own domain is ready;
// where it is not, links are shown to be handed on, and nobody gets a mail about a sign-in.
import { organizationAccounts, organizationNamed } from "../../accounts/accounts.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import type { Client, Mailer, PersonRow } from "../types.ts";
import { makeMailedReset, makeSignUpLink } from "./links.ts";

type MailWorld = Pick<World, "db" | "clock" | "random" | "config" | "log"> & { mailer: Mailer };
type Invited = { org_id: string; email: string; role: string; link: string; by: Pick<PersonRow, "name" | "email"> };

/** True once it is queued. */
export async function mailInvitation(world: MailWorld, { org_id, email, role, link, by }: Invited): Promise<boolean> {
  const organization = (await organizationAccounts(world, [org_id])).get(org_id)?.name ?? "an organization";
  return send(world, {
    ...{ org_id, to: email, subject: `Join ${organization} on Postern` },
    text: [
      `${by.name ? `${by.name} (${by.email})` : by.email} invites you to ${organization}, with the role “${role}”.`,
      "",
      "Open this page within 7 days:",
      link,
      "",
      "The link works once. If you do not know about this, do nothing.",
      "",
    ],
  });
}

/** Sends a link for a new password to the person with the address, if there is one. */
export async function mailReset(world: MailWorld, email: string): Promise<void> {
  const [person] = await queries.findPersonByEmail(world.db, email.trim().toLowerCase());
  const org_id = person && (await organizationOf(world, person));
  if (!person || !org_id) return;
  const link = await makeMailedReset(world, person);
  await send(world, {
    ...{ org_id, to: person.email, subject: "A new password for Postern" },
    text: [
      "Somebody, probably you, wants to set a new password. Open this page within 24 hours:",
      link,
      "",
      "The link works once. If it was not you, do nothing: your password stays.",
      "",
    ],
  });
}

/** The answer to somebody who signs up: a link, or that the address has an account already. */
export async function mailSignUp(world: MailWorld, email: string): Promise<void> {
  const org_id = await organizationNamed(world, null);
  const [person] = await queries.findPersonByEmail(world.db, email);
  if (person) await send(world, { org_id, to: email, ...accountAlready(world) });
  else await mailSignUpLink(world, { org_id, email, link: await makeSignUpLink(world, email) });
}

/** True once it is queued. */
export function mailSignUpLink(
  world: MailWorld,
  { org_id, email, link }: { org_id: string; email: string; link: string },
): Promise<boolean> {
  return send(world, {
    ...{ org_id, to: email, subject: "Confirm your address for Postern" },
    text: [
      "Somebody, probably you, makes an account with this address. Open this page within 7 days:",
      link,
      "",
      "The link works once. If it was not you, do nothing: nothing is made.",
      "",
    ],
  });
}

function accountAlready({ config }: MailWorld): Pick<Mail, "subject" | "text"> {
  return {
    subject: "You have an account on Postern already",
    text: [
      "Somebody, probably you, wanted to make an account with this address. There is one: sign in with it.",
      `${config.base_url}/sign-in`,
      "",
      "If you do not know the password, ask for a link that sets a new one:",
      `${config.base_url}/reset`,
      "",
      "If it was not you, there is nothing to do.",
      "",
    ],
  };
}

/** Tells the person of a sign-in from where no session of theirs is. */
export async function mailNewSignIn(world: MailWorld, person: PersonRow, { ip, user_agent }: Client): Promise<void> {
  const org_id = await organizationOf(world, person);
  if (org_id === null) return;
  const at = new Date(world.clock.now()).toISOString().replace("T", " ").slice(0, 16);
  await send(world, {
    ...{ org_id, to: person.email, subject: "A new sign-in to Postern" },
    text: [
      "Somebody signed in to your account.",
      "",
      `When: ${at} UTC`,
      `From: ${ip}`,
      `With: ${printable(user_agent) || "unknown"}`,
      "",
      "If it was you, there is nothing to do. If it was not, set a new password and end the other sessions:",
      `${world.config.base_url}/settings/security`,
      "",
    ],
  });
}

async function organizationOf(world: MailWorld, { id }: PersonRow): Promise<string | null> {
  const [first] = await queries.membershipsOf(world.db, id);
  return first?.org_id ?? null;
}

type Mail = { org_id: string; to: string; subject: string; text: string[] };

/** A mail that cannot be queued ends no act of a person. */
async function send(world: MailWorld, { text, ...mail }: Mail): Promise<boolean> {
  try {
    return await world.mailer.send({ ...mail, text: text.join("\n") });
  } catch (err) {
    world.log.warn({ err, subject: mail.subject }, "a mail to a person could not be queued");
    return false;
  }
}

function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, 200);
}
