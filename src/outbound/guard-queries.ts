// SQL on sending_guard, the one row that tells a restored database from the one that was backed up.
import type { Query } from "../platform/db.ts";

export type Guard = { id: string; identity: string; beats: number; paused_at: Date | null; reason: string | null };

/** Which cluster this is: the same after a restart, another one after a dump was restored or a standby promoted. */
export function findCluster(db: Query) {
  return db.query<{ cluster: string }>(
    "select system_identifier || '/' || timeline_id as cluster from pg_control_system(), pg_control_checkpoint()",
  );
}

/** The row, made by the first that asks. */
export async function ensureGuard(db: Query, identity: string): Promise<Guard> {
  await db.execute("insert into sending_guard (identity) values ($1) on conflict do nothing", [identity]);
  return (await findGuard(db)) as Guard;
}

/** The row; null in a database that nobody sent from. */
export async function findGuard(db: Query): Promise<Guard | null> {
  const [guard] = await db.query<Guard>("select id, identity, beats, paused_at, reason from sending_guard");
  return guard ?? null;
}

/** Under its new identity, so that everybody who looks sees the pause and not another restore. */
export function pause(db: Query, { id, identity, reason }: { id: string; identity: string; reason: string }) {
  return db.execute(
    `update sending_guard set identity = $2, reason = $3, paused_at = coalesce(paused_at, clock_timestamp())
      where id = $1`,
    [id, identity, reason],
  );
}

/** More of the same identity than an older version noted. */
export function noteIdentity(db: Query, id: string, identity: string) {
  return db.execute("update sending_guard set identity = $2 where id = $1", [id, identity]);
}

/** Goes on, `leap` beats ahead: whatever other machines have noted of the lost future lies behind. */
export function resume(db: Query, leap: number) {
  return db.execute(
    "update sending_guard set paused_at = null, reason = null, beats = beats + $1 where paused_at is not null",
    [leap],
  );
}

/** One further; no row where the database is another one, went back behind `seen`, or is paused. */
export function beat(db: Query, seen: Pick<Guard, "id" | "beats">) {
  return db.query<{ beats: number }>(
    `update sending_guard set beats = beats + 1 where id = $1 and beats >= $2 and paused_at is null
      returning beats`,
    [seen.id, seen.beats],
  );
}
