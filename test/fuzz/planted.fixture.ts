// Targets that break, for the test of the harness: each in the way its name says.
import type { Target } from "./target.ts";

const seeds = { lines: "tokens.jsonl" };

export const TARGETS: readonly Target[] = [
  {
    ...{ name: "sound", holds: "always", seeds },
    check: (input) => `length ${input.length % 3}`,
  },
  {
    ...{ name: "throws", holds: "never, once an x is there", seeds, words: ["x"] },
    check(input) {
      if (input.includes("x")) throw new Error("an x");
    },
  },
  {
    ...{ name: "rejects", holds: "never, once an x is there", seeds, words: ["x"] },
    async check(input) {
      if (input.includes("x")) throw new Error("an x, later");
    },
  },
  {
    ...{ name: "slow", holds: "as long as there is no x", seeds, words: ["x"] },
    check(input) {
      const startedAt = process.threadCpuUsage().user;
      while (input.includes("x") && process.threadCpuUsage().user - startedAt < 300_000);
    },
  },
  {
    ...{ name: "endless", holds: "as long as there is no x", seeds, words: ["x"] },
    check(input) {
      while (input.includes("x"));
    },
  },
  {
    ...{ name: "unhandled", holds: "as long as nobody waits", seeds, words: ["x"] },
    check(input) {
      if (input.includes("x")) void Promise.reject(new Error("nobody waits for this"));
    },
  },
];
