import type { World } from "../../src/platform/world.ts";

/** How many statements of this database wait for a lock. */
export async function lockWaits({ db }: Pick<World, "db">): Promise<number> {
  const [row] = await db.query<{ some: number }>(
    "select count(*) as some from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return row?.some ?? 0;
}
