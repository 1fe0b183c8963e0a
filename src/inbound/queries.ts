// SQL on inbound_raw, inbound_email and inbound_queue that moves mail: accept, claim, finish. What people ask for is in
// list-queries.ts.
import { type ArrayWriter, arrayWriter, type ElementType } from "../platform/database/binary-arrays.ts";
import type { Query, Tx } from "../platform/database/db.ts";
import type { Findings, Found, Kind, Route, Status } from "./types.ts";

type Columns = Record<string, ElementType>;

const RAW = {
  org_id: "uuid",
  id: "uuid",
  bytes: "bytea",
  blob_key: "text",
  size: "int",
  envelope_from: "text",
  smtputf8: "bool",
  remote_ip: "text",
  remote_port: "int",
  helo: "text",
  protocol: "text",
  tls: "text",
  received_at: "timestamptz",
} as const;
const EMAIL = {
  org_id: "uuid",
  id: "uuid",
  raw_id: "uuid",
  environment: "text",
  kind: "text",
  route: "text",
  recipient: "text",
  recipient_tag: "text",
  envelope_from: "text",
  domain_id: "uuid",
  alias_id: "uuid",
  received_at: "timestamptz",
  size: "int",
} as const;
const QUEUE = { org_id: "uuid", id: "uuid", raw_id: "uuid", next_attempt_at: "timestamptz", claim_id: "uuid" } as const;

export type RawRow = { [K in keyof typeof RAW]: unknown };
export type EmailInsert = { [K in keyof typeof EMAIL]: unknown };
export type QueueRow = { [K in keyof typeof QUEUE]: unknown };

function unnest(columns: Columns, first: number): string {
  const arrays = Object.values(columns).map((type, index) => `$${first + index}::${type}[]`);
  return `unnest(${arrays.join(", ")}) as u (${Object.keys(columns).join(", ")})`;
}

/** In binary form: whole messages as text would be quoted and read octet by octet. */
function valuesOf(columns: Columns, rows: readonly Record<string, unknown>[], writer: ArrayWriter): Buffer[] {
  return Object.entries(columns).map(([name, type]) =>
    writer.array(
      type,
      rows.map((row) => row[name]),
    ),
  );
}

const rawFirst = 2;
const emailFirst = rawFirst + Object.keys(RAW).length;
const queueFirst = emailFirst + Object.keys(EMAIL).length;
const emailNames = Object.keys(EMAIL);

const ACCEPT = `with r as (
    insert into inbound_raw (${Object.keys(RAW).join(", ")}) select u.* from ${unnest(RAW, rawFirst)} returning 1),
  e as (
    insert into inbound_email (${emailNames.join(", ")}, status)
    select ${emailNames.map((name) => (name === "route" ? "u.route::jsonb" : `u.${name}`)).join(", ")}, 'received'
      from ${unnest(EMAIL, emailFirst)} returning 1)
  insert into inbound_queue (org_id, id, raw_id, next_attempt_at, claim_id, attempts, lease_until)
  select u.*, case when u.claim_id is null then 0 else 1 end,
         case when u.claim_id is null then null else now() + $1::int * interval '1 millisecond' end
    from ${unnest(QUEUE, queueFirst)} returning 1`;

/** A batch of messages with their recipients and places in the queue, in one statement and so in one commit. */
export function acceptMail(
  db: Query,
  rows: { raws: readonly RawRow[]; emails: readonly EmailInsert[]; queue: readonly QueueRow[] },
  leaseMs: number,
) {
  const writer = arrayWriter();
  return db.execute(ACCEPT, [
    leaseMs,
    ...valuesOf(RAW, rows.raws, writer),
    ...valuesOf(EMAIL, rows.emails, writer),
    ...valuesOf(QUEUE, rows.queue, writer),
  ]);
}

/**
 * Settles whether a mail that nobody answered for is there, now and for ever: one that is being written is waited for (its
 * unique key is), and one whose statement has not begun yet will find its key taken and fail as a whole. What stays of it is a
 * row without bytes, until retention. True: the mail is there.
 */
export async function settleMail(
  db: Query,
  { org_id, id, raw_id, received_at }: Pick<EmailInsert, "org_id" | "id" | "raw_id" | "received_at">,
): Promise<boolean> {
  await db.execute(
    `insert into inbound_raw (org_id, id, size, envelope_from, helo, protocol, received_at)
     values ($1, $2, 0, '', '', '', $3) on conflict do nothing`,
    [org_id, raw_id, received_at],
  );
  // Its own statement: it must see what was committed while the first one waited.
  return (await db.query("select 1 from inbound_email where org_id = $1 and id = $2", [org_id, id])).length > 0;
}

export type ClaimedRow = {
  org_id: string;
  id: string;
  raw_id: string;
  attempts: number;
  faults: number;
  claim_id: string;
};

export type Claiming = {
  claim_id: string;
  now: Date;
  lease_ms: number;
  limit: number;
  /** Organizations behind this one, in the order of their ids. */
  after: string;
  /** Organizations whose mail is left where it is. */
  passed_over: readonly string[];
};

/**
 * Takes due mail nobody works on, of one organization after another, so that nobody's backlog stands before another's mail.
 * Index: inbound_queue_free_by_org, one look for each organization that has mail in the queue.
 */
export function claimDue(db: Query, claim: Claiming) {
  const { claim_id, now, lease_ms, limit, after, passed_over } = claim;
  return db.query<ClaimedRow>(
    `with recursive o (org_id) as (
       (select org_id from inbound_queue where claim_id is null and org_id > $5 order by org_id limit 1)
       union all
       select n.org_id from o cross join lateral (
         select q.org_id from inbound_queue q where q.claim_id is null and q.org_id > o.org_id order by q.org_id limit 1) n),
     p as (
       select d.org_id, d.id from o cross join lateral (
         select q.org_id, q.id from inbound_queue q
          where q.org_id = o.org_id and q.claim_id is null and q.next_attempt_at <= $2
          order by q.next_attempt_at limit $4 for update skip locked) d
        where o.org_id <> all($6) limit $4)
     update inbound_queue q
        set claim_id = $1, attempts = q.attempts + 1, lease_until = now() + $3::int * interval '1 millisecond'
       from p
      where q.org_id = p.org_id and q.id = p.id
      returning q.org_id, q.id, q.raw_id, q.attempts, q.faults, q.claim_id`,
    [claim_id, now, lease_ms, limit, after, passed_over],
  );
}

/** Frees what processes left behind that died or stalled. Index: inbound_queue_leased. */
export function freeAbandoned(db: Query) {
  return db.execute(
    `update inbound_queue set claim_id = null where (org_id, id) in (
       select org_id, id from inbound_queue where claim_id is not null and lease_until < now() limit 1000
       for update skip locked)`,
  );
}

/** The claims whose ids are within these bounds. Index: inbound_queue_leased, which has no other rows than claimed ones. */
export function claimsWithin(db: Query, [from, to]: [string, string]) {
  return db.query<{ claim_id: string }>(
    "select distinct claim_id from inbound_queue where claim_id is not null and claim_id between $1 and $2",
    [from, to],
  );
}

/** Frees these claims at once. What a statement of their process still holds is left to its lease. */
export function freeClaims(db: Query, claimIds: string[]) {
  return db.execute(
    `update inbound_queue set claim_id = null where (org_id, id) in (
       select org_id, id from inbound_queue where claim_id is not null and claim_id = any($1::uuid[])
       for update skip locked)`,
    [claimIds],
  );
}

export type Claim = { org_id: string; id: string; claim_id: string };

const CLAIMS = "unnest($1::uuid[], $2::uuid[], $3::uuid[]) as k (org_id, id, claim_id)";
const MINE = "q.org_id = k.org_id and q.id = k.id and q.claim_id = k.claim_id";

function claimValues(claims: readonly Claim[]): unknown[] {
  return [claims.map(({ org_id }) => org_id), claims.map(({ id }) => id), claims.map(({ claim_id }) => claim_id)];
}

export function renewClaims(db: Query, claims: readonly Claim[], leaseMs: number) {
  return db.execute(
    `update inbound_queue q set lease_until = now() + $4::int * interval '1 millisecond' from ${CLAIMS} where ${MINE}`,
    [...claimValues(claims), leaseMs],
  );
}

/** Gives mail back, to be tried again at its time; `faults` are added to those that were its own. */
export function returnClaims(db: Query, claims: readonly Claim[], at: Date, faults = 0) {
  return db.execute(
    `update inbound_queue q set claim_id = null, lease_until = null, next_attempt_at = $4, faults = q.faults + $5
       from ${CLAIMS} where ${MINE}`,
    [...claimValues(claims), at, faults],
  );
}

export function dropClaims(db: Query, claims: readonly Claim[]) {
  return db.execute(`delete from inbound_queue q using ${CLAIMS} where ${MINE}`, claimValues(claims));
}

/** Puts processed mail back into the queue, claimed at once: for a replay or a release. */
export async function requeue(tx: Tx, row: QueueRow, leaseMs: number): Promise<void> {
  await tx.execute(
    `insert into inbound_queue (org_id, id, raw_id, next_attempt_at, claim_id, attempts, lease_until)
     values ($1, $2, $3, $4, $5, 1, now() + $6::int * interval '1 millisecond')`,
    [row.org_id, row.id, row.raw_id, row.next_attempt_at, row.claim_id, leaseMs],
  );
}

/**
 * For how many seconds the mail has waited that was received longest ago and never processed: attempts that fail defer it
 * and do not make it younger. A reply from a masked address may wait for its sender's DNS, and what is done again is old: of
 * these only what is due counts. Of the 1,000 with the oldest ids; a scan of the queue, which is empty but for trouble.
 */
export function oldestWaiting(db: Query, now: Date) {
  return db.query<{ seconds: number }>(
    `select greatest(0, coalesce(max(extract(epoch from $1::timestamptz -
              case when e.processed_at is null and e.kind <> 'reverse' then e.received_at else q.next_attempt_at end)), 0)
            )::float8 as seconds
       from (select org_id, id, next_attempt_at from inbound_queue order by id limit 1000) q
       join inbound_email e on e.org_id = q.org_id and e.id = q.id`,
    [now],
  );
}

export type MailRow = {
  org_id: string;
  id: string;
  raw_id: string;
  environment: "live" | "test";
  kind: Kind;
  route: Route;
  recipient: string;
  envelope_from: string;
  received_at: Date;
  released_at: Date | null;
  processed_at: Date | null;
  rule_ids: string[];
  authentication_results: string | null;
  findings: Findings | null;
  size: number;
  smtputf8: boolean;
  remote_ip: string | null;
  remote_port: number | null;
  helo: string;
  protocol: string;
  tls: string | null;
};

/** Claimed mail with its origin and what was found out before, without its bytes. */
export function loadMail(db: Query, keys: readonly { org_id: string; id: string }[]) {
  return db.query<MailRow>(
    `select e.org_id, e.id, e.raw_id, e.environment, e.kind, e.route, e.recipient, e.envelope_from, e.received_at,
            e.released_at, e.processed_at, e.rule_ids, e.authentication_results, e.findings, e.size,
            r.smtputf8, r.remote_ip, r.remote_port, r.helo, r.protocol, r.tls
       from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
       join inbound_email e on e.org_id = k.org_id and e.id = k.id
       join inbound_raw r on r.org_id = e.org_id and r.id = e.raw_id`,
    [keys.map(({ org_id }) => org_id), keys.map(({ id }) => id)],
  );
}

export type StoredBytes = { org_id: string; id: string; bytes: Buffer | null; blob_key: string | null };

/** Index: inbound_raw_pkey. */
export function loadRaws(db: Query, keys: readonly { org_id: string; id: string }[]) {
  return db.query<StoredBytes>(
    `select r.org_id, r.id, r.bytes, r.blob_key from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
       join inbound_raw r on r.org_id = k.org_id and r.id = k.id`,
    [keys.map(({ org_id }) => org_id), keys.map(({ id }) => id)],
  );
}

export type FinishRow = Found &
  Claim & {
    /** What was found before stays. */
    keeps: boolean;
    status: Status;
    reason: string | null;
    processed_at: Date;
    rule_ids: string[];
    event_ids: string[];
    forward_ids: string[];
  };

const FOUND = {
  message_id: "text",
  from_address: "text",
  subject: "text",
  has_attachments: "bool",
  thread_id: "uuid",
  matched_email_id: "uuid",
  spam_score: "real",
  authentication_results: "text",
  findings: "text",
} as const;
const FINISH = {
  org_id: "uuid",
  id: "uuid",
  claim_id: "uuid",
  keeps: "bool",
  status: "text",
  reason: "text",
  processed_at: "timestamptz",
  ...FOUND,
  rule_ids: "text",
  event_ids: "text",
  forward_ids: "text",
} as const;

const SET = Object.keys(FINISH).filter((name) => !["org_id", "id", "claim_id", "keeps"].includes(name));
/** A replay adds to these; what it decides now replaces the rest. */
const GROWING = new Set(["event_ids", "forward_ids"]);

function setColumn(name: string): string {
  if (name in FOUND) {
    return `${name} = case when u.keeps then e.${name} else u.${name} end`;
  }
  return GROWING.has(name) ? `${name} = e.${name} || u.${name}` : `${name} = u.${name}`;
}

/** What the parameters have as text is made what the columns are here: Citus takes no such conversion where rows are changed. */
const FINISHED = Object.keys(FINISH).map((name) => {
  if (name === "findings") return "u.findings::jsonb";
  return name.endsWith("_ids") ? `u.${name}::uuid[]` : `u.${name}`;
});

/** Writes what became of claimed mail and takes it out of the queue; returns those whose claim still stood. */
export function finishMail(tx: Tx, rows: readonly FinishRow[]) {
  // An array of arrays is no array of lists to PostgreSQL: each list goes as the text of one.
  const flat = rows.map((row) => ({
    ...row,
    findings: row.findings === null ? null : JSON.stringify(row.findings),
    rule_ids: `{${row.rule_ids.join(",")}}`,
    event_ids: `{${row.event_ids.join(",")}}`,
    forward_ids: `{${row.forward_ids.join(",")}}`,
  }));
  return tx.query<{ org_id: string; id: string; claim_id: string }>(
    `with u as materialized (select ${FINISHED.join(", ")} from ${unnest(FINISH, 1)}),
     mine as (
       delete from inbound_queue q using u
        where q.org_id = u.org_id and q.id = u.id and q.claim_id = u.claim_id
        returning u.*)
     update inbound_email e set ${SET.map(setColumn).join(", ")}
       from mine u
      where e.org_id = u.org_id and e.id = u.id
      returning e.org_id, e.id, u.claim_id`,
    valuesOf(FINISH, flat, arrayWriter()),
  );
}

/** Takes claimed mail that is alone out of the queue, and all there is of it; returns what still had its claim. */
export function forgetMail(tx: Tx, claims: readonly Claim[]) {
  return tx.query<Claim>(
    `with mine as (
       delete from inbound_queue q using ${CLAIMS} where ${MINE} returning q.org_id, q.id, q.raw_id, q.claim_id),
     e as (delete from inbound_email e using mine where e.org_id = mine.org_id and e.id = mine.id),
     r as (delete from inbound_raw r using mine where r.org_id = mine.org_id and r.id = mine.raw_id)
     select org_id, id, claim_id from mine`,
    claimValues(claims),
  );
}

// Threads ----------------------------------------------------------------------------------------------------------

/** Mail received earlier, by Message-ID (with angle brackets). Index: inbound_email_by_message_id. */
export function findThreads(db: Query, keys: readonly { org_id: string; message_id: string }[]) {
  return db.query<{ org_id: string; message_id: string; thread_id: string }>(
    `select distinct on (e.org_id, e.message_id) e.org_id, e.message_id, e.thread_id
       from unnest($1::uuid[], $2::text[]) as k (org_id, message_id)
       join inbound_email e on e.org_id = k.org_id and e.message_id = k.message_id and e.thread_id is not null
      order by e.org_id, e.message_id, e.id`,
    [keys.map((key) => key.org_id), keys.map((key) => key.message_id)],
  );
}
