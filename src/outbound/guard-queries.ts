// SQL on sending_guard, the one row that tells a restored database from the one that was backed up.
import type { Query } from "../platform/db.ts";

export type Guard = { identity: string; beats: number; paused_at: Date | null; reason: string | null };

/** Which cluster this is: the same after a restart, another one after a dump was restored or a standby promoted. */
export function findCluster(db: Query) {
  return db.query<{ cluster: string }>(
    "select system_identifier || '/' || timeline_id as cluster from pg_control_system(), pg_control_checkpoint()",
  );
}

/** The row, made by the first that asks. */
export async function ensureGuard(db: Query, identity: string): Promise<Guard> {
  await db.execute("insert into sending_guard (identity) values ($1) on conflict do nothing", [identity]);
  const [guard] = await db.query<Guard>("select identity, beats, paused_at, reason from sending_guard");
  return guard as Guard;
}

/** Under its new identity, so that everybody who looks sees the pause and not another restore. */
export function pause(db: Query, identity: string, reason: string) {
  return db.execute(
    "update sending_guard set identity = $1, reason = $2, paused_at = coalesce(paused_at, clock_timestamp())",
    [identity, reason],
  );
}

/** Goes on, `leap` beats ahead: whatever other machines have noted of the lost future lies behind. */
export function resume(db: Query, leap: number) {
  return db.execute(
    "update sending_guard set paused_at = null, reason = null, beats = beats + $1 where paused_at is not null",
    [leap],
  );
}

export function beat(db: Query) {
  return db.query<{ beats: number }>("update sending_guard set beats = beats + 1 returning beats");
}
