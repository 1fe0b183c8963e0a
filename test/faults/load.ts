// A careful client: sends e-mails with an Idempotency-Key each, repeats what was not answered with the same key, and
// writes down every 202 before it goes on.
import { Pool } from "undici";
import type { Posterns } from "../support/postern-process.ts";
import type { Recorder } from "./recorder.ts";

const CONNECTIONS = 16;
const AGAIN_MS = 150;
/** Longer than any scenario takes the API away. */
const GIVE_UP_MS = 120_000;
/** What is worth repeating: the others are the client's own fault. */
const TRANSIENT = new Set([429, 500, 502, 503, 504]);

export type LoadOptions = {
  settings: Pick<Posterns, "base_url" | "live_key">;
  recorder: Recorder;
  /** Distinguishes the keys of this load from those of others. */
  name: string;
  count: number;
  from: string;
  recipient(n: number): string;
  /** Milliseconds that each connection waits between two sends. */
  pause_ms?: number;
};

export type LoadResult = {
  acknowledged: number;
  repeated: number;
  /** Requests that were answered at the second try at the latest, or at the first. */
  within_one_retry: number;
  statuses: Map<string, number>;
};

/** Sends all; rejects when an e-mail is refused for good or nobody answers for two minutes. */
export async function sendAll(options: LoadOptions): Promise<LoadResult> {
  const pool = new Pool(options.settings.base_url, {
    connections: CONNECTIONS,
    pipelining: 1,
    headersTimeout: 15_000,
    connect: { timeout: 2_000 },
  });
  const result: LoadResult = { acknowledged: 0, repeated: 0, within_one_retry: 0, statuses: new Map() };
  let next = 0;
  async function work(): Promise<void> {
    for (let n = next++; n < options.count; n = next++) {
      await sendOne(pool, options, n, result);
      if (options.pause_ms) await sleep(options.pause_ms);
    }
  }
  try {
    await Promise.all(Array.from({ length: CONNECTIONS }, work));
  } finally {
    await pool.destroy();
  }
  return result;
}

async function sendOne(pool: Pool, options: LoadOptions, n: number, result: LoadResult): Promise<void> {
  const key = `${options.name}-${n}`;
  const until = performance.now() + GIVE_UP_MS;
  for (let turn = 0; ; turn += 1) {
    const { status, body } = await post(pool, options, key, n);
    result.statuses.set(status, (result.statuses.get(status) ?? 0) + 1);
    if (status === "202") {
      await options.recorder.keep({ key, id: String(body.id), message_id: String(body.message_id) });
      result.acknowledged += 1;
      if (turn <= 1) result.within_one_retry += 1;
      return;
    }
    const isTransient = !/^\d+$/.test(status) || TRANSIENT.has(Number(status));
    if (!isTransient || performance.now() > until) throw new Error(`${key}: ${status} ${JSON.stringify(body)}`);
    result.repeated += 1;
    await sleep(AGAIN_MS);
  }
}

async function post(pool: Pool, options: LoadOptions, key: string, n: number) {
  try {
    const response = await pool.request({
      method: "POST",
      path: "/v1/send",
      headers: {
        authorization: `Bearer ${options.settings.live_key}`,
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
