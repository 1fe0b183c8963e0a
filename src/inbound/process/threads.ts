// Which conversation a mail belongs to, over received and sent mail, by In-Reply-To and References (RFC 5322 §3.6.4). A
// thread's id follows from the Message-ID at its root, so two mails of one conversation find the same id also when they
// are processed at the same moment or in the wrong order.
import { createHash } from "node:crypto";
import { headerValues, splitMessage } from "../../mail/mime/parse-head.ts";
import { answeredMax } from "../../mail/mime/parsed-mail.ts";
import { uuidText } from "../../mail/token-bytes.ts";
import { coalesceByOrg, type Found, type OrgKey } from "../../platform/fair/coalesce.ts";
import type { World } from "../../platform/world.ts";
import { findHead, findSentByMessageId } from "../../sending/sending.ts";
import * as queries from "../queries.ts";

export type ThreadHeaders = {
  message_id: string | null;
  /** The ids of In-Reply-To. */
  answered: readonly string[];
  references: readonly string[];
};
export type Thread = { id: string; matched_email_id: string | null };
export type FindThread = (orgId: string, headers: ThreadHeaders, fallback: string) => Promise<Thread>;

/** The nearest ancestors tell most; a long list is cut. */
const ANCESTORS_MAX = 20;
const HEAD_OCTETS = 16_384;
/** Our own mails whose heads are read for one mail: a conversation rarely has more of them in a row. */
const HEADS_MAX = 5;
const LEVELS_MAX = 3;

type Find = (orgId: string, id: string) => Promise<string | undefined>;
type LookUps = { findReceived: Find; findSent: Find; readAnswered(orgId: string, emailId: string): Promise<Answered> };
/** What one of our mails answered, nearest first, and the first of its conversation as far as it says. */
type Answered = { ids: string[]; root: string | null };

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
  const lookUps = { findReceived, findSent, readAnswered: answeredReader(world) };
  return async (orgId, headers, fallback) => {
    const ancestors = ancestorsOf(headers);
    if (ancestors.length === 0) {
      return { id: threadId(orgId, headers.message_id ?? fallback), matched_email_id: null };
    }
    const found = await followBack(lookUps, orgId, { ids: ancestors, root: rootOf(headers) ?? "" });
    return { id: found.thread ?? threadId(orgId, found.root), matched_email_id: found.matched };
  };
}

function lookUp(load: (keys: OrgKey[]) => Promise<Found<string>[]>) {
  return coalesceByOrg<string>({ keys_max: 1_000, lanes: 2, load });
}

/** Nearest first. Message-IDs with NUL do not reach the database. */
function ancestorsOf({ answered, references }: Omit<ThreadHeaders, "message_id">): string[] {
  const all = [...answered, ...[...references].reverse()];
  return [...new Set(all)].filter((id) => !id.includes("\0")).slice(0, ANCESTORS_MAX);
}

function rootOf({ answered, references }: Omit<ThreadHeaders, "message_id">): string | null {
  return references[0] ?? answered[0] ?? null;
}

/** `thread`: that of the nearest ancestor received; `root`: the first id of the conversation as far as heads tell. */
type Followed = { thread: string | null; root: string; matched: string | null };

/**
 * Looks for a received ancestor, and behind our own mails also among what those answered: a client that names only its
 * parent, which is ours, belongs where the mail is that we answered.
 */
async function followBack(
  { findReceived, findSent, readAnswered }: LookUps,
  orgId: string,
  first: { ids: string[]; root: string },
): Promise<Followed> {
  const seen = new Set(first.ids);
  let { ids, root } = first;
  let headsLeft = HEADS_MAX;
  let matched: string | null = null;
  for (let level = 1; ids.length > 0; level += 1) {
    const [received, sent] = await Promise.all([
      Promise.all(ids.map((id) => findReceived(orgId, id))),
      Promise.all(ids.map((id) => findSent(orgId, id))),
    ]);
    if (level === 1) matched = sent.find((id) => id !== undefined) ?? null;
    const thread = received.find((id) => id !== undefined);
    if (thread !== undefined) return { thread, root, matched };
    const ours = ids.flatMap((id, at) => (sent[at] === undefined ? [] : [{ id, email_id: sent[at] as string }]));
    // The one at the root tells where the conversation began, however far back it is.
    const read = ours.filter(({ id }, at) => at < headsLeft - 1 || id === root).slice(0, headsLeft);
    if (level === LEVELS_MAX || read.length === 0) break;
    headsLeft -= read.length;
    const answered = await Promise.all(read.map(({ email_id }) => readAnswered(orgId, email_id)));
    root = answered[read.findIndex(({ id }) => id === root)]?.root ?? root;
    ids = [...new Set(answered.flatMap((one) => one.ids))].filter((id) => !seen.has(id)).slice(0, ANCESTORS_MAX);
    for (const id of ids) seen.add(id);
  }
  return { thread: null, root, matched };
}

function answeredReader(world: Pick<World, "db">) {
  return async (orgId: string, emailId: string): Promise<Answered> => {
    const [stored] = await findHead(world.db, orgId, emailId, HEAD_OCTETS);
    if (!stored?.head) return { ids: [], root: null };
    const { headers } = splitMessage(stored.head);
    const idsOf = (name: string) =>
      headerValues(headers, name)
        .join(" ")
        .match(/<[^<>\s]{1,998}>/g) ?? [];
    const named = { answered: idsOf("in-reply-to").slice(0, answeredMax), references: idsOf("references") };
    return { ids: ancestorsOf(named), root: rootOf(named) };
  };
}

/** RFC 9562 §5.8: a UUID of our own making, from the organization and the root. */
function threadId(orgId: string, root: string): string {
  const bytes = createHash("sha256").update(`${orgId} ${root}`).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return uuidText(bytes.toString("hex"));
}
