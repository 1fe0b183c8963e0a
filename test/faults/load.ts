// A careful client: sends e-mails with an Idempotency-Key each, repeats what was not answered with the same key, and
// writes down every 202 before it goes on.
import { Pool } from "undici";
import type { Recorder } from "./recorder.ts";

const CONNECTIONS = 16;
const AGAIN_MS = 150;
/** Longer than any scenario takes the API away, on a machine with twenty other things to do as well (seen: 111 s). */
const GIVE_UP_MS = 300_000;
/** What is worth repeating: the others are the client's own fault. A 500 is repeated for the figures; the verdict fails. */
const TRANSIENT = new Set([429, 500, 502, 503, 504]);

export type LoadOptions = {
  live_key: string;
  /** A request that is not answered is repeated at the next of these. */
  base_urls: string[];
  recorder: Pick<Recorder, "keep" | "noteBroken">;
  /** Distinguishes the keys of this load from those of others. */
  name: string;
  count: number;
  from: string;
  recipient(n: number): string;
  /** Milliseconds that each connection waits between two sends; the connections begin one after another within the first. */
  pause_ms?: number;
  /** How many send at once; 16 by default. */
  connections?: number;
  /** The load goes on beyond `count` while this is true. */
  isGoing?(): boolean;
};

export type LoadResult = {
  acknowledged: number;
  repeated: number;
  /** Requests that were answered at the second try at the latest, or at the first. */
  within_one_retry: number;
  /** The longest time in which nothing was acknowledged. */
  longest_gap_ms: number;
  /** Of the requests that were answered with 202. */
  latencies_ms: number[];
  statuses: Map<string, number>;
};

type State = LoadOptions & { pools: Pool[]; result: LoadResult; acknowledgedAtMs: number };

/** Sends all; rejects when an e-mail is refused for good or nobody answers for two minutes. */
export async function sendAll(options: LoadOptions): Promise<LoadResult> {
  const { connections = CONNECTIONS, pause_ms = 0, isGoing = () => false } = options;
  const limits = { connections, pipelining: 1, headersTimeout: 15_000, connect: { timeout: 2_000 } };
  const result: LoadResult = {
    acknowledged: 0,
    repeated: 0,
    within_one_retry: 0,
    longest_gap_ms: 0,
    latencies_ms: [],
    statuses: new Map(),
  };
  const pools = options.base_urls.map((url) => new Pool(url, limits));
  const state: State = { ...options, pools, result, acknowledgedAtMs: performance.now() };
  let next = 0;
  async function work(connection: number): Promise<void> {
    await sleep((pause_ms * connection) / connections);
    for (let n = next++; n < options.count || isGoing(); n = next++) {
      await sendOne(state, n);
      if (pause_ms > 0) await sleep(pause_ms);
    }
  }
  try {
    await Promise.all(Array.from({ length: connections }, (_none, connection) => work(connection)));
  } finally {
    await Promise.all(pools.map((pool) => pool.destroy()));
  }
  return result;
}

async function sendOne(state: State, n: number): Promise<void> {
  const { pools, result } = state;
  const key = `${state.name}-${n}`;
  const until = performance.now() + GIVE_UP_MS;
  for (let turn = 0; ; turn += 1) {
    const askedAt = performance.now();
    const { status, body } = await post(pools[(n + turn) % pools.length] as Pool, state, key, n);
    result.statuses.set(status, (result.statuses.get(status) ?? 0) + 1);
    if (status === "202") {
      result.latencies_ms.push(performance.now() - askedAt);
      await state.recorder.keep({ key, id: String(body.id), message_id: String(body.message_id) });
      noteAcknowledged(state, turn);
      return;
    }
    if (status === "500") state.recorder.noteBroken(key);
    const isTransient = !/^\d+$/.test(status) || TRANSIENT.has(Number(status));
    if (!isTransient || performance.now() > until) throw new Error(`${key}: ${status} ${JSON.stringify(body)}`);
    result.repeated += 1;
    await sleep(AGAIN_MS);
  }
}

function noteAcknowledged(state: State, turn: number): void {
  const { result } = state;
  const now = performance.now();
  result.acknowledged += 1;
  if (turn <= 1) result.within_one_retry += 1;
  result.longest_gap_ms = Math.max(result.longest_gap_ms, Math.round(now - state.acknowledgedAtMs));
  state.acknowledgedAtMs = now;
}

async function post(pool: Pool, options: LoadOptions, key: string, n: number) {
  try {
    const response = await pool.request({
      method: "POST",
      path: "/v1/send",
      headers: {
        authorization: `Bearer ${options.live_key}`,
        "content-type": "application/json",
        "idempotency-key": key,
      },
      body: JSON.stringify({
        from: options.from,
        to: [options.recipient(n)],
        subject: `Fault ${key}`,
        text_body: `This is ${key}.\n`,
        metadata: { key },
      }),
    });
    const body = (await response.body.json()) as Record<string, unknown>;
    return { status: String(response.statusCode), body };
  } catch (error) {
    const code = (error as { code?: string }).code ?? (error as Error).name;
    return { status: code, body: {} as Record<string, unknown> };
  }
}

/** Real time. */
export function sleep(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
