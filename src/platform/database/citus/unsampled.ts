// Columns with addresses and subjects are not sampled (`set statistics 0`), so that the planner's samples name nobody. Citus makes the
// shards of a day's tables without that word, and again where it moves them: here it is said to the shards themselves.

/** Runs a statement; its rows. */
export type Ask = (text: string, values: readonly unknown[]) => Promise<Record<string, unknown>[]>;

/** A command on a shard runs in a session of its own: the tables must be committed. */
const ON_SHARDS = `
  with leaf as (
    select c.oid::regclass as name, string_agg(format('alter column %I set statistics 0', a.attname), ', ') as how
      from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = $1::regnamespace and c.relispartition and c.relkind = 'r' and right(c.relname, 8) between $2 and $3
       and a.attnum > 0 and not a.attisdropped and a.attstattarget = 0
     group by c.oid)
  select leaf.name::text as name, ran.result
    from leaf cross join lateral run_command_on_shards(leaf.name, 'alter table %s ' || leaf.how) as ran
   where not ran.success`;

/** Says it to the shards of a schema that Citus keeps, of the tables of these days (YYYYMMDD), or of all. */
export async function keepUnsampled(
  ask: Ask,
  { schema, first = "00000000", last = "99999999" }: { schema: string; first?: string; last?: string },
): Promise<void> {
  const [failed] = await ask(ON_SHARDS, [schema, first, last]);
  if (failed) throw new Error(`the samples of ${failed.name} could not be turned off on Citus: ${failed.result}`);
}
