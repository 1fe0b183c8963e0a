// So many tasks at once, the rest wait: fair between those they are for. Who is alone has half of the places, others beside
// him an equal share, and a newcomer begins at once, however long the others' tasks take.

export type FairGate = <T>(who: string, task: () => Promise<T>) => Promise<T>;

/** A gate with `places`. What waits is the caller's to limit. */
export function createFairGate(places: number): FairGate {
  const held = new Map<string, number>();
  const waiting = new Map<string, (() => void)[]>();
  let taken = 0;

  const mayEnter = (who: string): boolean => (held.get(who) ?? 0) < places - taken;

  function enter(who: string): void {
    taken += 1;
    held.set(who, (held.get(who) ?? 0) + 1);
  }

  function leave(who: string): void {
    taken -= 1;
    const left = (held.get(who) ?? 0) - 1;
    if (left > 0) held.set(who, left);
    else held.delete(who);
    admit();
  }

  function turnOf(who: string): Promise<void> {
    const queue = waiting.get(who) ?? [];
    waiting.set(who, queue);
    return new Promise((begin) => queue.push(begin));
  }

  /** One of each in turn, as long as there is a place for it. */
  function admit(): void {
    let looks = waiting.size;
    for (const [who, queue] of waiting) {
      looks -= 1;
      if (looks < 0 || taken >= places) return;
      if (!mayEnter(who)) continue;
      waiting.delete(who);
      const next = queue.shift();
      if (queue.length > 0) waiting.set(who, queue);
      enter(who);
      next?.();
    }
  }

  return async (who, task) => {
    if (!waiting.has(who) && mayEnter(who)) enter(who);
    else await turnOf(who);
    try {
      return await task();
    } finally {
      leave(who);
    }
  };
}
