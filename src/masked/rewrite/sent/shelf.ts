// Pieces of a text that are put aside while the rest of it is changed.

/** Stands for what was put aside and is not looked at. */
export const BLANK = "\ue000";

/** `put` gives the mark that stands for a piece; `take` writes all pieces back; `clear` writes `BLANK` for each. */
export type Shelf = { put(text: string): string; take(text: string): string; clear(text: string): string };

/** A seed that no mark in the text has. */
export function unusedIn(text: string): string {
  let seed = 0;
  while (text.includes(`\ue000${seed}-`)) seed += 1;
  return String(seed);
}

/** Puts things aside; a mark of no letters stands for each. */
export function createShelf(seed: string): Shelf {
  const things: string[] = [];
  const mark = new RegExp(`\\ue000${seed.slice(0, 8)}-(\\d{1,7})\\ue001`, "g");
  // What was put aside may hold what was put aside before.
  const take = (text: string): string =>
    text.replace(mark, (whole, at: string) => {
      const thing = things[Number(at)];
      return thing === undefined ? whole : take(thing);
    });
  return {
    put: (text) => `\ue000${seed.slice(0, 8)}-${things.push(text) - 1}\ue001`,
    take,
    clear: (text) => text.replace(mark, BLANK),
  };
}
