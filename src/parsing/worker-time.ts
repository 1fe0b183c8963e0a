// How long a worker may work on what it was given: so much of the processor, because on a machine that others keep busy, or whose
// processor is rationed, an ordinary message takes long by the clock, and nothing is wrong with it.
import type { Worker } from "node:worker_threads";

/** By the clock it may take so many times as long: a worker that waits for ever takes nothing of the processor. */
const CLOCK_TIMES = 6;
/** When it is first asked what it took, of its time: nearly all have answered by then, and cost nothing. */
const FIRST_LOOK = 0.1;
const LOOK_MS_MIN = 20;

/** Calls `onOver` once, when `worker` took `processor_ms` from now on, or six times that by the clock. Returns what ends the watch. */
export function watchWorkerTime(worker: Worker, processor_ms: number, onOver: () => void): () => void {
  const firstMs = Math.max(LOOK_MS_MIN, processor_ms * FIRST_LOOK);
  const clockMsMax = processor_ms * CLOCK_TIMES;
  let timer: NodeJS.Timeout;
  let isEnded = false;
  let clockMs = 0;
  const lookIn = (ms: number, look: () => Promise<void>): void => {
    const waitMs = Math.max(LOOK_MS_MIN, ms);
    timer = setTimeout(() => {
      clockMs += waitMs;
      void look();
    }, waitMs);
  };
  lookIn(firstMs, async () => {
    const atFirst = await takenMs(worker);
    const look = async (): Promise<void> => {
      const now = await takenMs(worker);
      if (isEnded) return;
      // Up to the first look it may have worked all the time.
      const tookMs = now === null || atFirst === null ? clockMs : firstMs + now - atFirst;
      if (tookMs >= processor_ms || clockMs >= clockMsMax) onOver();
      else lookIn(Math.min(processor_ms - tookMs, clockMsMax - clockMs), look);
    };
    if (!isEnded) lookIn(processor_ms - firstMs, look);
  });
  return () => {
    isEnded = true;
    clearTimeout(timer);
  };
}

/** The processor time that a worker took, in ms; null with a Node before 24.6, which does not say it. */
async function takenMs(worker: Worker): Promise<number | null> {
  if (!("cpuUsage" in worker)) return null;
  try {
    const { user, system } = await worker.cpuUsage();
    return (user + system) / 1000;
  } catch {
    // It is still being started, or has ended.
    return 0;
  }
}
