// Lets a few in at a time; the others wait in order, and beyond a number they are turned away. It holds no timers: who
// stops waiting says so by a signal.

export type Semaphore = {
  /** Resolves to a function that must be called once when done; null when too many wait or the signal came first. */
  enter(signal?: AbortSignal): Promise<(() => void) | null>;
  /** Does the task when its turn comes; null when too many wait. */
  run<T>(task: () => Promise<T>): Promise<T | null>;
};

/** A semaphore that has `open_max` inside and `waiting_max` (perhaps Infinity) outside at most. */
export function createSemaphore(limits: { open_max: number; waiting_max: number }): Semaphore {
  let inside = 0;
  const waiting = new Set<(entered: boolean) => void>();

  function leave(): void {
    const [next] = waiting;
    if (!next) {
      inside -= 1;
      return;
    }
    // The place is handed over, so `inside` stays.
    waiting.delete(next);
    next(true);
  }

  async function wait(signal?: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const giveUp = (): void => {
      waiting.delete(resolve);
      resolve(false);
    };
    waiting.add(resolve);
    signal?.addEventListener("abort", giveUp, { once: true });
    const entered = await promise;
    signal?.removeEventListener("abort", giveUp);
    return entered;
  }

  async function enter(signal?: AbortSignal): Promise<(() => void) | null> {
    if (signal?.aborted) return null;
    if (inside < limits.open_max) inside += 1;
    else if (waiting.size >= limits.waiting_max || !(await wait(signal))) return null;
    let open = true;
    return () => {
      if (open) leave();
      open = false;
    };
  }

  return {
    enter,
    async run(task) {
      const left = await enter();
      return left && task().finally(left);
    },
  };
}
