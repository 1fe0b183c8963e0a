// From a ready-made message that a customer submits over SMTP to everything its e-mail puts into the database: the same
// rules as for the API (assemble.ts), the customer's own structure kept. The bytes have canonical line ends.
import { requireLiveSending } from "../../accounts/accounts.ts";
import { type Account, METADATA_KEYS_MAX } from "../../http/http.ts";
import { formatMailbox } from "../../mail/address.ts";
import { readSubmittedHead, type SubmittedHead } from "../../mail/mime/write/submitted-head.ts";
import { uuidTime } from "../../platform/random.ts";
import { invalid, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { isLonger } from "../../text/is-longer.ts";
import { MESSAGE_BYTES_MAX, TAG_CHARS_MAX, TAGS_MAX } from "../shape.ts";
import type { Prepared, Preparing, SendingDeps, Submitted } from "../types.ts";
import { assemble } from "./assemble.ts";
import { checkLabels, type Recipient, tooLarge } from "./content.ts";
import { readySender } from "./sender.ts";

/**
 * Validates the message and its sender; throws the Refusal to answer with. From, Sender, Resent-From and Resent-Sender
 * must be of domains that the organization may send from.
 */
export async function prepareSubmitted(context: Preparing, account: Account, submitted: Submitted): Promise<Prepared> {
  const { world, deps } = context;
  requireLiveSending(account);
  const head = readHead(submitted.bytes);
  const labels = readLabels(head);
  const { address } = head.from;
  const sender = await readySender(deps, account.org_id, address.domain);
  await checkSenders(deps, account, head);
  const id = world.random.uuid();
  const now_ms = uuidTime(id);
  const rfc_message_id = head.message_id ?? `${id}@${sender.domain}`;
  const mime = finish(world, submitted, head, { id, now_ms, rfc_message_id });
  return assemble(context, account, {
    id,
    now_ms,
    origin: "submission",
    sender,
    rfc_message_id,
    from_address: address.email,
    from_header: formatMailbox({ name: head.from.name, email: address.email }),
    reply_to: head.reply_to,
    subject: head.subject,
    recipients: submitted.recipients.map((recipient) => ({ ...recipient, kind: kindOf(head, recipient.email) })),
    mime,
    template: null,
    ...labels,
    require_tls: false,
    ip_pool: null,
    unsubscribe: null,
    scheduled_at: null,
    expires_at: null,
  });
}

function readHead(bytes: Buffer): SubmittedHead {
  const result = readSubmittedHead(bytes);
  if (result.ok) return result.head;
  if (result.problem === "malformed") throw invalid("message", result.reason);
  throw new Refusal("domain_not_owned", result.reason, { field: "from" });
}

async function checkSenders(deps: SendingDeps, account: Account, { senders }: SubmittedHead): Promise<void> {
  const domains = new Set(senders.map(({ address }) => address.domain));
  for (const domain of domains) await readySender(deps, account.org_id, domain);
}

function readLabels({ tags, metadata }: SubmittedHead): { tags: string[]; metadata: Record<string, unknown> } {
  if (tags.length > TAGS_MAX)
    throw invalid("tags", `there are ${tags.length} X-Service-Tag fields; at most ${TAGS_MAX}`);
  if (tags.some((tag) => tag === "" || isLonger(tag, TAG_CHARS_MAX))) {
    throw invalid("tags", `an X-Service-Tag must have 1 to ${TAG_CHARS_MAX} characters`);
  }
  if (metadata.size > METADATA_KEYS_MAX || metadata.has("")) {
    throw invalid("metadata", `there may be ${METADATA_KEYS_MAX} X-Service-Metadata-<name> fields, each with a name`);
  }
  // Not by assignment: `__proto__` is a name like others.
  const labels = { tags, metadata: Object.fromEntries(metadata) };
  checkLabels(labels);
  return labels;
}

/** RFC 6409 §8.1 and §8.2 let a submission server add Date and Message-ID; RFC 5321 §4.4 wants the trace. */
function finish(
  world: Pick<World, "config">,
  { bytes, protocol }: Submitted,
  head: SubmittedHead,
  made: { id: string; now_ms: number; rfc_message_id: string },
): Buffer {
  const date = new Date(made.now_ms).toUTCString().replace("GMT", "+0000");
  // Deliberate: not where the customer connected from, which is none of the recipient's business.
  let added = `Received: by ${world.config.hostname} (Postern) with ${protocol} id ${made.id};\r\n ${date}\r\n`;
  if (!head.has_date) added += `Date: ${date}\r\n`;
  if (head.message_id === null) added += `Message-ID: <${made.rfc_message_id}>\r\n`;
  const body = bytes.subarray(head.body_offset);
  // Of what the customer wrote: EHLO gave them the limit (RFC 1870 §4), and they know nothing of our fields.
  if (bytes.length > MESSAGE_BYTES_MAX) throw tooLarge();
  return Buffer.concat([Buffer.from(added), ...head.kept, Buffer.from("\r\n"), body, lastLineEnd(body)]);
}

function lastLineEnd(body: Buffer): Buffer {
  return Buffer.from(body.length === 0 || body.at(-1) === 0x0a ? "" : "\r\n");
}

/** Where the message shows the recipient; who is not shown is a blind copy. */
function kindOf(head: SubmittedHead, email: string): Recipient["kind"] {
  const lower = email.toLowerCase();
  if (head.to.has(lower)) return "to";
  return head.cc.has(lower) ? "cc" : "bcc";
}
