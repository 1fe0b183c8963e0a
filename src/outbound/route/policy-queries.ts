// All SQL on sts_policy, tls_policy_text and tls_result: what is known of other domains' TLS policies and what came of
// them. None of it belongs to an organization.
import type { Query } from "../../platform/database/db.ts";

export type StsRow = {
  domain: string;
  policy_id: string;
  mode: "enforce" | "testing" | "none";
  mx: string[];
  max_age_s: number;
  fetched_at: Date;
  expires_at: Date;
  refresh_at: Date;
  used_at: Date;
};

const STS_COLUMNS = "domain, policy_id, mode, mx, max_age_s, fetched_at, expires_at, refresh_at, used_at";

/** Index: primary key. Expired ones too: the caller has the clock. */
export function findStsPolicies(db: Query, domains: string[]) {
  return db.query<StsRow>(`select ${STS_COLUMNS} from sts_policy where domain = any($1)`, [domains]);
}

/** Keeps what was fetched, unless something newer is there. */
export function storeStsPolicy(db: Query, row: StsRow) {
  return db.execute(
    `insert into sts_policy as p (${STS_COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (domain) do update
       set policy_id = excluded.policy_id, mode = excluded.mode, mx = excluded.mx, max_age_s = excluded.max_age_s,
           fetched_at = excluded.fetched_at, expires_at = excluded.expires_at, refresh_at = excluded.refresh_at,
           used_at = greatest(p.used_at, excluded.used_at)
     where p.fetched_at <= excluded.fetched_at`,
    [
      row.domain,
      row.policy_id,
      row.mode,
      row.mx,
      row.max_age_s,
      row.fetched_at,
      row.expires_at,
      row.refresh_at,
      row.used_at,
    ],
  );
}

export function noteStsUse(db: Query, domain: string, at: Date) {
  return db.execute("update sts_policy set used_at = $2 where domain = $1 and used_at < $2", [domain, at]);
}

/**
 * Takes policies whose refresh is due, moves that to `lease_until`, and leaves out those that nobody has used since
 * `used_since`. Index: sts_policy_refresh.
 */
export function claimStsRefresh(db: Query, due: { at: Date; lease_until: Date; used_since: Date; limit: number }) {
  return db.query<StsRow>(
    `update sts_policy set refresh_at = $2
      where domain in (select domain from sts_policy
                        where refresh_at <= $1 and expires_at > $1 and used_at > $3
                        order by refresh_at limit $4 for update skip locked)
      returning ${STS_COLUMNS}`,
    [due.at, due.lease_until, due.used_since, due.limit],
  );
}

/** Index: sts_policy_expiry. */
export function dropExpiredSts(db: Query, before: Date, limit: number) {
  return db.execute(
    "delete from sts_policy where domain in (select domain from sts_policy where expires_at < $1 limit $2)",
    [before, limit],
  );
}

// --- results for reports ----------------------------------------------------------------------------------------------

export type PolicyText = {
  policy_hash: Buffer;
  policy_type: string;
  policy_domain: string;
  policy_strings: string[];
  day: string;
};

export function storePolicyTexts(db: Query, texts: PolicyText[]) {
  return db.execute(
    `insert into tls_policy_text as t (policy_hash, policy_type, policy_domain, policy_strings, last_day)
     select u.policy_hash, u.policy_type, u.policy_domain, array(select jsonb_array_elements_text(u.strings::jsonb)),
            u.day
       from unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::date[])
         as u (policy_hash, policy_type, policy_domain, strings, day)
      order by 1
     on conflict (policy_hash) do update set last_day = excluded.last_day where t.last_day < excluded.last_day`,
    [
      texts.map((text) => text.policy_hash),
      texts.map((text) => text.policy_type),
      texts.map((text) => text.policy_domain),
      texts.map((text) => JSON.stringify(text.policy_strings)),
      texts.map((text) => text.day),
    ],
  );
}

export type ResultCount = {
  day: string;
  domain: string;
  policy_hash: Buffer;
  result: string;
  mx_host: string;
  mx_ip: string;
  source_ip: string;
  sessions: number;
  detail: string | null;
};

/** Adds counts; always in key order, so that two processes never wait for each other crosswise. */
export function addTlsResults(db: Query, counts: ResultCount[]) {
  const columns = ["day", "domain", "policy_hash", "result", "mx_host", "mx_ip", "source_ip", "sessions", "detail"];
  return db.execute(
    `insert into tls_result as r (${columns.join(", ")})
     select * from unnest($1::date[], $2::text[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::text[],
                          $8::bigint[], $9::text[]) order by 1, 2, 3, 4, 5, 6, 7
     on conflict (day, domain, policy_hash, result, mx_host, mx_ip, source_ip)
     do update set sessions = r.sessions + excluded.sessions, detail = coalesce(excluded.detail, r.detail)`,
    columns.map((name) => counts.map((count) => count[name as keyof ResultCount])),
  );
}

/** Bounded: 0 rows means that all old ones are gone. */
export function dropOldTlsResults(db: Query, before: string, limit: number) {
  return db.execute(
    `delete from tls_result where ctid = any(array(select ctid from tls_result where day < $1 limit $2))`,
    [before, limit],
  );
}

export function dropOldPolicyTexts(db: Query, before: string, limit: number) {
  return db.execute(
    `delete from tls_policy_text where policy_hash in (select policy_hash from tls_policy_text where last_day < $1 limit $2)`,
    [before, limit],
  );
}
