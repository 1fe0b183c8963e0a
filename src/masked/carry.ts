// What forwards and replies have in common: the mail as receiving hands it over, the outcome as it wants it back, and the
// message that is queued. Shapes only match those of receiving, which stands to the right of this feature.
import type { BuiltReply, ReplyOrder } from "../mail/masked/reply.ts";
import type { ParsedMail } from "../mail/mime/parsed-mail.ts";
import type { Tx } from "../platform/db.ts";
import type { World } from "../platform/world.ts";
import type { RawMessage } from "../sending/types.ts";
import { type Entry, toActivityRow } from "./activity.ts";
import type { ArrivalWorld, MaskedRoute } from "./arrival.ts";
import { type ConcludedMail, type Counts, concludeMails } from "./conclude-queries.ts";
import type { AliasContext, FindContext } from "./lookups.ts";
import type { KnownId } from "./queries.ts";
import type { Proof } from "./sender-proof.ts";
import { MASKED_DOMAIN_ID } from "./service-domain.ts";
import { insertTraces, type NewTrace, toRows } from "./traces.ts";
import type { AliasRow } from "./types.ts";

export type CarryWorld = ArrivalWorld & Pick<World, "blobs">;

export type CarryPorts = {
  findSender(orgId: string, domain: string): Promise<{ id: string; return_path_host: string } | undefined>;
  /** Keeps what is too large for its row; its key. */
  keepBlob(owner: { org_id: string; owner_id: string }, bytes: Buffer): Promise<string>;
};

export type ArrivedMail = {
  org_id: string;
  id: string;
  environment: "live" | "test";
  route: { kind: string };
  recipient: string;
  envelope: { from: string };
  origin: { remote_ip: string | null; helo: string };
  size: number;
  examination: {
    bytes(): Promise<Buffer>;
    verdicts(): Promise<Proof & { dmarc: { result: string; applied: string | null } }>;
    parsed(): Promise<{ kind: "parsed"; mail: ParsedMail } | { kind: "failed"; reason: string }>;
    reply(order: ReplyOrder): Promise<BuiltReply | { kind: "failed"; reason: string }>;
  };
};

/** What became of a mail, as receiving records it: no subject, no author. */
function outcomeOf(
  status: "delivered" | "failed" | "dropped",
  reason: string | null,
  more: { forwards?: RawMessage[]; also?: (tx: Tx) => Promise<void>; shared?: Shared },
) {
  const found = {
    message_id: null,
    from_address: null,
    subject: null,
    has_attachments: false,
    thread_id: null,
    matched_email_id: null,
    spam_score: null,
    authentication_results: null,
    findings: null,
  };
  return { status, reason, found, events: [], forwards: [], rule_ids: [], ...more };
}

type Shared = { write(tx: Tx, mails: readonly ConcludedMail[]): Promise<void>; fact: ConcludedMail };

export type Context = AliasContext & { route: MaskedRoute };

/** The alias and its destinations as they are now; null when the alias is gone. */
export async function loadContext(find: FindContext, mail: ArrivedMail): Promise<Context | null> {
  const route = mail.route as MaskedRoute;
  const found = await find(mail.org_id, route.detail.alias_id);
  return !found || found.alias.deleted_at !== null ? null : { ...found, route };
}

export type Outgoing = { id: string; message_id: string; from: string; recipient: string; mime: Buffer };

/** The row of the queue for a finished message. */
export async function toRaw(
  world: CarryWorld,
  ports: CarryPorts,
  { alias, environment }: { alias: AliasRow; environment: "live" | "test" },
  outgoing: Outgoing,
): Promise<RawMessage> {
  const { id, message_id, from, recipient, mime } = outgoing;
  const sender =
    alias.domain_id === null
      ? { id: MASKED_DOMAIN_ID, return_path_host: world.config.bounce_host }
      : await ports.findSender(alias.org_id, alias.domain);
  if (!sender) throw new Error("the domain of a masked alias is gone");
  const isLarge = mime.length > world.config.body_inline_bytes_max;
  return {
    org_id: alias.org_id,
    id,
    environment: alias.environment === "test" ? "test" : environment,
    domain_id: sender.id,
    origin: "masked",
    message_id,
    from_address: from,
    from_header: from,
    subject: "",
    metadata: {},
    recipient,
    envelope_from: null,
    return_path_host: sender.return_path_host,
    mime,
    blob_key: isLarge ? await ports.keepBlob({ org_id: alias.org_id, owner_id: id }, mime) : null,
    created_at: new Date(world.clock.now()),
  };
}

/** A message for the queue, and what is remembered of it. */
export type Leaving = { raw: RawMessage; trace: Omit<NewTrace, "org_id" | "id" | "alias_id"> };

export type Conclusion = {
  status: "delivered" | "failed" | "dropped";
  reason: string | null;
  entries: readonly Omit<Entry, "org_id" | "alias_id">[];
  counts: Partial<Counts>;
  leaving?: readonly Leaving[];
  /** Message-IDs that both sides know from now on. */
  ids?: readonly KnownId[];
  /** The contact whose mail it is (`received`), or who is written to (`sent`). */
  contact?: ConcludedMail["contact"];
};

const NO_COUNTS = { received: 0, forwarded: 0, replied: 0, blocked: 0 };

/** The outcome of a mail: what leaves, with the activity, the counters and the traces, in one transaction. */
export function conclude(world: CarryWorld, { alias, mail }: { alias: AliasRow; mail: ArrivedMail }, end: Conclusion) {
  const { entries, counts, leaving = [], ids = [], contact = null } = end;
  const { org_id, id: alias_id } = alias;
  const traces: NewTrace[] = leaving.map(({ raw, trace }) => ({ ...trace, org_id, id: raw.id, alias_id }));
  const fact: ConcludedMail = {
    org_id,
    alias_id,
    at: new Date(world.clock.now()),
    traces: toRows(world, [{ org_id, id: mail.id, kind: "received", alias_id }, ...traces], mail.environment),
    ids,
    contact,
    entries: entries.map((entry) => toActivityRow(world, { ...entry, org_id, alias_id })),
    counts: { ...NO_COUNTS, ...counts },
  };
  const forwards = leaving.map(({ raw }) => raw);
  return outcomeOf(end.status, end.reason, { forwards, shared: { write: concludeMails, fact } });
}

/** Mail for an alias that was deleted since it was taken: dropped, and nothing of it stays. */
export function gone(world: CarryWorld, { org_id, id }: ArrivedMail) {
  const also = (tx: Tx) => insertTraces(world, tx, [{ org_id, id, kind: "received" }]);
  return outcomeOf("dropped", "the alias was deleted", { also });
}

/** The verdicts as an entry shows them. */
export function verdictsOf(proof: Proof) {
  return { spf: proof.spf.result, dkim: proof.dkim.from_aligned ? "pass" : "fail", dmarc: proof.dmarc.result };
}
