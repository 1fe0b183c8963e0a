// SQL of the looks that operators asked for, and of what the database says of itself.
import type { Query } from "../platform/database/db.ts";
import type { Check } from "./check.ts";

export type Look = { machine: string; at: Date; asked_by: string; checks: Check[] };

export function keepLook(db: Query, { machine, at, asked_by, checks }: Look) {
  return db.execute(
    `insert into health_look (machine, at, asked_by, checks) values ($1, $2, $3, $4)
     on conflict (machine) do update set at = excluded.at, asked_by = excluded.asked_by, checks = excluded.checks`,
    [machine, at, asked_by, JSON.stringify(checks)],
  );
}

/** The newest first. */
export function listLooks(db: Query, limit: number) {
  return db.query<Look>("select machine, at, asked_by, checks from health_look order by at desc limit $1", [limit]);
}

export function describeDatabase(db: Query) {
  return db.query<{ version: string; bytes: number; started_at: Date }>(
    `select current_setting('server_version') as version, pg_database_size(current_database())::float8 as bytes,
            pg_postmaster_start_time() as started_at`,
  );
}
