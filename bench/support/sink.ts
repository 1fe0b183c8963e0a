// The sink process seen from the benchmark.
import { fork } from "node:child_process";
import { join } from "node:path";

export type BenchSink = {
  port: number;
  counts(): Promise<{ received: number; unique: number }>;
  samples(): Promise<Buffer[]>;
  /** Message-ID → milliseconds since the epoch at the final dot. */
  arrivals(): Promise<Map<string, number>>;
  reset(): Promise<void>;
  /** Resolves with the time at which `count` messages (distinguished by Message-ID, or merely received) were there; rejects when nothing moves for 20 s. */
  waitFor(count: number, by?: "unique" | "received"): Promise<number>;
  stop(): void;
};

/** The mean length of messages. */
export function meanBytes(messages: Buffer[]): number {
  return Math.round(messages.reduce((sum, { length }) => sum + length, 0) / messages.length);
}

const STANDSTILL_MS = 20_000;
const POLL_MS = 20;

/** Starts the sink. */
export async function startBenchSink(): Promise<BenchSink> {
  const child = fork(join(import.meta.dirname, "sink-process.ts"), { serialization: "advanced" });
  const next = <T>(): Promise<T> => new Promise((resolve) => child.once("message", (message) => resolve(message as T)));
  const { port } = await next<{ port: number }>();
  const ask = <T>(what: string): Promise<T> => {
    const answer = next<T>();
    child.send({ ask: what });
    return answer;
  };
  const counts = () => ask<{ received: number; unique: number }>("counts");
  return {
    port,
    counts,
    samples: async () =>
      (await ask<{ samples: string[] }>("samples")).samples.map((text) => Buffer.from(text, "base64")),
    arrivals: async () => new Map((await ask<{ arrivals: [string, number][] }>("arrivals")).arrivals),
    reset: async () => {
      await ask("reset");
    },
    async waitFor(count, by = "unique") {
      let last = -1;
      let movedAt = performance.now();
      for (;;) {
        const now = (await counts())[by];
        if (now >= count) return performance.now();
        if (now !== last) movedAt = performance.now();
        last = now;
        if (performance.now() - movedAt > STANDSTILL_MS) throw new Error(`the sink stands still at ${now} of ${count}`);
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
    stop: () => child.disconnect(),
  };
}
