// Lets a few in at a time; the others wait in order, and beyond a number they are turned away. It holds no timers: who
// stops waiting says so by a signal.

export type Gate = {
  /** Resolves to a function that must be called once when done; null when too many wait or the signal came first. */
  enter(signal: AbortSignal): Promise<(() => void) | null>;
};

/** A gate that has `open_max` inside and `waiting_max` outside at most. */
export function createGate(limits: { open_max: number; waiting_max: number }): Gate {
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

  async function wait(signal: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const giveUp = (): void => {
      waiting.delete(resolve);
      resolve(false);
    };
    waiting.add(resolve);
    signal.addEventListener("abort", giveUp, { once: true });
    const entered = await promise;
    signal.removeEventListener("abort", giveUp);
    return entered;
  }

  return {
    async enter(signal) {
      if (signal.aborted) return null;
      if (inside < limits.open_max) inside += 1;
      else if (waiting.size >= limits.waiting_max || !(await wait(signal))) return null;
      let open = true;
      return () => {
        if (open) leave();
        open = false;
      };
    },
  };
}
