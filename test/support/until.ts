// Waiting for a condition, never for a time: what every test uses in place of a pause.

const LOOK_EVERY_MS = 10;
/** Long enough for a machine that does much else; a condition that holds is noticed at once. */
const WITHIN_MS = 20_000;

/** Waits until `holds`; fails with `what` when it does not within `withinMs`. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs: number = WITHIN_MS,
): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}
