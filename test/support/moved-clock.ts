// Clocks that begin at a moment of one's choice and can be moved in both directions: for stories over days. Timeouts go by
// the real monotonic clock.
import type { Clock } from "../../src/platform/clock.ts";
import { createRandom } from "../../src/platform/random.ts";
import type { World } from "../../src/platform/world.ts";

export type MovedClock = Clock & {
  move(ms: number): void;
  /** Sets the time (RFC 3339). */
  set(time: string): void;
  /** Moves on to the next midnight (UTC) and `ms` beyond. */
  nextDay(ms?: number): void;
};

const DAY_MS = 86_400_000;

/** A clock that goes on by itself, like the real one. */
export function runningClock(startsAt: string): MovedClock {
  return clockOver(() => Date.now(), startsAt);
}

/** A clock that stands still until it is moved. */
export function standingClock(startsAt: string): MovedClock {
  return clockOver(() => 0, startsAt);
}

function clockOver(base: () => number, startsAt: string): MovedClock {
  let offsetMs = Date.parse(startsAt) - base();
  const now = (): number => base() + offsetMs;
  const move = (ms: number): void => {
    offsetMs += ms;
  };
  return {
    now,
    monotonic: () => performance.now(),
    setSkew: () => undefined,
    move,
    set: (time) => move(Date.parse(time) - now()),
    nextDay: (ms = 0) => move(DAY_MS - (now() % DAY_MS) + ms),
  };
}

/** The world by that clock, ids included: `testApi(env, byClock(clock))`. */
export function byClock(clock: Clock): (world: World) => World {
  return (world) => ({ ...world, clock, random: createRandom(clock) });
}
