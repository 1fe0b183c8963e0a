// So many bytes at once: whoever needs more waits, one of each `who` after another. One that needs more than there is gets all
// of it, alone; none overtakes another, so a large one is not passed by small ones for ever.

export type Budget = {
  /** Resolves with the function that gives the bytes back. `who`: for whom, where that is known. */
  take(bytes: number, who?: string): Promise<() => void>;
};

type Waiting = { bytes: number; start: (giveBack: () => void) => void };

/** A budget of `bytesMax`. */
export function createBudget(bytesMax: number): Budget {
  /** In the order of their turns. */
  const waiting = new Map<string, Waiting[]>();
  let free = bytesMax;

  function pump(): void {
    for (const [who, queue] of waiting) {
      const next = queue[0]!;
      if (next.bytes > free) return;
      queue.shift();
      waiting.delete(who);
      if (queue.length > 0) waiting.set(who, queue);
      free -= next.bytes;
      let given = false;
      next.start(() => {
        if (given) return;
        given = true;
        free += next.bytes;
        pump();
      });
    }
  }

  return {
    take(bytes, who = "") {
      return new Promise((start) => {
        const queue = waiting.get(who) ?? [];
        queue.push({ bytes: Math.min(bytes, bytesMax), start });
        waiting.set(who, queue);
        pump();
      });
    },
  };
}
