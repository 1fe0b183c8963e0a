// The clock of one test database, set forward and back: functions of PostgreSQL's own names stand before them in the search
// path and add an offset. Only for sessions that are opened afterwards. What PostgreSQL asks itself, as `current_timestamp`
// and defaults of columns, stays as it is.
import type pg from "pg";

const NAMES = {
  now: "stable",
  statement_timestamp: "stable",
  transaction_timestamp: "stable",
  clock_timestamp: "volatile",
};

export type DatabaseClock = {
  /** How far ahead of the machine's clock it is from now on; may be negative. */
  move(aheadMs: number): Promise<void>;
};

/** Puts the clock into the database of this superuser's session, at an offset of 0. */
export async function databaseClock(client: pg.Client): Promise<DatabaseClock> {
  const { rows } = await client.query<{ name: string }>("select current_database() as name");
  await client.query("create table testing_clock (ahead interval not null)");
  await client.query("insert into testing_clock values ('0')");
  await client.query("grant select on testing_clock to public");
  for (const [own, volatility] of Object.entries(NAMES)) {
    await client.query(
      `create function ${own}() returns timestamptz language sql ${volatility} as
         'select pg_catalog.${own}() + (select ahead from testing_clock)'`,
    );
  }
  await client.query(`alter database "${rows[0]?.name}" set search_path = public, pg_catalog`);
  return {
    move: async (aheadMs) => {
      await client.query("update testing_clock set ahead = make_interval(secs => $1)", [aheadMs / 1000]);
    },
  };
}
