// Which conversation a mail belongs to, over received and sent mail, by In-Reply-To and References (RFC 5322 §3.6.4). A
// thread's id follows from the Message-ID at its root, so two mails of one conversation find the same id also when they
// are processed at the same moment or in the wrong order.
import { createHash } from "node:crypto";
import { headerValues, splitMessage } from "../mail/mime/parse-head.ts";
import { uuidText } from "../mail/token-bytes.ts";
import { coalesceByOrg, type Found, type OrgKey } from "../platform/coalesce.ts";
import type { World } from "../platform/world.ts";
import { findHead, findSentByMessageId } from "../sending/sending.ts";
import * as queries from "./queries.ts";

export type ThreadHeaders = { message_id: string | null; in_reply_to: string | null; references: readonly string[] };
export type Thread = { id: string; matched_email_id: string | null };
export type FindThread = (orgId: string, headers: ThreadHeaders, fallback: string) => Promise<Thread>;

/** The nearest ancestors tell most; a long list is cut. */
const ANCESTORS_MAX = 20;
const HEAD_OCTETS = 16_384;

/** A look-up of threads: many mails per round trip. `fallback` stands for a mail without a Message-ID. */
export function threadFinder(world: Pick<World, "db">): FindThread {
  const findReceived = lookUp(async (keys) => {
    const wanted = keys.map(({ org_id, key }) => ({ org_id, message_id: key }));
    const rows = await queries.findThreads(world.db, wanted);
    return rows.map((row) => [row.org_id, row.message_id, row.thread_id]);
  });
  const findSent = lookUp(async (keys) => {
    const bare = keys.map(({ org_id, key }) => ({ org_id, message_id: key.slice(1, -1) }));
    const rows = await findSentByMessageId(world.db, bare);
    return rows.map((row) => [row.org_id, `<${row.message_id}>`, row.id]);
  });
  return async (orgId, headers, fallback) => {
    const ancestors = ancestorsOf(headers);
    if (ancestors.length === 0) {
      return { id: threadId(orgId, headers.message_id ?? fallback), matched_email_id: null };
    }
    const [received, sent] = await Promise.all([
      Promise.all(ancestors.map((id) => findReceived(orgId, id))),
      Promise.all(ancestors.map((id) => findSent(orgId, id))),
    ]);
    const matched = sent.find((id) => id !== undefined) ?? null;
    const known = received.find((id) => id !== undefined);
    return { id: known ?? threadId(orgId, await rootOf(world, orgId, headers, matched)), matched_email_id: matched };
  };
}

function lookUp(load: (keys: OrgKey[]) => Promise<Found<string>[]>) {
  return coalesceByOrg<string>({ keys_max: 1_000, lanes: 2, load });
}

/** Nearest first. Message-IDs with NUL do not reach the database. */
function ancestorsOf({ in_reply_to, references }: ThreadHeaders): string[] {
  const all = [...(in_reply_to === null ? [] : [in_reply_to]), ...[...references].reverse()];
  return [...new Set(all)].filter((id) => !id.includes("\0")).slice(0, ANCESTORS_MAX);
}

/** The first mail of the conversation as far as the headers tell; a client that names only its parent leads on to that. */
async function rootOf(
  world: Pick<World, "db">,
  orgId: string,
  { in_reply_to, references }: ThreadHeaders,
  matched: string | null,
): Promise<string> {
  const parent = references[0] ?? in_reply_to ?? "";
  if (references.length > 0 || matched === null) return parent;
  const [stored] = await findHead(world.db, orgId, matched, HEAD_OCTETS);
  if (!stored?.head) return parent;
  const { headers } = splitMessage(stored.head);
  const ids = [...headerValues(headers, "references"), ...headerValues(headers, "in-reply-to")].join(" ");
  return /<[^<>\s]{1,998}>/.exec(ids)?.[0] ?? parent;
}

/** RFC 9562 §5.8: a UUID of our own making, from the organization and the root. */
function threadId(orgId: string, root: string): string {
  const bytes = createHash("sha256").update(`${orgId} ${root}`).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return uuidText(bytes.toString("hex"));
}
