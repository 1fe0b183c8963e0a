// From the request to the sink's final dot at a gentle 10 requests a second: what a person waiting for a code feels. A
// request goes out when it is due, whether or not the one before was answered, and is measured from when it was due: a stall
// counts for all that fell into it. Before that messages are sent as fast as can be, so that what V8 compiles is compiled.
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { run } from "./outbound.ts";
import { type BenchResult, conditions, makeFolder, round, routeToSink, type Stage, setStage } from "./support/bench.ts";
import { percentile, sendBody } from "./support/load.ts";
import { meanBytes } from "./support/sink.ts";

const COUNT = 1_000;
const WARM_UP = 5_000;
const EVERY_MS = 100;
const SYNCS = 400;
const SYNC_EVERY_MS = 20;
const PAGE = Buffer.alloc(8_192, 1);

/** Runs the benchmark. */
export async function benchLatency(): Promise<BenchResult> {
  const stage = await setStage();
  routeToSink(stage.dns, "customer.example");
  try {
    const { sink } = stage;
    await run(stage, WARM_UP);
    await sink.reset();
    const begun = await sendAll(stage);
    await sink.waitFor(COUNT);
    const arrivals = await sink.arrivals();
    const times = begun.map(([id, due]) => (arrivals.get(id) as number) - due);
    const message_bytes = meanBytes(await sink.samples());
    const disk = await syncTimes();
    return {
      name: "latency",
      conditions: conditions(
        { requests_per_s: 1_000 / EVERY_MS, warm_up: WARM_UP, count: COUNT, message_bytes, ...disk },
        stage,
      ),
      ours: {
        p50_ms: round(percentile(times, 50), 1),
        p95_ms: round(percentile(times, 95), 1),
        p99_ms: round(percentile(times, 99), 1),
        max_ms: round(Math.max(...times), 1),
      },
      peers: {},
      ratio: {},
    };
  } finally {
    await stage.close();
  }
}

/** What the disk itself takes to keep a page: nothing is accepted sooner. */
async function syncTimes(): Promise<{ disk_sync_p50_ms: number; disk_sync_p99_ms: number }> {
  const { dir, remove } = makeFolder();
  const file = openSync(join(dir, "page"), "w");
  const times: number[] = [];
  for (let n = 0; n < SYNCS; n += 1) {
    const begun = performance.now();
    writeSync(file, PAGE);
    fdatasyncSync(file);
    times.push(performance.now() - begun);
    await new Promise((resolve) => setTimeout(resolve, SYNC_EVERY_MS));
  }
  closeSync(file);
  remove();
  return { disk_sync_p50_ms: round(percentile(times, 50), 1), disk_sync_p99_ms: round(percentile(times, 99), 1) };
}

/** Each at its time; the Message-IDs and when each was due, in milliseconds since the epoch. */
async function sendAll(stage: Stage): Promise<[string, number][]> {
  const startedAt = performance.timeOrigin + performance.now();
  const sending: Promise<[string, number]>[] = [];
  for (let n = 0; n < COUNT; n += 1) {
    const due = startedAt + n * EVERY_MS;
    const left = due - (performance.timeOrigin + performance.now());
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
    sending.push(send(stage, n).then((id) => [id, due]));
  }
  return Promise.all(sending);
}

async function send({ settings, domain }: Stage, n: number): Promise<string> {
  const response = await fetch(`${settings.base_url}/v1/send`, {
    method: "POST",
    headers: { authorization: `Bearer ${settings.live_key}`, "content-type": "application/json" },
    body: sendBody(`orders@${domain}`, `customer${n}@customer.example`, n),
  });
  const body = (await response.json()) as { message_id: string };
  if (response.status !== 202) throw new Error(`a mail was not accepted: ${JSON.stringify(body)}`);
  return body.message_id;
}
