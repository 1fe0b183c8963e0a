// All SQL on the sums: dmarc_day, dmarc_day_source, and dmarc_week_source, which the statement that adds to days adds to as well.
import type { Query, Tx } from "../platform/database/db.ts";
import { countUpToMax } from "../platform/database/totals.ts";
import type { DayRow, DaySourceRow, SourceRow } from "./types.ts";

/** Adds to the sums of days, in the order of the days, so that two reports never wait for each other in a ring. */
export function addDays(tx: Tx, orgId: string, domainId: string, rows: DayRow[]) {
  return tx.execute(
    `insert into dmarc_day as d (org_id, domain_id, day, reports, total, pass_dkim, pass_spf, aligned, both_aligned,
       disposition_none, disposition_pass, disposition_quarantine, disposition_reject)
     select $1::uuid, $2::uuid, r.* from jsonb_to_recordset($3::jsonb) as r (day date, reports integer, total bigint,
       pass_dkim bigint, pass_spf bigint, aligned bigint, both_aligned bigint, disposition_none bigint,
       disposition_pass bigint, disposition_quarantine bigint, disposition_reject bigint)
     order by r.day
     on conflict (org_id, domain_id, day) do update set
       reports = d.reports + excluded.reports, total = d.total + excluded.total,
       pass_dkim = d.pass_dkim + excluded.pass_dkim, pass_spf = d.pass_spf + excluded.pass_spf,
       aligned = d.aligned + excluded.aligned, both_aligned = d.both_aligned + excluded.both_aligned,
       disposition_none = d.disposition_none + excluded.disposition_none,
       disposition_pass = d.disposition_pass + excluded.disposition_pass,
       disposition_quarantine = d.disposition_quarantine + excluded.disposition_quarantine,
       disposition_reject = d.disposition_reject + excluded.disposition_reject`,
    [orgId, domainId, JSON.stringify(rows)],
  );
}

const merged = (column: string) =>
  `${column} = array(select distinct name from unnest(d.${column} || excluded.${column}) as name order by 1 limit 10)`;

/**
 * One transaction at a time adds to the weeks of a domain, until it ends: two reports of one week may name the same sources in
 * any order, and would wait for each other in a ring. Processes of older versions take the same lock.
 */
export function lockWeeks(tx: Tx, orgId: string, domainId: string) {
  return tx.query("select pg_advisory_xact_lock(1886352239, hashtext($1::text || $2::text))", [orgId, domainId]);
}

const WEEK_SUMS = ["total", "pass_dkim", "pass_spf", "aligned", "forwarded"];
const WEEK_NAMES = ["dkim_domains", "dkim_passed", "spf_domains", "spf_passed", "reporters"];

/** As addDays, by source, and to its weeks; a day's lists of names grow to ten, a week's to twenty. Under lockWeeks. */
export function addSources(tx: Tx, orgId: string, domainId: string, rows: DaySourceRow[]) {
  return tx.execute(
    `with r as materialized (
       select * from jsonb_to_recordset($3::jsonb) as r (day date, source_ip inet, total bigint, pass_dkim bigint,
         pass_spf bigint, aligned bigint, forwarded bigint, dkim_domains text[], dkim_passed text[], spf_domains text[],
         spf_passed text[], reporters text[])),
     added as (
     insert into dmarc_day_source as d (org_id, domain_id, day, source_ip, total, pass_dkim, pass_spf, aligned, forwarded,
       dkim_domains, dkim_passed, spf_domains, spf_passed, reporters)
     select $1::uuid, $2::uuid, r.* from r order by r.day, r.source_ip
     on conflict (org_id, domain_id, day, source_ip) do update set
       total = d.total + excluded.total, pass_dkim = d.pass_dkim + excluded.pass_dkim,
       pass_spf = d.pass_spf + excluded.pass_spf, aligned = d.aligned + excluded.aligned,
       forwarded = d.forwarded + excluded.forwarded,
       ${WEEK_NAMES.map(merged).join(",\n       ")}
     returning d.day, d.source_ip, ${WEEK_NAMES.map((name) => `d.${name}`).join(", ")})
     insert into dmarc_week_source as w (org_id, domain_id, week, source_ip, first_day, last_day, ${[...WEEK_SUMS, ...WEEK_NAMES].join(", ")})
     select $1::uuid, $2::uuid, dmarc_week(a.day), a.source_ip, min(a.day), max(a.day),
            ${WEEK_SUMS.map((sum) => `sum(r.${sum})`).join(", ")},
            ${WEEK_NAMES.map((name) => `dmarc_all_names(a.${name})`).join(", ")}
       from added a join r on r.day = a.day and r.source_ip = a.source_ip group by 3, 4
     on conflict (org_id, domain_id, week, source_ip) do update set
       first_day = least(w.first_day, excluded.first_day), last_day = greatest(w.last_day, excluded.last_day),
       ${WEEK_SUMS.map((sum) => `${sum} = w.${sum} + excluded.${sum}`).join(", ")},
       ${WEEK_NAMES.map((name) => `${name} = dmarc_merge_names(w.${name}, excluded.${name})`).join(",\n       ")}`,
    [orgId, domainId, JSON.stringify(rows)],
  );
}

type Span = { domain_id: string; from: string; to: string };

/** At most 400 rows. Index: primary key. */
export function listDays(tx: Tx, orgId: string, span: Span) {
  return tx.query<DayRow>(
    `select day, reports, total, pass_dkim, pass_spf, aligned, both_aligned, disposition_none, disposition_pass,
       disposition_quarantine, disposition_reject
     from dmarc_day where org_id = $1 and domain_id = $2 and day between $3 and $4 order by day`,
    [orgId, span.domain_id, span.from, span.to],
  );
}

/** A span whose whole weeks are read as such: `week` is the first one's Monday, `after` the one behind the last. */
export type WeekSpan = Span & { week: string; after: string };

/**
 * True if the week of the day has mail on a later day: reporters whose clock is wrong name days to come. Index: primary
 * key.
 */
export async function hasDaysBehind(tx: Tx, orgId: string, domainId: string, day: string): Promise<boolean> {
  const rows = await tx.query(
    `select from dmarc_day where org_id = $1 and domain_id = $2 and day > $3 and day < dmarc_week($3) + 7 limit 1`,
    [orgId, domainId, day],
  );
  return rows.length > 0;
}

const FIGURES = "source_ip, total, pass_dkim, pass_spf, aligned, forwarded";
const NAMES = "source_ip, dkim_domains, dkim_passed, spf_domains, spf_passed, reporters";

/**
 * The rows of a span, $1 to $6: of 400 days at most 57 weeks and twelve days of each source, in place of 400 rows.
 * Indexes: the primary keys, or with `condition` the failed ones.
 */
function partsOf(columns: typeof FIGURES | typeof NAMES, condition = ""): string {
  const day = `select ${columns}, day as first_day, day as last_day from dmarc_day_source
       where org_id = $1 and domain_id = $2 ${condition}`;
  return `(${day} and day between $3 and $5::date - 1
     union all ${day} and day between $6 and $4
     union all select ${columns}, first_day, last_day from dmarc_week_source
       where org_id = $1 and domain_id = $2 ${condition} and week between $5 and $6::date - 7) as part`;
}

const spanned = (orgId: string, { domain_id, from, to, week, after }: WeekSpan) => [
  ...[orgId, domain_id, from, to, week, after],
];

type Figures = Pick<
  SourceRow,
  "source_ip" | "total" | "pass_dkim" | "pass_spf" | "aligned" | "forwarded" | "first_seen" | "last_seen"
>;

/**
 * Most messages first. With `by: "failed"` only weeks, and days at the ends, in which a source had mail without alignment,
 * the most of it first. Measured: docs/operations.md, "Long lists".
 */
export function listSources(
  tx: Tx,
  orgId: string,
  span: WeekSpan,
  page: { by: "total" | "failed"; limit: number; offset: number },
) {
  const [failed, order] =
    page.by === "failed" ? ["and total > aligned", "sum(total) - sum(aligned)"] : ["", "sum(total)"];
  return tx.query<Figures>(
    `select host(source_ip) as source_ip, sum(total) as total, sum(pass_dkim) as pass_dkim, sum(pass_spf) as pass_spf,
       sum(aligned) as aligned, sum(forwarded) as forwarded, min(first_day) as first_seen, max(last_day) as last_seen
     from ${partsOf(FIGURES, failed)}
     group by part.source_ip
     order by ${order} desc, part.source_ip limit $7 offset $8`,
    [...spanned(orgId, span), page.limit, page.offset],
  );
}

export function countSources(tx: Tx, orgId: string, span: WeekSpan) {
  const sources = `(select distinct source_ip from ${partsOf(FIGURES)}) as sources`;
  return countUpToMax(tx, sources, spanned(orgId, span));
}

type NameRow = { source_ip: string } & Pick<
  SourceRow,
  "dkim_domains" | "dkim_passed" | "spf_domains" | "spf_passed" | "reporters"
>;

/** The names seen with some sources, at most 20 of a kind each. */
export function listNames(tx: Tx, orgId: string, span: WeekSpan, sourceIps: string[]) {
  const all = NAMES.split(", ").slice(1);
  return tx.query<NameRow>(
    `select host(source_ip) as source_ip, ${all.map((kind) => `dmarc_all_names(${kind}) as ${kind}`).join(", ")}
     from ${partsOf(NAMES, "and source_ip = any($7::inet[])")} group by part.source_ip`,
    [...spanned(orgId, span), sourceIps],
  );
}

/** Sums of days nobody can ask for any more, and that no upload was added to lately. */
export function purgeDays(db: Query, before: string, limit: number) {
  return db.execute(
    `delete from dmarc_day where (org_id, domain_id, day) in (
       select org_id, domain_id, day from dmarc_day where day < $1 limit $2)`,
    [before, limit],
  );
}

export function purgeDaySources(db: Query, before: string, limit: number) {
  return db.execute(
    `delete from dmarc_day_source where (org_id, domain_id, day, source_ip) in (
       select org_id, domain_id, day, source_ip from dmarc_day_source where day < $1 limit $2)`,
    [before, limit],
  );
}

/** Weeks without mail since. */
export function purgeWeekSources(db: Query, before: string, limit: number) {
  return db.execute(
    `delete from dmarc_week_source where (org_id, domain_id, week, source_ip) in (
       select org_id, domain_id, week, source_ip from dmarc_week_source where week < $1 and last_day < $1 limit $2)`,
    [before, limit],
  );
}
