// `deep-queue`: one organization has a million messages due, behind a mail server that takes some 40 a second. Beside it
// a new organization begins to send: its mail starts within seconds, requests are accepted as fast as by a twin of the
// whole with an empty queue (in turns, since machines are not even), and a claim costs what it always costs.
import pg from "pg";
import { claimDue, dueLanes } from "../../src/outbound/queries.ts";
import { DEFAULT_SOURCE_ID } from "../../src/outbound/types.ts";
import { type Db, openDb } from "../../src/platform/database/db.ts";
import { makeDeepQueue } from "../support/deep-queue.ts";
import { ask, type Posterns } from "../support/postern-process.ts";
import { type LoadResult, sendAll, sleep } from "./load.ts";
import type { Acknowledged, Recorder } from "./recorder.ts";
import type { ScenarioOptions } from "./round.ts";
import { startCountingSink } from "./sink.ts";
import { type Stage, setStage } from "./stage.ts";
import { addTenant } from "./tenant.ts";

const ROWS = 1_000_000;
const ROWS_PER_LANE = 100;
/** Each of the windows, in turns: empty, deep, deep, empty, … */
const SENDS = 300;
const WINDOWS = ["empty", "deep", "deep", "empty", "empty", "deep", "deep", "empty"] as const;
const PAUSE_MS = 120;
const FIRST_SENDS = 20;
const START_MS_MAX = 10_000;
const ARRIVE_MS_MAX = 120_000;
const SLOW_HOST = "127.0.1.9";
const SLOW_MS = 500;
const CLAIMS = 100;
const LANES_PER_CLAIM = 200;
const ROWS_PER_LANE_AND_CLAIM = 2;
const CLAIM_MS_MAX = 50;
const RATIO_MAX = 2;
/** Neither side is judged by less: a stroke of the scheduler is as long. */
const P99_MS_LEAST = 25;

export type DeepQueueVerdict = {
  queued: number;
  acknowledged: number;
  lost: number;
  duplicates: number;
  flagged: number;
  /** From the new organization's first request to its first, and last, message at the sink. */
  first_arrival_ms: number;
  last_arrival_ms: number;
  accept_p99_empty_ms: number;
  accept_p99_deep_ms: number;
  claim_p50_ms: number;
  claim_p95_ms: number;
  answered_500: number;
  ok: boolean;
};

/** Runs it; always one round. */
export async function runDeepQueue({ rows = ROWS, sends = SENDS, say }: ScenarioOptions): Promise<DeepQueueVerdict> {
  const [empty, deep] = [await setStage(), await setStage()];
  const slow = await startCountingSink({ host: SLOW_HOST, port: deep.sink.port });
  slow.think(() => SLOW_MS);
  try {
    const lanes = Math.max(1, Math.ceil(rows / ROWS_PER_LANE));
    const seconds = await fill(deep, rows, lanes);
    say?.(`${rows} rows in ${lanes} lanes after ${Math.round(seconds)} s`);
    while (slow.received() === 0) await sleep(100);
    const tenant = await addTenant(deep, "newcomer.example");
    const start = await startNewcomer(deep, tenant);
    say?.(`the newcomer's first message arrived after ${start.first_arrival_ms} ms`);
    const accepted = await acceptInTurns({ empty, deep }, tenant, sends);
    const claims = await measureClaims(deep);
    const queued = await countQueued(deep);
    const verdict = await judgeTenant(deep);
    const answered_500 = deep.recorder.broken() + empty.recorder.broken();
    const [p99Empty, p99Deep] = [percentile(accepted.empty, 99), percentile(accepted.deep, 99)];
    const isFast =
      start.first_arrival_ms < START_MS_MAX &&
      Math.max(p99Deep, P99_MS_LEAST) <= RATIO_MAX * Math.max(p99Empty, P99_MS_LEAST) &&
      percentile(claims, 50) <= CLAIM_MS_MAX;
    return {
      queued,
      ...verdict,
      ...start,
      answered_500,
      accept_p99_empty_ms: p99Empty,
      accept_p99_deep_ms: p99Deep,
      claim_p50_ms: percentile(claims, 50),
      claim_p95_ms: percentile(claims, 95),
      // Most of the queue must still have been there at the end.
      ok: isFast && answered_500 === 0 && isWhole(verdict) && queued >= rows / 2,
    };
  } finally {
    await slow.stop();
    await deep.close();
    await empty.close();
  }
}

function isWhole({ lost, duplicates, flagged }: { lost: number; duplicates: number; flagged: number }): boolean {
  return lost === 0 && duplicates === flagged;
}

/** One e-mail for the slow server, and its copies. */
async function fill(stage: Stage, rows: number, lanes: number): Promise<number> {
  stage.dns.set("*.deep.example", "MX", [{ exchange: "mx.deep.example", preference: 10 }]);
  stage.dns.set("mx.deep.example", "A", [SLOW_HOST]);
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  const sent = await ask(stage.settings, "POST", "/v1/send", {
    from: `orders@${stage.domain}`,
    to: ["someone@d0.deep.example"],
    subject: "Deep",
    text_body: "Deep.\n",
    scheduled_at: tomorrow,
  });
  if (sent.status !== 202) throw new Error(`the original was not taken: ${JSON.stringify(sent.body)}`);
  const url = new URL(stage.postgres.admin_url);
  url.pathname = "/postern";
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  try {
    return await makeDeepQueue(client, { message_id: String(sent.body.id), rows, lanes, domain: "deep.example" });
  } finally {
    await client.end();
  }
}

async function withDb<T>(stage: Stage, work: (db: Db) => Promise<T>): Promise<T> {
  const db = openDb(stage.postgres.url, { onError: () => undefined });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

async function startNewcomer(stage: Stage, tenant: Posterns) {
  const before = stage.sink.received();
  const startedAt = performance.now();
  const arrival = async (count: number): Promise<number> => {
    while (stage.sink.received() < before + count) {
      if (performance.now() - startedAt > ARRIVE_MS_MAX) return Number.POSITIVE_INFINITY;
      await sleep(5);
    }
    return Math.round(performance.now() - startedAt);
  };
  const arrivals = Promise.all([arrival(1), arrival(FIRST_SENDS)]);
  await send(stage, tenant, { name: "newcomer", count: FIRST_SENDS });
  const [first_arrival_ms, last_arrival_ms] = await arrivals;
  return { first_arrival_ms, last_arrival_ms };
}

type Load = { name: string; count: number; pause_ms?: number; from?: string };

async function send(stage: { recorder: Recorder }, settings: Posterns, load: Load): Promise<LoadResult> {
  const { live_key, base_url } = settings;
  return sendAll({
    from: "hello@newcomer.example",
    ...load,
    live_key,
    base_urls: [base_url],
    recorder: stage.recorder,
    recipient: (n) => `r${n}@d${n % 40}.recipients.example`,
  });
}

/** Latencies in milliseconds, without those of a first window of each. */
async function acceptInTurns(stages: { empty: Stage; deep: Stage }, tenant: Posterns, count: number) {
  const latencies = { empty: [] as number[], deep: [] as number[] };
  for (const [turn, side] of (["empty", "deep", ...WINDOWS] as const).entries()) {
    const isDeep = side === "deep";
    const settings = isDeep ? tenant : stages.empty.settings;
    const from = isDeep ? "hello@newcomer.example" : `orders@${stages.empty.domain}`;
    const load = await send(stages[side], settings, { name: `window-${turn}`, count, pause_ms: PAUSE_MS, from });
    if (turn >= 2) latencies[side].push(...load.latencies_ms);
  }
  return latencies;
}

class RollBack extends Error {}

/** As a node claims: due lanes of all slots, some rows of each. Rolled back: the rows stay in the queue. */
async function measureClaims(stage: Stage): Promise<number[]> {
  const slots = Array.from({ length: 16 }, (_none, slot) => ({ source_id: DEFAULT_SOURCE_ID, slot }));
  const times: number[] = [];
  await withDb(stage, async (db) => {
    for (let n = 0; n < CLAIMS; n += 1) {
      const claim = db.transaction(async (tx) => {
        const startedAt = performance.now();
        const now = new Date();
        const lanes = await dueLanes(tx, slots, { busy: [], now, limit: LANES_PER_CLAIM });
        const wanted = lanes.map(({ id }) => ({ id, k: ROWS_PER_LANE_AND_CLAIM }));
        await claimDue(tx, -1, wanted, { now, mark: null });
        times.push(performance.now() - startedAt);
        throw new RollBack();
      });
      await claim.catch((error) => {
        if (!(error instanceof RollBack)) throw error;
      });
    }
  });
  return times;
}

async function countQueued(stage: Stage): Promise<number> {
  const [row] = await stage.rows<{ total: number }>("select count(*)::int as total from delivery");
  return row?.total ?? 0;
}

/** Waits until all that the newcomer brought has arrived, the queue behind it or not. */
async function judgeTenant(stage: Stage) {
  const acknowledged: Acknowledged[] = stage.recorder.all();
  const copies = ({ message_id }: Acknowledged): number => stage.sink.copies.get(message_id) ?? 0;
  const until = performance.now() + ARRIVE_MS_MAX;
  while (acknowledged.some((one) => copies(one) === 0) && performance.now() < until) await sleep(100);
  const doubts = await stage.rows<{ total: number }>(
    "select count(*)::int as total from event where event_type = 'ambiguous' and message_id = any($1::uuid[])",
    [acknowledged.map(({ id }) => id)],
  );
  return {
    acknowledged: acknowledged.length,
    lost: acknowledged.filter((one) => copies(one) === 0).length,
    duplicates: acknowledged.reduce((sum, one) => sum + Math.max(0, copies(one) - 1), 0),
    flagged: doubts[0]?.total ?? 0,
  };
}

/** In milliseconds, to a tenth. */
function percentile(values: number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * p) / 100))] ?? Number.NaN;
  return Math.round(value * 10) / 10;
}
