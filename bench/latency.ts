// From the request to the sink's final dot at a gentle 10 requests a second: what a person waiting for a code feels.

import { type BenchResult, conditions, round, routeToSink, setStage } from "./support/bench.ts";
import { percentile, sendBody } from "./support/load.ts";

const COUNT = 200;
const EVERY_MS = 100;

/** Runs the benchmark. */
export async function benchLatency(): Promise<BenchResult> {
  const stage = await setStage();
  routeToSink(stage.dns, "customer.example");
  try {
    const { settings, sink } = stage;
    const begun = new Map<string, number>();
    const send = async (n: number): Promise<void> => {
      const at = performance.timeOrigin + performance.now();
      const response = await fetch(`${settings.base_url}/v1/send`, {
        method: "POST",
        headers: { authorization: `Bearer ${settings.live_key}`, "content-type": "application/json" },
        body: sendBody(`orders@${stage.domain}`, `customer${n}@customer.example`, n),
      });
      const { message_id } = (await response.json()) as { message_id: string };
      begun.set(message_id, at);
    };
    for (let n = 0; n < 20; n += 1) await send(n);
    await sink.waitFor(20);
    begun.clear();
    for (let n = 0; n < COUNT; n += 1) {
      const next = performance.now() + EVERY_MS;
      await send(n);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())));
    }
    await sink.waitFor(20 + COUNT);
    const arrivals = await sink.arrivals();
    const times = [...begun].map(([id, at]) => (arrivals.get(id) as number) - at);
    return {
      name: "latency",
      conditions: conditions({ requests_per_s: 10, count: COUNT, message_bytes: 4096 }),
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
