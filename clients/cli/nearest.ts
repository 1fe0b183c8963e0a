// Which known name somebody meant by one that is not known: a slip of the keyboard.

const SLIPS_MAX = 2;
const LENGTH_MAX = 64;

/** The known name with the fewest slips, or null where each would be another word. */
export function nearestName(given: string, known: readonly string[]): string | null {
  if (given.length > LENGTH_MAX) return null;
  const near = known
    .map((name) => ({ name, slips: slipsBetween(given.toLowerCase(), name) }))
    .filter(({ name, slips }) => slips <= Math.min(SLIPS_MAX, name.length / 3))
    .sort((a, b) => a.slips - b.slips);
  return near[0]?.name ?? null;
}

/** Letters added, left out or exchanged (Levenshtein). */
function slipsBetween(a: string, b: string): number {
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const exchanged = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, exchanged));
    }
    last = row;
  }
  return last[b.length] ?? 0;
}
