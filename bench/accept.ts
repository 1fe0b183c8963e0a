// Durable 202s a second: POST /v1/send with a 4 KB message, recipients at a suspended destination so that only the
// accept works (no mta in the process).
import { type BenchResult, conditions, costOf, round, setStage, warmUp } from "./support/bench.ts";
import { percentile, postMany, sendBody } from "./support/load.ts";

const COUNT = 20_000;
const WARM_UP = 20_000;
const CONNECTIONS = 64;

/** Runs the benchmark. */
export async function benchAccept(): Promise<BenchResult> {
  const stage = await setStage([["api"]]);
  const bodyOf = (n: number) => sendBody(`orders@${stage.domain}`, `customer${n}@rcpt${n % 20}.example`, n);
  try {
    const post = (count: number) =>
      postMany({
        base_url: stage.settings.base_url,
        path: "/v1/send",
        key: stage.settings.live_key,
        count,
        connections: CONNECTIONS,
        body: bodyOf,
      });
    const warm = await warmUp(stage, WARM_UP, () => post(WARM_UP));
    const [load, cost] = await costOf(stage, COUNT, () => post(COUNT));
    if (load.accepted !== COUNT) throw new Error(`not all were accepted: ${JSON.stringify([...load.refused])}`);
    return {
      name: "accept",
      conditions: conditions(
        { request_bytes: bodyOf(0).length, connections: CONNECTIONS, warm_up: WARM_UP, count: COUNT },
        stage,
      ),
      ours: {
        per_s: round(load.accepted / load.seconds),
        p50_ms: round(percentile(load.latencies_ms, 50), 1),
        p99_ms: round(percentile(load.latencies_ms, 99), 1),
        ...cost,
        ...warm,
      },
      peers: {},
      ratio: {},
    };
  } finally {
    await stage.close();
  }
}
