// Time. `now` is the monotonic clock moved to the database's (lease and schedule follow the database, reliability rule 4)
// and by a testing offset: when the machine's wall clock is set, nothing jumps. `monotonic` is for timeouts. Not here: schedules, which are data of the features.
import { readFileSync } from "node:fs";

/**
 * Wall clock and monotonic clock, both in milliseconds. `setSkew(ms)` says how far the database's clock is ahead of this
 * machine's wall clock at the moment.
 */
export type Clock = { now(): number; monotonic(): number; setSkew(ms: number): void };

const LOOKS_MAX = 10;
const LOOK_MS_MAX = 0.2;
/** The offset file is looked at again after this long; between looks `now` costs no system call on the file. */
const OFFSET_REREAD_MS = 50;
/** setTimeout takes a signed 32-bit number and fires at once above it. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * The process's clock. With `offsetFile`, the number of seconds in that file (a decimal, may be negative) is added to
 * `now`, re-read at most every 50 ms; a missing file is 0, a half-written one keeps the last offset.
 */
export function createClock(options: { offsetFile?: string | null }): Clock {
  const offset = options.offsetFile ? readOffset(options.offsetFile) : () => 0;
  let aheadMs = wallAheadMs();
  return {
    now: () => Math.round(performance.now() + aheadMs + offset()),
    monotonic: () => performance.now(),
    setSkew: (ms) => {
      aheadMs = wallAheadMs() + ms;
    },
  };
}

/** What a clock said, and when by the monotonic clock that all processes of a machine share. */
export type ClockReading = { now_ms: number; at_ns: bigint };

/** For another process on this machine. */
export function readClock(clock: Pick<Clock, "now">): ClockReading {
  return { now_ms: clock.now(), at_ns: process.hrtime.bigint() };
}

/** Sets this process's clock to the one that was read, and the time since then. */
export function followReading(clock: Pick<Clock, "now" | "setSkew">, { now_ms, at_ns }: ClockReading): void {
  clock.setSkew(0);
  const thereMs = now_ms + Number(process.hrtime.bigint() - at_ns) / 1e6;
  clock.setSkew(thereMs - clock.now());
}

/** How far the wall clock is ahead of the monotonic one; looked at again when something came between the two. */
function wallAheadMs(): number {
  let ahead = 0;
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    const before = performance.now();
    const wall = Date.now() + 0.5; // in whole milliseconds
    const after = performance.now();
    ahead = wall - (before + after) / 2;
    if (after - before < LOOK_MS_MAX) break;
  }
  return ahead;
}

function readOffset(path: string): () => number {
  let offsetMs = 0;
  let readAt = Number.NEGATIVE_INFINITY;
  return () => {
    const at = performance.now();
    if (at - readAt >= OFFSET_REREAD_MS) {
      offsetMs = parseOffset(path, offsetMs);
      readAt = at;
    }
    return offsetMs;
  };
}

function parseOffset(path: string, lastMs: number): number {
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
  return /^[+-]?\d{1,12}(\.\d+)?$/.test(text) ? Number(text) * 1000 : lastMs;
}

/** A clock that stands at `ms` until `advance`d; `setSkew` works as in the real one. For tests and simulations. */
export function fixedClock(ms: number): Clock & { advance(ms: number): void } {
  let nowMs = ms;
  let monotonicMs = 0;
  let skewMs = 0;
  return {
    now: () => nowMs + skewMs,
    monotonic: () => monotonicMs,
    setSkew: (skew) => {
      skewMs = skew;
    },
    advance: (by) => {
      nowMs += by;
      monotonicMs += by;
    },
  };
}

/** Waits `ms` of real time (at most 24 days). An abort ends the wait early and is not an error: look at the signal. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, Math.min(Math.max(ms, 0), TIMER_MS_MAX));
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** What the work resolves to, or `late` after `ms` of real time; the work itself goes on. */
export async function within<T, L>(work: Promise<T>, ms: number, late: L): Promise<T | L> {
  const over = Promise.withResolvers<L>();
  const timer = setTimeout(() => over.resolve(late), ms);
  try {
    return await Promise.race([work, over.promise]);
  } finally {
    clearTimeout(timer);
  }
}
