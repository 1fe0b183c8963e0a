// Waiting for a condition, never for a time: what every test uses in place of a pause.

const LOOK_EVERY_MS = 10;
/** Long enough for a machine that does much else; a condition that holds is noticed at once. */
const WITHIN_MS = 60_000;

/** Waits until `look` gives something (not false, null or undefined), and gives that; fails with `what` after `withinMs`. */
export async function until<T>(
  what: string | (() => string),
  look: () => T | Promise<T>,
  withinMs: number = WITHIN_MS,
): Promise<Exclude<T, false | null | undefined>> {
  const end = performance.now() + withinMs;
  for (;;) {
    const seen = await look();
    if (seen !== false && seen !== null && seen !== undefined) return seen as Exclude<T, false | null | undefined>;
    if (performance.now() > end)
      throw new Error(`not within ${withinMs} ms: ${typeof what === "string" ? what : what()}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}
