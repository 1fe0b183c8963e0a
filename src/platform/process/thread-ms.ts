// How much of the processor this thread took, for all that is charged to somebody. Not here: who it is charged to.
import type { Clock } from "../clock.ts";

/**
 * The processor time that this thread took so far, in milliseconds. For all that is charged to somebody or limited: where other
 * work keeps the machine busy, the clock goes on while this thread waits, and nobody's request is to blame for that.
 */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Reading what the thread took costs 2 µs, so it is read after work that took longer, and before other work when it is older. */
const CLOCK_DOES_MS = 1;

/** What a piece of work took of the processor, and at most a millisecond more; and by the clock. */
export type Took = { ms: number; elapsed_ms: number };

export type WorkMeter = {
  /** Before a piece of work that nothing interrupts. */
  begin(): void;
  /** After it. */
  end(): Took;
};

/** Measures one piece of this thread's work after another, for little. */
export function createWorkMeter(clock: Pick<Clock, "monotonic">): WorkMeter {
  let read = { atMs: Number.NEGATIVE_INFINITY, threadMs: 0 };
  let begunMs = 0;
  return {
    begin() {
      begunMs = clock.monotonic();
      if (begunMs - read.atMs > CLOCK_DOES_MS) read = { atMs: begunMs, threadMs: threadMs() };
    },
    end() {
      const nowMs = clock.monotonic();
      const elapsed_ms = nowMs - begunMs;
      if (elapsed_ms < CLOCK_DOES_MS) return { ms: elapsed_ms, elapsed_ms };
      const before = read;
      read = { atMs: nowMs, threadMs: threadMs() };
      return { ms: read.threadMs - before.threadMs, elapsed_ms };
    },
  };
}
