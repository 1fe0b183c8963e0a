// What a step that failed said of it, out of all that it printed: said again at the end of the run, where one looks.

/** How the steps begin what failed; the lines below it belong to it. */
const FAILURE = /^\s*(?:✖|FAILED)/;
const OF_ANOTHER = /^\s*(?:✔|ℹ|▶|﹣|…)/;
/** Of one that says it in words of its own: they are in its last lines. */
const LAST_LINES = 20;
const LINES_MAX = 80;
const LENGTH_MAX = 2_000;

/** The lines of its failures, each once; its last lines where none is marked as one. */
export function whyFailed(lines: readonly string[]): string[] {
  const marked = new Set<string>();
  let isFailure = false;
  for (const line of lines) {
    isFailure = FAILURE.test(line) || (isFailure && !OF_ANOTHER.test(line));
    if (isFailure && line.trim() !== "") marked.add(line.slice(0, LENGTH_MAX));
  }
  if (marked.size === 0) return lines.slice(-LAST_LINES).map((line) => line.slice(0, LENGTH_MAX));
  return [...marked].slice(0, LINES_MAX);
}
