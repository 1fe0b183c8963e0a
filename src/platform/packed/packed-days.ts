// Which UTC days are packed: those that are over, and an hour more. A clock may have been ahead when a day was packed, so
// what is packed of other days is left aside by searches, and taken away by the next round.
import type { Query } from "../database/db.ts";
import { LAST_ID } from "../database/page.ts";
import { uuidFloor } from "../random.ts";

const DAY_MS = 86_400_000;
/** Mail gets its id before it is committed, by the clock of a machine that may be behind. */
const SETTLED_AFTER_MS = 3_600_000;
/** Fewer rows of a day are read as quickly by themselves. */
export const PACKED_ROWS_MIN = 200;

/** A UTC day, and its ids. */
export type Day = { day: string; from_id: string; to_id: string };

export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

export function idsOf(day: string): Day {
  const startMs = Date.parse(day);
  return { day, from_id: uuidFloor(startMs), to_id: uuidFloor(startMs + DAY_MS) };
}

/** The first day that is not packed yet, and the ids from then on. */
export function firstOpenDay(nowMs: number): Day {
  return { ...idsOf(dayOf(nowMs - SETTLED_AFTER_MS)), to_id: LAST_ID };
}

/** Takes away what was packed of days that are not over, by a clock that was ahead. */
export async function unpackOpenDays(db: Query, packed: string, { from_id }: Day): Promise<void> {
  await db.execute(`delete from ${packed} where id >= $1`, [from_id]);
}

/** Days before `before` that have a partition of both tables, the newest first. By itself: Citus joins no catalog with a table that it distributes. */
export async function findPastDays(
  db: Query,
  { table, packed, before }: { table: string; packed: string; before: string },
) {
  const rows = await db.query<{ day: string }>(
    `select to_date(right(c.relname, 8), 'YYYYMMDD') as day
       from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = $1::regclass and to_date(right(c.relname, 8), 'YYYYMMDD') < $3::date
        and to_regclass($2 || '_' || right(c.relname, 8)) is not null
      order by 1 desc`,
    [table, packed, before],
  );
  return rows.map(({ day }) => day);
}
