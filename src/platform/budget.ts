// So many bytes at once: whoever needs more waits, in order. One that needs more than there is gets all of it, alone.

export type Budget = {
  /** Resolves with the function that gives the bytes back. */
  take(bytes: number): Promise<() => void>;
};

/** A budget of `bytesMax`. */
export function createBudget(bytesMax: number): Budget {
  const waiting: { bytes: number; start: (giveBack: () => void) => void }[] = [];
  let free = bytesMax;

  function pump(): void {
    for (let next = waiting[0]; next && next.bytes <= free; next = waiting[0]) {
      const { bytes, start } = next;
      waiting.shift();
      free -= bytes;
      let given = false;
      start(() => {
        if (given) return;
        given = true;
        free += bytes;
        pump();
      });
    }
  }

  return {
    take(bytes) {
      return new Promise((start) => {
        waiting.push({ bytes: Math.min(bytes, bytesMax), start });
        pump();
      });
    },
  };
}
