// Work that keeps the event loop busy (rendering, composing) in turns with everything else: a hundred tasks that became due
// in one moment would stand in one row, and nothing would be read, answered or renewed meanwhile. Not here: tasks that take
// long by themselves, which belong into a worker.
import type { Clock } from "../clock.ts";
import { createWorkMeter, type Took } from "../process/thread-ms.ts";
import { createRotation } from "./rotation.ts";

/** Runs the task whole, now or in a later turn of the event loop, for `who`; resolves to what it returns. */
export type InTurn = <T>(who: string, task: () => T) => Promise<T>;

/** Tasks may take so long together before others have a turn: a renewal or an answer waits no longer. */
const TURN_MS = 20;

/**
 * Tasks run in the order they come, one of each `who` after another. While few come they run at once, at the cost of two looks
 * at the clock. `spent` gets what each took (thread-ms.ts).
 */
export function createTurns(
  clock: Pick<Clock, "monotonic">,
  spent: (who: string, took: Took) => void = () => undefined,
): InTurn {
  const waiting = createRotation<{ who: string; task: () => void }>();
  let spentMs = 0;
  const meter = createWorkMeter(clock);

  function run(who: string, task: () => void): void {
    // Only for who came first in this turn: nobody else would begin the next one.
    if (spentMs === 0) setImmediate(nextTurn);
    meter.begin();
    task();
    const took = meter.end();
    spent(who, took);
    spentMs += Math.max(took.elapsed_ms, Number.MIN_VALUE);
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
