// The process's metrics for Prometheus, on a registry of its own. A metric may be asked for where it is counted, any
// number of times: the first call registers it. Not here: the HTTP route, and sums over processes (Prometheus does them).
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "@prometheus-io/client";

export type Metrics = {
  counter(name: string, help: string, labels?: readonly string[]): Counter<string>;
  gauge(name: string, help: string, labels?: readonly string[]): Gauge<string>;
  histogram(name: string, help: string, labels?: readonly string[], buckets?: readonly number[]): Histogram<string>;
  /** The whole registry in the text format of Prometheus. */
  text(): Promise<string>;
  content_type: string;
};

/** From a cached answer (1 ms) to a remote mail server at its limits (10 min), in seconds. */
const BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600];

/**
 * A registry with Node's own process metrics (memory, event-loop delay, garbage collection). Label values must come from
 * short fixed lists, never from mail or requests: each distinct value is a series kept for ever.
 */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const register = [registry];
  collectDefaultMetrics({ register: registry });
  return {
    counter: (name, help, labels = []) =>
      known(registry, name, Counter<string>) ?? new Counter({ name, help, labelNames: labels, registers: register }),
    gauge: (name, help, labels = []) =>
      known(registry, name, Gauge<string>) ?? new Gauge({ name, help, labelNames: labels, registers: register }),
    histogram: (name, help, labels = [], buckets = BUCKETS_S) =>
      known(registry, name, Histogram<string>) ??
      new Histogram({ name, help, labelNames: labels, buckets: [...buckets], registers: register }),
    text: () => registry.metrics(),
    content_type: registry.contentType,
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the three constructors share nothing but being constructors
function known<M>(registry: Registry, name: string, kind: new (...args: any[]) => M): M | undefined {
  const metric = registry.getSingleMetric(name);
  if (metric === undefined) return undefined;
  if (!(metric instanceof kind)) throw new Error(`the metric ${name} is already registered as another kind`);
  return metric;
}
