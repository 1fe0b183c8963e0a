// Which delivery a complaint is about. Providers take addresses out of their reports, so our own token is asked first: in
// the head of the returned message, in the address the report came to, in its return path; then the Message-ID. A token
// was seen only by who got that copy. A Message-ID was seen by all recipients of the message, so with several of them it
// counts only from a reporter who proves who it is: nobody stops another's mail by a report.
import type { ComplaintReport } from "../../mail/arf/types.ts";
import { readToken } from "../../mail/bounce-token.ts";
import { TOKEN_CONTEXT } from "../../outbound/outbound.ts";
import { isUuid } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import { findMessageOwner, findSentDelivery, findSentId, type SentDelivery } from "../../sending/sending.ts";
import type { Mail } from "../types.ts";
import { isProven } from "./report-address.ts";

export type ComplaintPorts = {
  /** The organization that holds a domain. */
  findHolder(domain: string): Promise<{ org_id: string } | undefined>;
};

type FindWorld = Pick<World, "db" | "seal">;
type Named = { message_id: string; position: number };

/** The delivery, or null when none can be found, or none that the report proves. */
export async function findComplained(
  world: FindWorld,
  ports: ComplaintPorts,
  mail: Mail,
  complaint: ComplaintReport,
): Promise<SentDelivery | null> {
  for (const named of tokensOf(world, mail, complaint)) {
    const sent = await findNamed(world, named);
    if (sent) return sent;
  }
  return findByMessageId(world, ports, mail, complaint);
}

function tokensOf({ seal }: FindWorld, { route }: Mail, complaint: ComplaintReport): Named[] {
  const mac = (text: string) => seal.hash(text, TOKEN_CONTEXT);
  const { original, original_mail_from, original_envelope_id, cfbl_feedback_id } = complaint;
  const read = (token: string | null | undefined) => (token ? readToken(token.trim(), mac) : null);
  const isRouted = route.kind === "return_path" || route.kind === "feedback";
  const returnPaths = original.headers.filter(({ name }) => /^(?:return-path|cfbl-address)$/i.test(name));
  return [
    read(original.x_postern_id),
    read(cfbl_feedback_id),
    isRouted ? { message_id: route.message_id, position: route.position } : null,
    ...[original_mail_from, ...returnPaths.map(({ value }) => value)].map((text) => read(tokenIn(text))),
    read(original_envelope_id),
  ].filter((named) => named !== null);
}

function tokenIn(address: string | null): string | undefined {
  return /\b[bf]\+([a-z2-7]{44})@/i.exec(address ?? "")?.[1];
}

async function findNamed({ db }: FindWorld, named: Named): Promise<SentDelivery | null> {
  const [owner] = await findMessageOwner(db, named.message_id, named.position);
  return owner ? findSentDelivery(db, { ...named, org_id: owner.org_id }) : null;
}

async function findByMessageId(
  world: FindWorld,
  ports: ComplaintPorts,
  mail: Mail,
  { original, original_rcpt_to, recipients }: ComplaintReport,
): Promise<SentDelivery | null> {
  const messageId = original.message_id;
  if (messageId === null || messageId.includes("\0")) return null;
  const sent = await findMessage(world, ports, messageId, fromDomain(original.headers));
  if (!sent) return null;
  if (sent.recipients.length === 1) return sent;
  const named = new Set([...original_rcpt_to, ...recipients].map((email) => email.toLowerCase()));
  const [own, another] = sent.recipients.filter(({ email }) => named.has(email.toLowerCase()));
  if (!own || another || !isProven(await mail.examination.verdicts())) return null;
  return { ...sent, position: own.position, email: own.email };
}

/** Our own Message-IDs begin with the e-mail's id; those that came with submitted mail are looked up by their sender. */
async function findMessage(
  { db }: FindWorld,
  ports: ComplaintPorts,
  messageId: string,
  sender: string,
): Promise<SentDelivery | null> {
  const at = messageId.lastIndexOf("@");
  const id = messageId.slice(0, at).toLowerCase();
  const [owner] = isUuid(id) ? await findMessageOwner(db, id) : [];
  const org_id = owner?.org_id ?? (await holderOf(ports, [messageId.slice(at + 1), sender]));
  if (org_id === null) return null;
  const message_id = owner ? id : await findSentId(db, org_id, messageId);
  const sent = message_id === null ? null : await findSentDelivery(db, { org_id, message_id, position: 0 });
  return sent?.message.rfc_message_id === messageId ? sent : null;
}

async function holderOf(ports: ComplaintPorts, domains: string[]): Promise<string | null> {
  for (const domain of domains) {
    const holder = domain === "" ? undefined : await ports.findHolder(domain.toLowerCase());
    if (holder) return holder.org_id;
  }
  return null;
}

function fromDomain(headers: readonly { name: string; value: string }[]): string {
  const from = headers.find(({ name }) => name.toLowerCase() === "from")?.value ?? "";
  return /@([a-z0-9.-]{1,253})/i.exec(from)?.[1] ?? "";
}
