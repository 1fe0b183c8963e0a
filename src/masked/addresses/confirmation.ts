// The mail that asks a mailbox's owner for consent, and the signed link in it. The link names organization and
// destination, ends after 7 days, and holds no address. Opening it changes nothing (mail scanners do that); its button does.
import { consentMailsPerDay } from "../../accounts/accounts.ts";
import { isSame, uuidBytes, uuidText } from "../../mail/token-bytes.ts";
import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import type { World } from "../../platform/world.ts";
import { enqueueRaw, type Laned, withLane } from "../../sending/sending.ts";
import { countConfirmations, type DayOfAddress, noteConfirmationSent, takeConfirmation } from "../people-queries.ts";
import { insertTraces } from "../settle/traces.ts";
import type { ConfirmationWorld, DestinationRow, MaskedPorts, Who } from "../types.ts";
import { mailboxDigest, openText } from "./addresses.ts";
import { ensureMaskedKey } from "./service-domain.ts";
import { composeOwnMail } from "./service-mail.ts";

/** A mailbox gets so many on a day, of whichever organizations: nobody is flooded through us. */
export const CONFIRMATIONS_DAY_MAX = 3;
const LINK_MS = 7 * 86_400_000;
const MAC_BYTES = 16;
const CONTEXT = "masked-confirmation";

/** A link's token: organization, destination, end, and a keyed hash over them. */
export function confirmationToken(
  { seal, clock }: Pick<World, "seal" | "clock">,
  { org_id, id }: Pick<DestinationRow, "org_id" | "id">,
): string {
  const bytes = Buffer.alloc(38);
  uuidBytes(org_id).copy(bytes, 0);
  uuidBytes(id).copy(bytes, 16);
  bytes.writeUIntBE(Math.floor((clock.now() + LINK_MS) / 1000), 32, 6);
  const mac = seal.hash(bytes.toString("hex"), CONTEXT).subarray(0, MAC_BYTES);
  return Buffer.concat([bytes, mac]).toString("base64url");
}

/** What a token names; null when it is not ours or its time is over. */
export function readConfirmationToken(
  { seal, clock }: Pick<World, "seal" | "clock">,
  token: string,
): { org_id: string; id: string } | null {
  if (!/^[A-Za-z0-9_-]{72}$/.test(token)) return null;
  const all = Buffer.from(token, "base64url");
  const bytes = all.subarray(0, 38);
  const expected = seal.hash(bytes.toString("hex"), CONTEXT).subarray(0, MAC_BYTES);
  if (!isSame(expected, all.subarray(38)) || bytes.readUIntBE(32, 6) * 1000 < clock.now()) return null;
  return { org_id: uuidText(bytes.toString("hex", 0, 16)), id: uuidText(bytes.toString("hex", 16, 32)) };
}

/** Queues a confirmation mail to each of them while the mailbox and the organization have some left of the day; how many. */
export async function queueConfirmations(
  world: ConfirmationWorld,
  ports: MaskedPorts,
  who: Pick<Who, "org_id" | "plan">,
  rows: readonly DestinationRow[],
): Promise<number> {
  await ensureMaskedKey(world);
  const mails: Ready[] = [];
  for (const row of rows) {
    const email = openText(world, who.org_id, row.sealed);
    const mail = await withLane(ports.findLane, compose(world, row, email));
    mails.push({ row, mail, mailbox: mailboxDigest(world, email) });
  }
  // In one order for all writers: counting locks the mailbox's day.
  mails.sort((a, b) => Buffer.compare(a.mailbox, b.mailbox));
  const queued = await withPartitions(world, () =>
    world.db.asOrg(who.org_id, (tx) => queueAllowed(world, tx, who, mails)),
  );
  if (queued > 0) ports.notify();
  return queued;
}

type Ready = { row: DestinationRow; mail: Laned; mailbox: Buffer };

/** What is left of the organization's day. */
export async function consentMailsLeft(world: ConfirmationWorld, tx: Tx, who: Pick<Who, "org_id" | "plan">) {
  const { digest, day, sent_max } = dayOfOrganization(world, who);
  return Math.max(0, sent_max - (await countConfirmations(tx, digest, day)));
}

/** The organization's own count stands among those of the mailboxes. */
function dayOfOrganization(world: ConfirmationWorld, who: Pick<Who, "org_id" | "plan">): DayOfAddress {
  const digest = world.seal.hash(who.org_id, "consent-mails-of-organization");
  return { digest, day: today(world), sent_max: consentMailsPerDay(who) };
}

function today({ clock }: Pick<World, "clock">): string {
  return new Date(clock.now()).toISOString().slice(0, 10);
}

async function queueAllowed(
  world: ConfirmationWorld,
  tx: Tx,
  who: Pick<Who, "org_id" | "plan">,
  mails: readonly Ready[],
): Promise<number> {
  const at = new Date(world.clock.now());
  const day = today(world);
  const allowed: Ready[] = [];
  for (const ready of mails) {
    const { mailbox: digest, row } = ready;
    if (!(await takeConfirmation(tx, dayOfOrganization(world, who)))) break;
    if (!(await takeConfirmation(tx, { digest, day, sent_max: CONFIRMATIONS_DAY_MAX }))) continue;
    await noteConfirmationSent(tx, row.org_id, row.id, at);
    allowed.push(ready);
  }
  await enqueueRaw(
    tx,
    allowed.map(({ mail }) => mail),
  );
  const traces = allowed.map(({ row: { org_id }, mail: { id } }) => ({ org_id, id, kind: "notice" as const }));
  await insertTraces(world, tx, traces);
  return allowed.length;
}

function compose(world: ConfirmationWorld, row: DestinationRow, email: string) {
  const link = `${world.config.base_url}/masked/confirm/${confirmationToken(world, row)}`;
  return composeOwnMail(world, {
    ...{ org_id: row.org_id, environment: row.environment, from_name: "Masked addresses", to: email },
    ...{ subject: "May masked addresses forward mail to you?", text: confirmationText(link) },
  });
}

function confirmationText(link: string): string {
  return [
    "Somebody, probably you, wants a masked address to forward mail to this mailbox.",
    "",
    "If you agree, open this page within 7 days and confirm:",
    link,
    "",
    "If you do not know about this, do nothing: no mail is forwarded to you without your consent.",
    "",
  ].join("\n");
}
