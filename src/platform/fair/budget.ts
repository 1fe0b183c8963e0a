// So many bytes at once: whoever needs more waits, one of each `who` after another. One that needs more than there is gets all
// of it, alone; none overtakes another, so a large one is not passed by small ones for ever.
import { createRotation } from "./rotation.ts";

export type Budget = {
  /** Resolves with the function that gives the bytes back. `who`: for whom, where that is known. */
  take(bytes: number, who?: string): Promise<() => void>;
};

type Waiting = { bytes: number; start: (giveBack: () => void) => void };

/** A budget of `bytesMax`. */
export function createBudget(bytesMax: number): Budget {
  const waiting = createRotation<Waiting>();
  let free = bytesMax;

  function pump(): void {
    for (let next = waiting.first(); next !== null && next.bytes <= free; next = waiting.first()) {
      waiting.next();
      const { bytes, start } = next;
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
    take(bytes, who = "") {
      return new Promise((start) => {
        waiting.add(who, { bytes: Math.min(bytes, bytesMax), start });
        pump();
      });
    },
  };
}
