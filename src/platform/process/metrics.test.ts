import assert from "node:assert/strict";
import { test } from "node:test";
import { createMetrics } from "./metrics.ts";

test("a metric asked for twice is one metric", async () => {
  const metrics = createMetrics();
  metrics.counter("postern_sent_total", "Messages sent", ["outcome"]).inc({ outcome: "delivered" });
  metrics.counter("postern_sent_total", "Messages sent", ["outcome"]).inc({ outcome: "delivered" }, 2);
  metrics.gauge("postern_queue", "Messages waiting").set(7);
  metrics.histogram("postern_send_seconds", "Time to send").observe(0.2);
  const text = await metrics.text();
  assert.match(text, /^postern_sent_total\{outcome="delivered"\} 3$/m);
  assert.match(text, /^postern_queue 7$/m);
  assert.match(text, /^postern_send_seconds_bucket\{le="0.25"\} 1$/m);
  assert.match(text, /^process_resident_memory_bytes \d+$/m);
  assert.match(metrics.content_type, /^text\/plain/);
});

test("a name cannot be two kinds of metric", () => {
  const metrics = createMetrics();
  metrics.counter("postern_x_total", "help");
  assert.throws(() => metrics.gauge("postern_x_total", "help"), /another kind/);
});

test("two registries do not share their numbers", async () => {
  const [one, other] = [createMetrics(), createMetrics()];
  one.counter("postern_x_total", "help").inc();
  other.counter("postern_x_total", "help");
  assert.match(await other.text(), /^postern_x_total 0$/m);
});
