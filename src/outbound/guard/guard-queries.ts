// SQL on sending_guard, the one row that tells a restored or copied database from the one that mail was sent from.
import type { Query } from "../../platform/database/db.ts";

export type Guard = {
  id: string;
  /** What a version before this one noted. */
  identity: string;
  database_identity: string | null;
  beats: number;
  paused_at: Date | null;
  reason: string | null;
  sent_at: Date | null;
  host_name: string | null;
  recovered_to: string | null;
  base_urls: string[];
  ignored_urls: string[];
};

/** The cluster: the same after a restart, a promotion and a recovery, another one after initdb. */
export function findCluster(db: Query) {
  return db.query<{ cluster: string }>("select system_identifier::text as cluster from pg_control_system()");
}

/** What in this cluster is this database and no other: a restored dump made the table again, under another oid. */
export function findOids(db: Query) {
  return db.query<{ database: string; relation: string }>(
    `select oid::text as database, 'sending_guard'::regclass::oid::text as relation
       from pg_database where datname = current_database()`,
  );
}

/** Where a recovery was asked to end, which stays among the settings; '' where none was. */
export function findRecoveryTarget(db: Query) {
  return db.query<{ recovered_to: string }>(
    `select coalesce(string_agg(name || '=' || setting, ' ' order by name), '') as recovered_to from pg_settings
      where name in ('recovery_target', 'recovery_target_lsn', 'recovery_target_name', 'recovery_target_time',
                     'recovery_target_xid') and setting <> ''`,
  );
}

/** Whom a question reaches: another value in every other server and database, and after a restart. Null: nobody sends. */
export function findInstance(db: Query) {
  return db.query<{ id: string; instance: string }>(
    `select g.id, pg_postmaster_start_time()::text || '/' || d.oid as instance
       from sending_guard g, pg_database d where d.datname = current_database() and g.paused_at is null`,
  );
}

/** The row, made by the first that asks. `identity` is for versions before this one, which begin under any. */
export async function ensureGuard(db: Query, identity: string): Promise<Guard> {
  await db.execute(
    "insert into sending_guard (identity, database_identity) values ('unknown', $1) on conflict do nothing",
    [identity],
  );
  return (await findGuard(db)) as Guard;
}

/** The row; null in a database that nobody sent from. */
export async function findGuard(db: Query): Promise<Guard | null> {
  const [guard] = await db.query<Guard>(
    `select id, identity, database_identity, beats, paused_at, reason, sent_at, host_name, recovered_to, base_urls,
            ignored_urls
       from sending_guard`,
  );
  return guard ?? null;
}

/** Under its new identity, so that everybody who looks sees the pause and not another restore. */
export function pause(
  db: Query,
  { id, identity, reason, other }: { id: string; identity: string; reason: string; other: string | null },
) {
  return db.execute(
    `with t as (select statement_timestamp() as at)
     update sending_guard
        set database_identity = $2, reason = $3, other_url = coalesce($4, other_url), paused_at = coalesce(paused_at, t.at)
       from t where id = $1`,
    [id, identity, reason, other],
  );
}

/** What it is known by from now on, noted by one that may send from it. */
export function note(
  db: Query,
  seen: { id: string; identity: string; host_name: string; recovered_to: string; base_url: string },
) {
  return db.execute(
    `update sending_guard
        set database_identity = $2, host_name = $3, recovered_to = $4,
            base_urls = case when $5 = any(base_urls) then base_urls else (array_prepend($5, base_urls))[:8] end
      where id = $1 and paused_at is null
        and (database_identity, host_name, recovered_to, $5 = any(base_urls)) is distinct from ($2, $3, $4, true)`,
    [seen.id, seen.identity, seen.host_name, seen.recovered_to, seen.base_url],
  );
}

/**
 * Goes on, `leap` beats ahead: whatever other machines have noted of the lost future lies behind. The operator has the last
 * word on another database that was found: where it was, nobody asks any more.
 */
export function resume(db: Query, leap: number) {
  return db.execute(
    `update sending_guard set paused_at = null, reason = null, sent_at = null, host_name = null, recovered_to = null,
            base_urls = '{}', ignored_urls = array_remove(ignored_urls || other_url, null), other_url = null,
            beats = beats + $1
      where paused_at is not null`,
    [leap],
  );
}

/** One further; no row where the database is another one, went back behind `seen`, or is paused. */
export function beat(db: Query, seen: Pick<Guard, "id" | "beats">, hasSent: boolean) {
  return db.query<{ beats: number }>(
    `with t as (select statement_timestamp() as at)
     update sending_guard set beats = beats + 1, sent_at = case when $3::boolean then t.at else sent_at end
       from t where id = $1 and beats >= $2 and paused_at is null
      returning beats`,
    [seen.id, seen.beats, hasSent],
  );
}
