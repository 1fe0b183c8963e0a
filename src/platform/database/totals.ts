// How many rows a list has. Counting them all costs a scan of them all, so it stops at a number that is documented: exact
// up to there, and above it the answer says that there are at least so many. One way for every list.
import type { Query } from "./db.ts";
import { LAST_ID, type Page } from "./page.ts";

/** Up to so many rows the total of a list is exact. */
export const EXACT_TOTAL_MAX = 100_000;

export type Total = { total: number; total_is_at_least?: true };

/**
 * Counts the rows of `from` ("message m where m.org_id = $1"), at most one above the maximum. 20 to 100 ms for 100,000
 * rows on a busy machine (docs/operations.md, "Long lists").
 */
export async function countUpToMax(db: Query, from: string, values: readonly unknown[]): Promise<Total> {
  const [row] = await db.query<{ counted: number }>(
    `select count(*) as counted from (select 1 from ${from} limit ${EXACT_TOTAL_MAX + 1}) as rows`,
    values,
  );
  return upToMax(row?.counted ?? 0);
}

/** The total of so many rows, counted to at least one above the maximum. */
export function upToMax(counted: number): Total {
  return counted > EXACT_TOTAL_MAX ? { total: EXACT_TOTAL_MAX, total_is_at_least: true } : { total: counted };
}

/**
 * The total of a list of which `rows` rows were read as this page. Where they show the list's end nothing is counted: to find that
 * few rows match took reading all of them, and counting would read them once more.
 */
export function totalOf(rows: number, { limit, offset, below }: Page, count: () => Promise<Total>): Promise<Total> {
  const isEnd = below === LAST_ID && rows < limit && (rows > 0 || offset === 0) && offset + rows <= EXACT_TOTAL_MAX;
  return isEnd ? Promise.resolve({ total: offset + rows }) : count();
}
