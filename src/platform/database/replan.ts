// Plans of prepared statements are made while tables are young and kept while these grow: PostgreSQL makes them again once it
// has analyzed a table, minutes later, and until then a look-up of some keys may read all that came in since (measured: 1.0
// to 2.3 in place of 0.8 to 0.9 ms of statements a masked forward). So each connection drops its plans now and then: often
// at first, once a minute later on.
import type { Pool, PoolClient } from "pg";

const FIRST_MS = 500;
const EVERY_MS_MAX = 60_000;

/** Has the connections of the pool forget their plans at 0.5, 1.5, 3.5 … seconds of age, as they are taken out of it. */
export function replanAsTablesGrow(pool: Pick<Pool, "on">, now: () => number = () => performance.now()): void {
  const due = new WeakMap<PoolClient, { atMs: number; everyMs: number }>();
  pool.on("acquire", (client) => {
    const known = due.get(client) ?? { atMs: now() + FIRST_MS, everyMs: FIRST_MS };
    due.set(client, known);
    if (known.atMs > now()) return;
    known.everyMs = Math.min(EVERY_MS_MAX, 2 * known.everyMs);
    known.atMs = now() + known.everyMs;
    // Statements of one connection go in order: the next one is planned again. A connection that is lost says so itself.
    client.query("discard plans").catch(() => undefined);
  });
}
