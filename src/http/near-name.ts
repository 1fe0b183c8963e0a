// Which known name somebody meant by one that is not known: other services' names for the same field (`html`, `replyTo`),
// and slips of the keyboard.

/** The known name that is meant, or null where none is near. */
export function nearName(given: string, known: readonly string[]): string | null {
  if (given.length > NAME_LENGTH_MAX) return null;
  const words = wordsOf(given);
  const same = known.find((name) => wordsOf(name).join() === words.join());
  if (same) return same;
  const near = known
    .map((name) => ({ name, slips: slipsBetween(given.toLowerCase(), name) }))
    .filter(({ name, slips }) => slips <= Math.min(SLIPS_MAX, Math.floor(Math.max(given.length, name.length) / 3)))
    .sort((a, b) => a.slips - b.slips);
  return near[0]?.name ?? sharingWords(given, known);
}

const NAME_LENGTH_MAX = 64;
const SLIPS_MAX = 2;

/** `replyTo`, `Reply-To` and `reply_to` are one name; so are `body_html` and `html_body`. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "")
    .sort();
}

/**
 * One holds all words of the other, in the singular or the plural: `html` and `html_body`, `event_types` and `events`. The only
 * one, or of several the only one that begins with it (`text_body` for `text`, beside `auto_text`), else it is a guess.
 */
function sharingWords(given: string, known: readonly string[]): string | null {
  const words = wordsOf(given).map(singular);
  const sharing = known.filter((name) => {
    const own = wordsOf(name).map(singular);
    const [fewer, more] = own.length < words.length ? [own, words] : [words, own];
    return fewer.length > 0 && fewer.every((word) => more.includes(word));
  });
  const [only, ...others] = sharing.length > 1 ? sharing.filter((name) => name.startsWith(`${given}_`)) : sharing;
  return only === undefined || others.length > 0 ? null : only;
}

function singular(word: string): string {
  return word.replace(/s$/, "");
}

/** Letters added, left out, exchanged or swapped with their neighbour (Damerau and Levenshtein). */
function slipsBetween(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const exchanged = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, exchanged, swapped));
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
