// Numbers of transactions, by which one sees what is still under way. On Citus each server counts its own, and a function that stands in an
// INSERT, UPDATE or DELETE is called by the coordinator, which keeps none of the rows. A SELECT from a table is handed on whole, so the
// numbers are asked for in one and given to the statements that write them.
import type { Query, Tx } from "../db.ts";

/** One row of whichever server keeps the tables. */
const THERE = "(select count(*) from (select 1 from day_partitioned limit 1) as one) as kept";

/** The number of this transaction (xid8) where its rows are written. */
export async function ownNumber(tx: Tx): Promise<string> {
  const [row] = await tx.query<{ number: string }>(`select pg_current_xact_id()::text as number from ${THERE}`);
  return (row as { number: string }).number;
}

/** All transactions with lower numbers (xid8) have ended where the rows are. */
export async function oldestNumber(db: Query): Promise<string> {
  const [row] = await db.query<{ number: string }>(
    `select pg_snapshot_xmin(pg_current_snapshot())::text as number from ${THERE}`,
  );
  return (row as { number: string }).number;
}
