// The lines of a difference as they are shown: what came, what went, three lines around, and folds for the rest. Pure.

export type Line = { sign: " " | "+" | "-"; text: string };
/** `line` null: a fold, for all that stands there unchanged. */
export type Shown = { place: number; line: Line | null };
type Change = { added?: boolean; removed?: boolean; value: string };

const AROUND = 3;

/** The lines of a comparison, from what the library `diff` finds. */
export function toLines(changes: readonly Change[]): Line[] {
  return changes.flatMap(({ added, removed, value }) =>
    value
      .replace(/\n$/, "")
      .split("\n")
      .map((text): Line => ({ sign: added ? "+" : removed ? "-" : " ", text })),
  );
}

export function isChanged(lines: readonly Line[]): boolean {
  return lines.some(({ sign }) => sign !== " ");
}

/** A stretch without a change is one fold, however long it is. */
export function foldLines(lines: readonly Line[]): Shown[] {
  const isNear = (place: number) => isChanged(lines.slice(Math.max(0, place - AROUND), place + AROUND + 1));
  return lines.flatMap((line, place): Shown[] => {
    if (isNear(place)) return [{ place, line }];
    return place > 0 && !isNear(place - 1) ? [] : [{ place, line: null }];
  });
}
