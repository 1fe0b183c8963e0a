// Background work that goes round and round until it is stopped: what the `clock` role does. Errors of a round end here: what
// was due stays due, as rows, and is tried in the next. Each loop tells the watchdog that it lives. Not here: loops that
// wait for something else than time (claims, webhooks).
import { sleep } from "../clock.ts";
import { isUnavailable } from "../database/db.ts";
import type { World } from "../world.ts";
import { beatOf } from "./watchdog.ts";

export type RoundsWorld = Pick<World, "log" | "metrics">;

export type Work = {
  /** For the log and the watchdog. */
  name: string;
  /** Between the end of one round and the next. */
  every_ms: number;
  /** A round that may take minutes calls `beat` in between. */
  round(signal: AbortSignal, beat: () => void): Promise<unknown>;
};

/** The watchdog ends a process whose loop is silent for five minutes. */
const BEAT_MS = 60_000;

/** Starts the rounds, the first at once; `stop` ends them after the step at hand. */
export function startRounds(world: RoundsWorld, work: Work): { stop(): Promise<void> } {
  const ending = new AbortController();
  const life = beatOf(world, work.name);
  const running = goRound(world, work, { signal: ending.signal, beat: life.beat });
  return {
    async stop() {
      ending.abort();
      await running;
      life.end();
    },
  };
}

type Turn = { signal: AbortSignal; beat(): void };

async function goRound(world: RoundsWorld, { name, every_ms, round }: Work, { signal, beat }: Turn): Promise<void> {
  while (!signal.aborted) {
    try {
      await round(signal, beat);
    } catch (err) {
      const why = isUnavailable(err) ? "the database cannot be reached" : "a round of background work failed";
      world.log.error({ err, work: name }, why);
    }
    for (let leftMs = every_ms; leftMs > 0 && !signal.aborted; leftMs -= BEAT_MS) {
      beat();
      await sleep(Math.min(leftMs, BEAT_MS), signal);
    }
  }
}

/**
 * `work`, but not again before `everyMs` have passed since it last succeeded. By the schedule's clock: when it is moved,
 * what is old by it has become old; one that was set back makes the work due.
 */
export function atMostEvery(
  { clock }: { clock: Pick<World["clock"], "now"> },
  everyMs: number,
  work: () => Promise<unknown>,
): () => Promise<void> {
  let doneAtMs = Number.NEGATIVE_INFINITY;
  return async () => {
    const passedMs = clock.now() - doneAtMs;
    if (passedMs >= 0 && passedMs < everyMs) return;
    await work();
    doneAtMs = clock.now();
  };
}

/** So many steps has a sweep at most; what is left is for the next one. */
const STEPS_MAX = 40;

/** `step` until it finds nothing more to do, but boundedly often; ends early when `signal` does. */
export async function sweep(signal: AbortSignal | undefined, step: () => Promise<number>): Promise<void> {
  for (let done = 0; done < STEPS_MAX && !signal?.aborted; done += 1) {
    if ((await step()) === 0) return;
  }
}
