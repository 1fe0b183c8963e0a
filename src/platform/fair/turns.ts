// Work that keeps the event loop busy (rendering, composing) in turns with everything else: a hundred tasks that became due
// in one moment would stand in one row, and nothing would be read, answered or renewed meanwhile. Not here: tasks that take
// long by themselves, which belong into a worker.
import type { Clock } from "../clock.ts";
import { threadMs } from "../process/thread-ms.ts";
import { createRotation } from "./rotation.ts";

/** Runs the task whole, now or in a later turn of the event loop, for `who`; resolves to what it returns. */
export type InTurn = <T>(who: string, task: () => T) => Promise<T>;

/** Tasks may take so long together before others have a turn: a renewal or an answer waits no longer. */
const TURN_MS = 20;
/** Reading what the thread took costs 2 µs, and a task that ends sooner has hardly been waiting for a processor. */
const CLOCK_DOES_MS = 1;

/**
 * Tasks run in the order they come, one of each `who` after another. While few come they run at once, at the cost of two looks
 * at the clock. `spent` gets what each took of the processor, in milliseconds: of a task longer than one of them by the clock, at
 * most what the thread took since that was last read, in this turn.
 */
export function createTurns(
  clock: Pick<Clock, "monotonic">,
  spent: (who: string, ms: number) => void = () => undefined,
): InTurn {
  const waiting = createRotation<{ who: string; task: () => void }>();
  let spentMs = 0;
  let threadReadMs = 0;

  function run(who: string, task: () => void): void {
    if (spentMs === 0) {
      // Only for who came first in this turn: nobody else would begin the next one.
      setImmediate(nextTurn);
      threadReadMs = threadMs();
    }
    const startedMs = clock.monotonic();
    task();
    const tookMs = clock.monotonic() - startedMs;
    spent(who, tookMs < CLOCK_DOES_MS ? tookMs : Math.min(tookMs, sinceRead()));
    spentMs += Math.max(tookMs, Number.MIN_VALUE);
  }

  function sinceRead(): number {
    const beforeMs = threadReadMs;
    threadReadMs = threadMs();
    return threadReadMs - beforeMs;
  }

  function nextTurn(): void {
    spentMs = 0;
    while (spentMs < TURN_MS) {
      const next = waiting.next();
      if (!next) return;
      run(next.who, next.task);
    }
  }

  return (who, task) =>
    new Promise((resolve, reject) => {
      const settle = (): void => {
        try {
          resolve(task());
        } catch (error) {
          reject(error);
        }
      };
      if (waiting.items() === 0 && spentMs < TURN_MS) run(who, settle);
      else waiting.add(who, { who, task: settle });
    });
}
