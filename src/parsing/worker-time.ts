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
  const startedMs = performance.now();
  let timer: NodeJS.Timeout;
  let isEnded = false;
  const lookIn = (ms: number, look: () => Promise<void>): void => {
    timer = setTimeout(() => void look(), Math.max(LOOK_MS_MIN, ms));
  };
  // What it took before the first look is counted by the clock, which is never less.
  lookIn(processor_ms * FIRST_LOOK, async () => {
    const firstMs = performance.now() - startedMs;
    const before = await takenMs(worker);
    const look = async (): Promise<void> => {
      const now = await takenMs(worker);
      if (isEnded) return;
      const clockMs = performance.now() - startedMs;
      const leftMs = processor_ms - (firstMs + now - before);
      if (leftMs <= 0 || clockMs >= processor_ms * CLOCK_TIMES) onOver();
      else lookIn(Math.min(leftMs, processor_ms * CLOCK_TIMES - clockMs), look);
    };
    if (!isEnded) lookIn(processor_ms - firstMs, look);
  });
  return () => {
    isEnded = true;
    clearTimeout(timer);
  };
}

async function takenMs(worker: Worker): Promise<number> {
  // Node before 24.6.
  if (!("cpuUsage" in worker)) return performance.now();
  try {
    const { user, system } = await worker.cpuUsage();
    return (user + system) / 1000;
  } catch {
    // It is still being started, or has ended.
    return 0;
  }
}
