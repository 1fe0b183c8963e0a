// When this thread stood still because V8 collected garbage, for all that charges its time to somebody: a pause falls into the work of
// the moment, and is nobody's doing. Not here: what is charged, and to whom.
import { PerformanceObserver } from "node:perf_hooks";

/** Both by the monotonic clock, in milliseconds. */
type Pause = { fromMs: number; toMs: number };

export type Garbage = {
  /** Calls `then`, soon, with the milliseconds of these that were pauses. Not at once: Node reports a pause some turns of the event loop later. */
  within(span: Pause, then: (ms: number) => void): void;
};

const PAUSES_KEPT = 200;
/** Turns of the event loop until a pause is known: one until Node hears of it, one until it reports it. */
const TURNS = 3;

let watched: Garbage | null = null;

/** The garbage collections of this thread, watched from the first call on. */
export function garbageOfThread(): Garbage {
  watched ??= watch();
  return watched;
}

function watch(): Garbage {
  const pauses: Pause[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) {
      pauses.push({ fromMs: startTime, toMs: startTime + duration });
    }
    pauses.splice(0, pauses.length - PAUSES_KEPT);
  });
  observer.observe({ entryTypes: ["gc"] });
  return {
    within({ fromMs, toMs }, then) {
      afterTurns(TURNS, () => {
        const inside = pauses.map((pause) => Math.min(toMs, pause.toMs) - Math.max(fromMs, pause.fromMs));
        then(inside.reduce((sum, ms) => sum + Math.max(0, ms), 0));
      });
    },
  };
}

function afterTurns(turns: number, then: () => void): void {
  setImmediate(() => (turns === 1 ? then() : afterTurns(turns - 1, then)));
}
