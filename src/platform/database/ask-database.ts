// One question to the database for the operator (`postern sql`), over every organization's rows, which PostgreSQL's own tools see only
// after `set postern.scope = 'system'`. It reads: the transaction is read-only and rolled back, and a cursor takes nothing but a query.
import type { Db } from "./db.ts";

export type Answer = {
  /** Names of columns, each its own: repeated ones are numbered (`?column?`, `?column?_2`). */
  columns: string[];
  rows: unknown[][];
  /** True if there are more rows than are shown. */
  isCut: boolean;
};

const ROWS_MAX = 10_000;
const TIMEOUT_MS = 60_000;

/** Codes of PostgreSQL (SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const SYNTAX_ERROR = "42601";
const NOT_SUPPORTED = "0A000";
const READ_ONLY = "25006";
const TIMED_OUT = "57014";
const ONLY_READS = "postern sql only reads, one query at a time: begin it with select, with, values or table";

/** At most 10,000 rows, within a minute. Rejects with a sentence that has what PostgreSQL says of the query. */
export async function askDatabase(db: Pick<Db, "transaction">, query: string): Promise<Answer> {
  return read(db, query).catch((error) => {
    throw isOfServer(error) ? new Error(sentence(error, query), { cause: error }) : error;
  });
}

type OfServer = { code: string; message: string };

/** Only what the server itself says has a severity. */
function isOfServer(error: unknown): error is OfServer {
  const { severity, code } = (error ?? {}) as { severity?: unknown; code?: unknown };
  return severity !== undefined && typeof code === "string";
}

function sentence({ code, message }: OfServer, query: string): string {
  if (code === TIMED_OUT) return `The query took longer than ${TIMEOUT_MS / 1000} seconds and was ended.`;
  const isQuery = /^[\s(]*(select|with|values|table)\b/i.test(query);
  const isChange =
    code === READ_ONLY || (code === NOT_SUPPORTED && /DECLARE/.test(message)) || /multiple commands/.test(message);
  return isChange || (code === SYNTAX_ERROR && !isQuery)
    ? `${ONLY_READS} (${message}).`
    : `PostgreSQL refuses the query: ${message}.`;
}

function read(db: Pick<Db, "transaction">, query: string): Promise<Answer> {
  return db.transaction(async (tx) => {
    await tx.execute("set transaction read only");
    // Those of our connections are for look-ups by keys: a query of people's reads whole tables, and joins them.
    for (const method of ["seqscan", "hashjoin", "mergejoin"]) await tx.execute(`set local enable_${method} = on`);
    await tx.execute(`declare asked no scroll cursor for ${query}`);
    const { columns, rows } = await tx.table(`fetch ${ROWS_MAX + 1} from asked`);
    // A read-only transaction commits what PostgreSQL does not count as writing: settings of the session, large objects (15).
    // Chained, because a commit follows, and PostgreSQL warns of one that ends nothing.
    await tx.execute("rollback and chain");
    return { columns: distinct(columns), rows: rows.slice(0, ROWS_MAX), isCut: rows.length > ROWS_MAX };
  }, TIMEOUT_MS);
}

/** No name twice, where a record with a field for each column would lose all but one. */
function distinct(names: readonly string[]): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    let own = name;
    for (let n = 2; taken.has(own) || (own !== name && names.includes(own)); n += 1) own = `${name}_${n}`;
    taken.add(own);
    return own;
  });
}

/** A line with the columns' names and one for each row, fields parted by tabs. */
export function answerLines({ columns, rows, isCut }: Answer): string {
  const lines = [columns, ...rows].map((cells) => cells.map(printed).join("\t"));
  const rest = rows.length === 0 ? ["(no rows)"] : isCut ? [`(more than ${ROWS_MAX} rows)`] : [];
  return [...lines, ...rest].join("\n");
}

/** For programs: each row with its columns' names. */
export function answerJson({ columns, rows, isCut }: Answer): string {
  const records = rows.map((cells) => Object.fromEntries(columns.map((name, at) => [name, cells[at]])));
  return JSON.stringify({ rows: records, is_cut: isCut });
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
