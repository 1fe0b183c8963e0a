// What forwards and replies have in common: the mail as receiving hands it over, the outcome as it wants it back, and the
// message that is queued. Shapes only match those of receiving, which stands to the right of this feature.

import type { Tx } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import type { RawMessage } from "../../sending/types.ts";
import { type Entry, toActivityRow } from "../activity.ts";
import { MASKED_DOMAIN_ID } from "../addresses/service-domain.ts";
import type { ArrivalWorld } from "../arrive/arrival.ts";
import type { Examined } from "../arrive/parts.ts";
import type { AliasContext, FindContext } from "../lookups.ts";
import type { KnownId } from "../queries.ts";
import type { BuiltReply, ReplyOrder } from "../rewrite/reply.ts";
import type { BuiltForwards, ForwardsOrder } from "../rewrite/write-forwards.ts";
import { insertTraces, type NewTrace, toRows } from "../settle/traces.ts";
import type { AliasRow, MaskedRoute } from "../types.ts";
import { type ConcludedMail, type Counts, concludeMails } from "./conclude-queries.ts";

export type CarryWorld = ArrivalWorld & Pick<World, "blobs">;

export type CarryPorts = {
  findSender(orgId: string, domain: string): Promise<{ id: string; return_path_host: string } | undefined>;
  /** Keeps bytes that are too large for their row; their key, else null. */
  keepIfLarge(owner: { org_id: string; owner_id: string }, bytes: Buffer): Promise<string | null>;
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
  received_at: Date;
  /** Somebody looked at it in quarantine and wants it. */
  released: boolean;
  /** Nobody else's mail and nothing outside the database belongs to it: it can be forgotten at once. */
  alone: boolean;
  examination: Examined & {
    reply(order: ReplyOrder): Promise<BuiltReply | { kind: "failed"; reason: string }>;
    forwards(order: ForwardsOrder): Promise<BuiltForwards | { kind: "failed"; reason: string }>;
  };
};

/** What the list shows of a mail; of one that goes on: no subject, no author. */
const NOTHING_FOUND = {
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
type NothingFound = typeof NOTHING_FOUND;

/** What became of a mail, as receiving records it. */
function outcomeOf<F = NothingFound>(
  status: "delivered" | "failed" | "dropped" | "quarantined",
  reason: string | null,
  more: { found?: F; forwards?: RawMessage[]; also?: (tx: Tx) => Promise<void>; shared?: Shared; forgets?: boolean },
) {
  const found: F | NothingFound = more.found ?? NOTHING_FOUND;
  return { status, reason, events: [], forwards: [], rule_ids: [], ...more, found };
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

/** The alias in whose name mail leaves. */
export type Sender = Pick<AliasRow, "org_id" | "domain" | "domain_id" | "environment">;

/** The row of the queue for a finished message. */
export async function toRaw(
  world: CarryWorld,
  ports: CarryPorts,
  { alias, environment }: { alias: Sender; environment: "live" | "test" },
  outgoing: Outgoing,
): Promise<RawMessage> {
  const { id, message_id, from, recipient, mime } = outgoing;
  const sender =
    alias.domain_id === null
      ? { id: MASKED_DOMAIN_ID, return_path_host: world.config.bounce_host }
      : await ports.findSender(alias.org_id, alias.domain);
  if (!sender) throw new Error("the domain of a masked alias is gone");
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
    blob_key: await ports.keepIfLarge({ org_id: alias.org_id, owner_id: id }, mime),
    created_at: new Date(world.clock.now()),
  };
}

/** A message for the queue, and what is remembered of it. */
export type Leaving = { raw: RawMessage; trace: Omit<NewTrace, "org_id" | "id" | "alias_id"> };

export type Conclusion<F = NothingFound> = {
  status: "delivered" | "failed" | "dropped" | "quarantined";
  reason: string | null;
  entries: readonly Omit<Entry, "org_id" | "alias_id">[];
  counts: Partial<Counts>;
  leaving?: readonly Leaving[];
  /** Message-IDs that both sides know from now on. */
  ids?: readonly KnownId[];
  /** What contacts sent that must come back to them as it was. */
  sent?: ConcludedMail["sent"];
  /** The contact whose mail it is (`received`), or who is written to (`sent`). */
  contact?: ConcludedMail["contact"];
  /** What was found of a mail in quarantine, which its owner looks at. */
  found?: F;
  /** What else commits with it. */
  also?: ((tx: Tx) => Promise<unknown>) | undefined;
};

const NO_COUNTS = { received: 0, forwarded: 0, replied: 0, blocked: 0 };

/**
 * The outcome of a mail: what leaves, with the activity, the counters and the traces, in one transaction. What is in
 * quarantine stays until it is released or deleted, or its retention ends; everything else is forgotten, at once where that can be.
 */
export function conclude<F = NothingFound>(
  world: CarryWorld,
  { alias, mail }: { alias: AliasRow; mail: ArrivedMail },
  end: Conclusion<F>,
) {
  const { entries, counts, leaving = [], ids = [], sent = [], contact = null } = end;
  const { org_id, id: alias_id } = alias;
  const traces: NewTrace[] = leaving.map(({ raw, trace }) => ({ ...trace, org_id, id: raw.id, alias_id }));
  const isOver = end.status !== "quarantined";
  const forgets = isOver && isForgottenAtOnce(mail);
  if (isOver && !forgets) traces.unshift({ org_id, id: mail.id, kind: "received", alias_id });
  const fact: ConcludedMail = {
    org_id,
    alias_id,
    at: new Date(world.clock.now()),
    traces: toRows(world, traces, mail.environment),
    ids,
    sent,
    contact,
    entries: entries.map((entry) => toActivityRow(world, { ...entry, org_id, alias_id })),
    counts: { ...NO_COUNTS, ...counts },
  };
  const forwards = leaving.map(({ raw }) => raw);
  const found = end.found === undefined ? {} : { found: end.found };
  const { also } = end;
  const more = also ? { also: async (tx: Tx) => void (await also(tx)) } : {};
  const shared = { write: concludeMails, fact };
  return outcomeOf<F>(end.status, end.reason, { ...found, ...more, forwards, shared, forgets });
}

/** What somebody would have got in a test can be looked at for an hour. */
function isForgottenAtOnce({ alone, environment }: ArrivedMail): boolean {
  return alone && environment === "live";
}

/**
 * Mail for an alias that was deleted since it was taken: dropped, and nothing of it stays. What somebody released goes back into
 * quarantine as it was: the alias may be restored.
 */
export function gone(world: CarryWorld, mail: ArrivedMail) {
  const { org_id, id } = mail;
  if (mail.released) return { ...outcomeOf("quarantined", "the alias was deleted", {}), found: undefined };
  if (isForgottenAtOnce(mail)) return outcomeOf("dropped", "the alias was deleted", { forgets: true });
  const also = (tx: Tx) => insertTraces(world, tx, [{ org_id, id, kind: "received" }]);
  return outcomeOf("dropped", "the alias was deleted", { also });
}
