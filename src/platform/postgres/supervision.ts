// One process supervises a server: it holds an advisory lock there, which PostgreSQL frees when its session ends. Here: who
// looks whether that process is still there, and who else uses the server. Not here: what a supervisor does
// (embedded-postgres.ts).
import pg from "pg";

/** "post". The lock is per database, and this one is taken in `postgres`. */
export const SUPERVISOR_LOCK = 0x706f7374;
/** What the sessions of this process are called, and what all our session names begin with. */
const USERS = "postern user ";
export const USER_NAME = `${USERS}${process.pid}`;
export const ANSWER_TIMEOUT_MS = 10_000;

/** True if the server runs although no process supervises or uses it. */
export async function isAbandoned(adminUrl: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: adminUrl, connectionTimeoutMillis: ANSWER_TIMEOUT_MS });
  client.on("error", () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query("select pg_try_advisory_lock($1) as locked", [SUPERVISOR_LOCK]);
    return rows[0].locked && !(await hasOtherUsers(client));
  } catch {
    return false; // it is being stopped
  } finally {
    await client.end().catch(() => undefined);
  }
}

export async function hasOtherUsers(session: pg.Client): Promise<boolean> {
  const { rows } = await session.query(
    "select exists (select from pg_stat_activity where starts_with(application_name, $1) and application_name <> $2) as used",
    [USERS, USER_NAME],
  );
  return rows[0].used;
}

export type SupervisorWatch = {
  /** False as well when the server does not answer. */
  isThere(): Promise<boolean>;
  close(): Promise<void>;
};

/**
 * Looks for the process that supervises a server, over one session that stays open between the looks. `adminUrl`: where
 * the server is now, null when it does not run.
 */
export function watchSupervisor(adminUrl: () => Promise<string | null>): SupervisorWatch {
  let session: pg.Client | null = null;

  async function open(): Promise<pg.Client | null> {
    const url = await adminUrl();
    if (url === null) return null;
    const client = new pg.Client({
      connectionString: url,
      application_name: `postern waits to supervise ${process.pid}`,
      connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
    });
    client.on("error", () => undefined); // the next question fails
    await client.connect().catch(async (error) => {
      await client.end().catch(() => undefined);
      throw error;
    });
    return client;
  }

  async function close(): Promise<void> {
    const last = session;
    session = null;
    await last?.end().catch(() => undefined);
  }

  return {
    async isThere() {
      try {
        session ??= await open();
        if (session === null) return false;
        const { rows } = await session.query(
          "select exists (select from pg_locks where locktype = 'advisory' and objid = $1 and granted) as held",
          [SUPERVISOR_LOCK],
        );
        return rows[0].held;
      } catch {
        await close();
        return false;
      }
    },
    close,
  };
}
