// E-mails a second accepted durably through POST /v1/send/batch: 100 messages of 4 KB a call, to destinations nobody
// sends to (no mta in the process). Once with text given, once with HTML only, whose text part Postern makes.
import { type BenchResult, conditions, costOf, round, setStage } from "./support/bench.ts";
import { type Load, percentile, postMany, sendBody } from "./support/load.ts";

const ITEMS = 100;
const CALLS = 600;
const CONNECTIONS = 8;
/** Different bodies, made beforehand: what the generator computes, Postern cannot. */
const BODIES = 40;

/** Runs the benchmark. */
export async function benchBatch(): Promise<BenchResult> {
  const stage = await setStage([["api"]]);
  const from = `orders@${stage.domain}`;
  const run = async (bodies: Buffer[], count: number): Promise<Load> => {
    const load = await postMany({
      base_url: stage.settings.base_url,
      path: "/v1/send/batch",
      key: stage.settings.live_key,
      count,
      connections: CONNECTIONS,
      body: (n) => bodies[n % BODIES] as Buffer,
    });
    if (load.accepted !== count) throw new Error(`not all were accepted: ${JSON.stringify([...load.refused])}`);
    return load;
  };
  try {
    const full = makeBodies((n) => sendBody(from, recipient(n), n));
    const htmlOnly = makeBodies((n) => withoutText(sendBody(from, recipient(n), n)));
    await run(full, CALLS / 4);
    const [load, cost] = await costOf(stage, CALLS * ITEMS, () => run(full, CALLS));
    const html = await run(htmlOnly, CALLS);
    return {
      name: "batch",
      conditions: conditions(
        { request_bytes: full[0]?.length, items: ITEMS, calls: CALLS, connections: CONNECTIONS },
        stage,
      ),
      ours: {
        per_s: round((load.accepted * ITEMS) / load.seconds),
        call_p50_ms: round(percentile(load.latencies_ms, 50), 1),
        call_p99_ms: round(percentile(load.latencies_ms, 99), 1),
        ...cost,
        html_only_per_s: round((html.accepted * ITEMS) / html.seconds),
      },
      peers: {},
      ratio: {},
    };
  } finally {
    await stage.close();
  }
}

function recipient(n: number): string {
  return `customer${n}@rcpt${n % 20}.example`;
}

function makeBodies(item: (n: number) => string): Buffer[] {
  return Array.from({ length: BODIES }, (_, body) => {
    const items = Array.from({ length: ITEMS }, (_, index) => item(body * ITEMS + index));
    return Buffer.from(`[${items.join(",")}]`);
  });
}

function withoutText(body: string): string {
  const { text_body: _text, ...rest } = JSON.parse(body);
  return JSON.stringify(rest);
}
