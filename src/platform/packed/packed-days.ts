// SQL that names the days whose rows can be packed. By itself: Citus joins no catalog with a table that it distributes.
import type { Query } from "../database/db.ts";

/** UTC days before `before` that have a partition of both tables, the newest first. */
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
