// One question to the database for the operator (`postern sql`), over every organization's rows, which PostgreSQL's own tools see only
// after `set postern.scope = 'system'`. It reads: the transaction is read-only, and a cursor takes nothing but a query.
import type { Db } from "./db.ts";

export type Answer = {
  rows: Record<string, unknown>[];
  /** There are more than are shown. */
  isCut: boolean;
};

const ROWS_MAX = 10_000;
const TIMEOUT_MS = 60_000;

/** At most 10,000 rows, within a minute. Rejects with what PostgreSQL says of the query. */
export async function askDatabase(db: Pick<Db, "transaction">, query: string): Promise<Answer> {
  return db.transaction(async (tx) => {
    await tx.execute("set transaction read only");
    // Those of our connections are for look-ups by keys: a query of people's reads whole tables, and joins them.
    for (const method of ["seqscan", "hashjoin", "mergejoin"]) await tx.execute(`set local enable_${method} = on`);
    await tx.execute(`declare asked no scroll cursor for ${query}`);
    const rows = await tx.query(`fetch ${ROWS_MAX + 1} from asked`);
    return { rows: rows.slice(0, ROWS_MAX), isCut: rows.length > ROWS_MAX };
  }, TIMEOUT_MS);
}

/** A line with the columns' names and one for each row, fields parted by tabs. */
export function answerLines({ rows, isCut }: Answer): string {
  const [first] = rows;
  if (first === undefined) return "(no rows)";
  const lines = [Object.keys(first), ...rows.map((row) => Object.values(row).map(printed))];
  return [...lines.map((cells) => cells.join("\t")), ...(isCut ? [`(more than ${ROWS_MAX} rows)`] : [])].join("\n");
}

function printed(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (value instanceof Date) return value.toISOString();
  const text = Buffer.isBuffer(value)
    ? `\\x${value.toString("hex")}`
    : isRecord(value)
      ? JSON.stringify(value)
      : String(value);
  // Texts of other servers stand in rows: nothing of theirs reaches the terminal as a command.
  return text.replaceAll(/\p{Cc}+/gu, " ");
}

function isRecord(value: unknown): boolean {
  return typeof value === "object";
}
