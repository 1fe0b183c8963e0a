// A database over a network that may fail, as the `Db` the product's code gets. Statements are known by their text (asked
// of the product's own query functions), run one after the other against the model's rows, and answers travel: requests
// and answers are lost, connections break, the server is away for a while, a transaction of a process that dies or stands
// still is undone. Transactions run one at a time: what PostgreSQL's isolation adds to that is for the fault scenarios
// over the real one (test/faults).
import type { Db, Query, Tx } from "../../src/platform/database/db.ts";
import { readArray } from "./read-array.ts";
import type { Life, Universe } from "./universe.ts";

// biome-ignore lint/suspicious/noExplicitAny: the values of a statement are what its query function made of its arguments
type Values = readonly any[];
/** What a statement does to the rows: the rows it returns, or how many it touched. */
export type Statement = (values: Values) => unknown[] | number;

/** The rows, with a journal of undoings while a transaction runs. */
export type Rows = {
  /** Begins or ends what can be undone. */
  begin(): void;
  commit(): void;
  rollback(): void;
};

/** A statement that decides by what it sees, and whose rows others see only at its commit, some time later. */
export type SlowStatement = (values: Values) => () => unknown[] | number;

export type Server = {
  statements: Map<string, Statement>;
  slow: Map<string, SlowStatement>;
  rows: Rows;
  /** Away until then: connections are refused, transactions gone. */
  away_until_ms: number;
  /** Chances that a request, or the answer to it, is lost with its connection. */
  loss: { request: number; answer: number };
  notify: { loss: number };
  listeners: { life: Life; channel: string; hear: () => void }[];
  turn: Turn;
};

type Turn = { isTaken: boolean; waiting: (() => void)[] };

/** So long may a process stand still inside a transaction (idle_in_transaction_session_timeout). */
const IDLE_IN_TRANSACTION_MS = 15_000;

export function createServer(rows: Rows, statements: Map<string, Statement>): Server {
  return {
    statements,
    slow: new Map(),
    rows,
    away_until_ms: 0,
    loss: { request: 0, answer: 0 },
    notify: { loss: 0 },
    listeners: [],
    turn: { isTaken: false, waiting: [] },
  };
}

/** The text of the statement that a query function sends; `call` gives it whatever arguments it takes. */
export function textOf(call: (db: Tx) => unknown): string {
  const source = call.toString();
  let text = texts.get(source) ?? "";
  if (text !== "") return text;
  const note = (sent: string) => {
    text = sent;
    return Promise.resolve([]);
  };
  // Some read the rows of the answer, of which there are none.
  void Promise.resolve(call({ query: note, execute: note } as unknown as Tx)).catch(() => undefined);
  texts.set(source, text);
  return text;
}

/** By the source of the call, which names the function: every seed asks for the same. */
const texts = new Map<string, string>();

class Lost extends Error {
  code = "ECONNRESET";
}

/** The face of the server for one process. */
export function connect(universe: Universe, server: Server, life: Life): Db {
  const link = { universe, server, life };
  const direct = statements((text, values) => {
    const slow = server.slow.get(text);
    return slow ? requestSlowly(link, () => slow(values)) : request(link, () => perform(link, text, values));
  });
  const transaction = <T>(work: (tx: Tx) => Promise<T>): Promise<T> => transact(link, work);
  return {
    ...direct,
    transaction,
    asOrg: (_orgId, work) => transaction(work),
    listen: async (channels, onNotify) => {
      const own = channels.map((channel) => ({ life, channel, hear: () => onNotify(channel) }));
      server.listeners.push(...own);
      return {
        close: async () => {
          server.listeners = server.listeners.filter((listener) => !own.includes(listener));
        },
      };
    },
    clockSkewMs: async () => 0,
    close: async () => undefined,
  };
}

type Link = { universe: Universe; server: Server; life: Life };

function statements(run: (text: string, values: Values) => Promise<unknown[] | number>): Query {
  return {
    query: async <Row>(text: string, values: Values = []) => (await run(text, values)) as Row[],
    execute: async (text, values = []) => {
      const result = await run(text, values);
      return typeof result === "number" ? result : result.length;
    },
  };
}

function perform({ server, universe }: Link, text: string, values: Values): unknown[] | number {
  const statement = server.statements.get(text);
  if (statement) return statement(values.map(readArray));
  if (!text.includes("pg_notify")) throw new Error(`the model knows no such statement: ${text}`);
  for (const { life, channel, hear } of server.listeners) {
    const isHeard = channel === values[0] && universe.chance.float() >= server.notify.loss;
    if (isHeard) universe.after(latency(universe), life, hear);
  }
  return [];
}

function latency({ chance }: Universe): number {
  return chance.float() < 0.01 ? chance.between(50, 1_500) : 0.3 + 2 * chance.float();
}

function request<T>(link: Link, work: () => T): Promise<T> {
  const { universe, server, life } = link;
  life.calls += 1;
  return new Promise((resolve, reject) => {
    const isLost = isAway(link) || universe.chance.float() < server.loss.request;
    if (isLost) answer(link, () => reject(new Lost("the connection was lost before the statement")));
    else inTurn(server, run);

    function run(): void {
      try {
        const result = work();
        const isAnswered = universe.chance.float() >= server.loss.answer;
        answer(link, () => (isAnswered ? resolve(result) : reject(new Lost("the answer was lost"))));
      } catch (error) {
        answer(link, () => reject(error));
      }
      release(server);
    }
  });
}

/** The commit of a process that died meanwhile had been sent, or had not. */
async function requestSlowly<T>(link: Link, work: () => () => T): Promise<T> {
  const { universe, life } = link;
  const commit = await request(link, work);
  life.calls += 1;
  return new Promise((resolve, reject) => {
    universe.after(universe.chance.pick([1, 40, 700]), null, () => {
      const isSent = life.alive || universe.chance.float() < 0.5;
      if (isAway(link) || !isSent)
        return answer(link, () => reject(new Lost("the connection was lost before the commit")));
      life.calls -= 1;
      request(link, commit).then(resolve, reject);
    });
  });
}

function isAway({ universe, server }: Link): boolean {
  return server.away_until_ms > universe.monotonic();
}

function answer({ universe, life }: Link, run: () => void): void {
  universe.after(latency(universe), life, () => {
    life.calls -= 1;
    run();
  });
}

/** Begin with all statements is one step, the commit another; what happens between them undoes it. */
function transact<T>(link: Link, work: (tx: Tx) => Promise<T>): Promise<T> {
  const { universe, server, life } = link;
  life.calls += 1;
  return new Promise((resolve, reject) => {
    universe.after(latency(universe), null, () => {
      if (isAway(link)) lost("the server is away");
      else inTurn(server, begin);
    });

    /** A process that stands still holds what it began, but not for ever. */
    function begin(): void {
      const standsStillMs = life.stalled_until_ms - universe.monotonic();
      if (standsStillMs <= 0) {
        proceed();
        return;
      }
      const isCut = standsStillMs > IDLE_IN_TRANSACTION_MS;
      universe.after(Math.min(standsStillMs, IDLE_IN_TRANSACTION_MS), null, () => {
        if (!isCut) {
          proceed();
          return;
        }
        release(server);
        lost("the server ended a transaction that stood still");
      });
    }

    function proceed(): void {
      if (!life.alive) {
        release(server);
        return;
      }
      server.rows.begin();
      universe.become(life);
      const tx = statements(async (text, values) => perform(link, text, values)) as Tx;
      work(tx).then(
        (result) => universe.after(latency(universe), null, () => end(true, () => resolve(result))),
        (error) => universe.after(latency(universe), null, () => end(false, () => reject(error))),
      );
    }

    function end(isCommit: boolean, settle: () => void): void {
      const isBroken = !life.alive || isAway(link) || universe.chance.float() < server.loss.request;
      if (isCommit && !isBroken) server.rows.commit();
      else server.rows.rollback();
      release(server);
      const isAnswered = !isCommit || universe.chance.float() >= server.loss.answer;
      if (isBroken) lost("the connection was lost in a transaction");
      else if (isAnswered) answer(link, settle);
      else lost("the answer to commit was lost");
    }

    function lost(why: string): void {
      answer(link, () => reject(new Lost(why)));
    }
  });
}

function inTurn({ turn }: Server, work: () => void): void {
  if (turn.isTaken) {
    turn.waiting.push(work);
    return;
  }
  turn.isTaken = true;
  work();
}

function release({ turn }: Server): void {
  turn.isTaken = false;
  const next = turn.waiting.shift();
  if (!next) return;
  turn.isTaken = true;
  next();
}
