// All SQL on tls_report_due, and what reports read of tls_result. None of it belongs to an organization.
import type { SessionCount } from "../../mail/tls-report/write-report.ts";
import type { Query } from "../../platform/database/db.ts";

/**
 * Makes a day's reports due, once, one for each domain that mail went to: spread over `spread_s` from `at` on, always alike for a
 * domain. Reads the day's part of the primary key of tls_result.
 */
export function planReports(db: Query, { day, at, spread_s }: { day: string; at: Date; spread_s: number }) {
  return db.execute(
    `with due as (
     select $1::date, d.domain, $2::timestamptz + abs(hashtextextended(d.domain, 0) % $3) * interval '1 second'
       from (select distinct domain from tls_result where day = $1::date) d
      where not exists (select from tls_report_due where day = $1::date))
     insert into tls_report_due (day, domain, next_at) select * from due
     on conflict do nothing`,
    [day, at, spread_s],
  );
}

export type DueReport = { day: string; domain: string; attempts: number; urls: string[] | null };

/** Takes reports that are due; others may take them again from `lease_until` on. Index: tls_report_due_next. */
export function claimReports(db: Query, { at, lease_until, limit }: { at: Date; lease_until: Date; limit: number }) {
  return db.query<DueReport>(
    `update tls_report_due set next_at = $2, attempts = attempts + 1
      where (day, domain) in (select day, domain from tls_report_due
                               where next_at <= $1 order by next_at limit $3 for update skip locked)
      returning day, domain, attempts, urls`,
    [at, lease_until, limit],
  );
}

/** The day's counts of a domain, successes first, then the most frequent failures. Index: tls_result_pkey. */
export function countsOf(db: Query, { day, domain }: Pick<DueReport, "day" | "domain">, limit: number) {
  return db.query<SessionCount>(
    `select t.policy_type, t.policy_domain, t.policy_strings, r.result, r.mx_host, r.mx_ip, r.source_ip, r.sessions, r.detail
       from tls_result r join tls_policy_text t using (policy_hash)
      where r.day = $1::date and r.domain = $2
      order by r.result = 'success' desc, r.sessions desc, r.mx_host, r.mx_ip limit $3`,
    [day, domain, limit],
  );
}

type Next = { next_at: Date | null; urls: string[] | null };

/** When it is to be tried again, or that it is over (null), and where it is still to be posted. */
export function setReport(db: Query, { day, domain }: Pick<DueReport, "day" | "domain">, { next_at, urls }: Next) {
  return db.execute("update tls_report_due set next_at = $3, urls = $4 where day = $1::date and domain = $2", [
    day,
    domain,
    next_at,
    urls,
  ]);
}

/** Bounded: the rest next time. */
export function dropOldReports(db: Query, before: string, limit: number) {
  return db.execute(
    "delete from tls_report_due where ctid = any(array(select ctid from tls_report_due where day < $1::date limit $2))",
    [before, limit],
  );
}
