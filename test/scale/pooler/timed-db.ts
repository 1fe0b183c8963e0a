// A Db that keeps, by what it is for, how long each transaction waited for a connection (of its own pool, and of the pooler's) and
// how long it had it. Over a pooler every statement is a transaction; so it is here.
import { type Db, isUnavailable, type Query, type Tx } from "../../../src/platform/database/db.ts";

export type Kind = "heartbeat" | "leases" | "claim" | "system" | "organization";

export type Times = { done: number; unanswered: number; longest_wait_ms: number; longest_ms: number; held_ms: number };
export type TimesByKind = Record<Kind, Times>;

/** How the statements begin, or what no other one has, of the three by which a node lives. */
const SIGNS: [Kind, RegExp][] = [
  ["heartbeat", /^update node set seen_at/],
  ["leases", /pg_advisory_xact_lock\(1886352238\)/],
  ["claim", /^update delivery d set owner = \$1/],
];

export function noTimes(): TimesByKind {
  const none = (): Times => ({ done: 0, unanswered: 0, longest_wait_ms: 0, longest_ms: 0, held_ms: 0 });
  return { heartbeat: none(), leases: none(), claim: none(), system: none(), organization: none() };
}

/** The same Db, which writes into `times`. */
export function timedDb(db: Db, times: TimesByKind): Db {
  type Run<T> = (work: (tx: Tx) => Promise<T>) => Promise<T>;

  async function timed<T>(usual: Kind, run: Run<T>, work: (tx: Tx) => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    let kind = usual;
    let gotAt: number | null = null;
    const look = (text: string): void => {
      kind = SIGNS.find(([, sign]) => sign.test(text.trimStart()))?.[0] ?? kind;
    };
    try {
      const result = await run((tx) => {
        gotAt = performance.now();
        return work(watched(tx, look));
      });
      times[kind].done += 1;
      return result;
    } catch (error) {
      // What the database refused was answered.
      times[kind][isUnavailable(error) ? "unanswered" : "done"] += 1;
      throw error;
    } finally {
      const endedAt = performance.now();
      const one = times[kind];
      one.longest_wait_ms = Math.max(one.longest_wait_ms, Math.round((gotAt ?? endedAt) - startedAt));
      one.longest_ms = Math.max(one.longest_ms, Math.round(endedAt - startedAt));
      one.held_ms += gotAt === null ? 0 : endedAt - gotAt;
    }
  }

  const asSystem = <T>(text: string, ask: (query: Query) => Promise<T>): Promise<T> => {
    const kind = SIGNS.find(([, sign]) => sign.test(text.trimStart()))?.[0] ?? "system";
    return timed(kind, (work) => db.transaction(work), ask);
  };
  return {
    ...db,
    query: <Row>(text: string, values?: readonly unknown[]) => asSystem(text, (tx) => tx.query<Row>(text, values)),
    execute: (text, values) => asSystem(text, (tx) => tx.execute(text, values)),
    transaction: (work, statementMs) => timed("system", (run) => db.transaction(run, statementMs), work),
    asOrg: (orgId, work) => timed("organization", (run) => db.asOrg(orgId, run), work),
  };
}

function watched(tx: Tx, look: (text: string) => void): Tx {
  return {
    ...tx,
    query(text, values) {
      look(text);
      return tx.query(text, values);
    },
    execute(text, values) {
      look(text);
      return tx.execute(text, values);
    },
  } as Tx;
}

/** Of several nodes together. */
export function addTimes(all: readonly TimesByKind[]): TimesByKind {
  const sum = noTimes();
  for (const times of all) {
    for (const kind of Object.keys(sum) as Kind[]) {
      const [to, from] = [sum[kind], times[kind]];
      to.done += from.done;
      to.unanswered += from.unanswered;
      to.held_ms += from.held_ms;
      to.longest_wait_ms = Math.max(to.longest_wait_ms, from.longest_wait_ms);
      to.longest_ms = Math.max(to.longest_ms, from.longest_ms);
    }
  }
  return sum;
}
