// Does the pooler of POSTERN_DATABASE_POOLER answer, and lead to the database of DATABASE_URL? Asked as Postern uses it: in a
// transaction that sets what it needs, without options at the start of the session.
import pg from "pg";
import type { FoundConfig } from "../config.ts";
import { databaseWords } from "../platform/database/database-trouble.ts";
import { beginWith } from "../platform/database/session-settings.ts";
import { type Check, ok, problem } from "./check.ts";

const ANSWER_MS = 5_000;
/** The database itself: its name may be another at the pooler. */
const WHICH = "select oid::text || ' ' || datname as which from pg_database where datname = current_database()";

type PoolerConfig = Pick<FoundConfig, "database_url" | "database_pooler_url">;

/** Nothing where no pooler is set; that the database itself answers is another check's. */
export async function checkPooler({ database_url, database_pooler_url }: PoolerConfig): Promise<Check[]> {
  if (database_pooler_url === null || database_url === null) return [];
  let behind: string;
  try {
    behind = await whichIs(database_pooler_url);
  } catch (error) {
    const says = `The pooler of POSTERN_DATABASE_POOLER ${databaseWords(error)}.`;
    return [problem("database", says, "Check that address and that the pooler runs, or leave the setting out.")];
  }
  const direct = await whichIs(database_url).catch(() => null);
  if (direct === null || direct === behind) return [ok("database", "The pooler leads to it.")];
  const says = "POSTERN_DATABASE_POOLER leads to another database than DATABASE_URL.";
  return [problem("database", says, "Name the same database in both.")];
}

async function whichIs(url: string): Promise<string> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
  });
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query(beginWith([["postern.scope", "system"]]));
    const { rows } = await client.query<{ which: string }>(WHICH);
    await client.query("commit");
    return rows[0]?.which ?? "";
  } finally {
    await client.end().catch(() => undefined);
  }
}
