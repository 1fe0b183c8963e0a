// All SQL on stat and stat_reason. Writers add to the shard of their session; readers add the shards up.
import type { Query } from "../platform/database/db.ts";
import { COUNTERS, type Counters, type CountRow, type Figures, type ReasonRow } from "./types.ts";

/** Sessions that write at the same moment meet in one row with a chance of one in this many. Shard 0 is for merging. */
const SHARDS = 8;
const SHARD = `1 + pg_backend_pid() % ${SHARDS}`;

const KEY = "org_id, domain_id, span, starts_at, isp";
const NAMES = COUNTERS.join(", ");
const RAISE = COUNTERS.map((name) => `${name} = s.${name} + excluded.${name}`).join(", ");
const SUMS = COUNTERS.map((name) => `coalesce(sum(${name}), 0) as ${name}`).join(", ");
const BIGINTS = COUNTERS.map((_name, index) => `$${index + 6}::bigint[]`).join(", ");

// Sorted, so that two statements in one shard wait for each other in one order only.
const ADD = `insert into stat as s (${KEY}, shard, ${NAMES})
  select ${KEY}, ${SHARD}, ${NAMES}
    from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::text[], ${BIGINTS}) as u (${KEY}, ${NAMES})
   order by ${KEY}
  on conflict (${KEY}, shard) do update set ${RAISE}`;

/** Raises counters. Index: primary key. 250 rows of one domain and hour are two rows here. */
export function addCounts(tx: Query, rows: CountRow[]) {
  const counters = COUNTERS.map((name) => rows.map((row) => row[name]));
  return tx.execute(ADD, [
    rows.map((row) => row.org_id),
    rows.map((row) => row.domain_id),
    rows.map((row) => row.span),
    rows.map((row) => row.starts_at),
    rows.map((row) => row.isp),
    ...counters,
  ]);
}

/** The columns of `insertSuppressed`'s rows. */
export const SUPPRESSED = { org_id: "uuid", domain_id: "uuid", at: "timestamptz", recipients: "bigint" } as const;

/** Counts recipients left out because they are suppressed; `rows` is a select of SUPPRESSED, here or in a statement of sending. */
export function insertSuppressed(rows: string): string {
  const others = COUNTERS.map((name) => (name === "total_suppressed" ? "sum(r.recipients)" : "0")).join(", ");
  return `insert into stat as s (${KEY}, shard, ${NAMES})
    select r.org_id, r.domain_id, k.span, date_trunc(k.span, r.at, 'UTC'), k.isp, ${SHARD}, ${others}
      from (${rows}) as r cross join (values ('hour', ''), ('day', 'other')) as k (span, isp)
     group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
    on conflict (${KEY}, shard) do update set total_suppressed = s.total_suppressed + excluded.total_suppressed`;
}

const ADD_SUPPRESSED = insertSuppressed(
  "select * from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::bigint[]) as u (org_id, domain_id, at, recipients)",
);

export function addSuppressed(db: Query, rows: { org_id: string; domain_id: string; at: Date; recipients: number }[]) {
  return db.execute(ADD_SUPPRESSED, [
    rows.map((row) => row.org_id),
    rows.map((row) => row.domain_id),
    rows.map((row) => row.at),
    rows.map((row) => row.recipients),
  ]);
}

const REASON_KEY = "org_id, domain_id, starts_at, isp, reason, code";

export function addReasons(tx: Query, rows: ReasonRow[]) {
  return tx.execute(
    `insert into stat_reason as s (${REASON_KEY}, shard, count)
     select ${REASON_KEY}, ${SHARD}, count
       from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::bigint[])
         as u (${REASON_KEY}, count)
      order by ${REASON_KEY}
     on conflict (${REASON_KEY}, shard) do update set count = s.count + excluded.count`,
    [
      rows.map((row) => row.org_id),
      rows.map((row) => row.domain_id),
      rows.map((row) => row.starts_at),
      rows.map((row) => row.isp),
      rows.map((row) => row.reason),
      rows.map((row) => row.code),
      rows.map((row) => row.count),
    ],
  );
}

// Reading: everything by a range of the primary key -----------------------------------------------------------------

type Period = { domain_id: string; from: Date; to: Date };

/** One row an hour or a day; spans without events are missing. */
export function sumBySpan(tx: Query, orgId: string, span: "hour" | "day", { domain_id, from, to }: Period) {
  return tx.query<Counters & { starts_at: Date }>(
    `select starts_at, ${SUMS} from stat
      where org_id = $1 and domain_id = $2 and span = $3 and starts_at >= $4 and starts_at < $5
      group by starts_at order by starts_at`,
    [orgId, domain_id, span, from, to],
  );
}

/** One row a provider, the largest first. */
export function sumByIsp(tx: Query, orgId: string, { domain_id, from, to }: Period) {
  return tx.query<Counters & { isp: string }>(
    `select isp, ${SUMS} from stat
      where org_id = $1 and domain_id = $2 and span = 'day' and starts_at >= $3 and starts_at < $4
      group by isp order by sum(total_sent) desc, isp`,
    [orgId, domain_id, from, to],
  );
}

/** The `perIsp` most frequent reasons of each provider. */
export function topReasons(tx: Query, orgId: string, { domain_id, from, to }: Period, perIsp: number) {
  return tx.query<{ isp: string; reason: string; code: string | null; count: number }>(
    `select isp, reason, nullif(code, '') as code, count
       from (select isp, reason, code, sum(count) as count,
                    row_number() over (partition by isp order by sum(count) desc, reason, code) as place
               from stat_reason
              where org_id = $1 and domain_id = $2 and starts_at >= $3 and starts_at < $4
              group by isp, reason, code) as ranked
      where place <= $5 order by isp, place`,
    [orgId, domain_id, from, to, perIsp],
  );
}

/** All hours of the period in one row. */
export function figures(tx: Query, orgId: string, { domain_id, from, to }: Period) {
  return tx.query<Figures>(
    `select coalesce(sum(total_sent), 0) as sent, coalesce(sum(total_delivered), 0) as delivered,
            coalesce(sum(total_bounced), 0) as bounced, coalesce(sum(total_hard_bounce), 0) as hard_bounced,
            coalesce(sum(total_complaints), 0) as complained
       from stat where org_id = $1 and domain_id = $2 and span = 'hour' and starts_at >= $3 and starts_at < $4`,
    [orgId, domain_id, from, to],
  );
}

// Background -------------------------------------------------------------------------------------------------------

/**
 * Merges up to `limit` rows of spans that began before `before` into shard 0; returns how many rows were left behind.
 * Index: stat_unmerged. One statement: a reader sees the parts or the sum, never both.
 */
export function mergeCounts(db: Query, before: Date, limit: number) {
  return db.execute(
    `with parts as (
       delete from stat where (${KEY}, shard) in (
         select ${KEY}, shard from stat where shard > 0 and starts_at < $1
          order by starts_at limit $2 for update skip locked)
       returning ${KEY}, ${NAMES})
     insert into stat as s (${KEY}, shard, ${NAMES})
     select ${KEY}, 0, ${COUNTERS.map((name) => `sum(${name})`).join(", ")} from parts group by ${KEY} order by ${KEY}
     on conflict (${KEY}, shard) do update set ${RAISE}`,
    [before, limit],
  );
}

/** As mergeCounts. Index: stat_reason_unmerged. */
export function mergeReasons(db: Query, before: Date, limit: number) {
  return db.execute(
    `with parts as (
       delete from stat_reason where (${REASON_KEY}, shard) in (
         select ${REASON_KEY}, shard from stat_reason where shard > 0 and starts_at < $1
          order by starts_at limit $2 for update skip locked)
       returning ${REASON_KEY}, count)
     insert into stat_reason as s (${REASON_KEY}, shard, count)
     select ${REASON_KEY}, 0, sum(count) from parts group by ${REASON_KEY} order by ${REASON_KEY}
     on conflict (${REASON_KEY}, shard) do update set count = s.count + excluded.count`,
    [before, limit],
  );
}

/** Index: stat_age. */
export function purgeCounts(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from stat where (${KEY}, shard) in (
       select ${KEY}, shard from stat where starts_at < $1 order by starts_at limit $2 for update skip locked)`,
    [before, limit],
  );
}

/** Index: stat_reason_age. */
export function purgeReasons(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from stat_reason where (${REASON_KEY}, shard) in (
       select ${REASON_KEY}, shard from stat_reason where starts_at < $1 order by starts_at limit $2 for update skip locked)`,
    [before, limit],
  );
}
