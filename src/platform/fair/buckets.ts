// Token buckets by name: so many at once, so many a second after that. For limits of one process on what strangers ask;
// limits of an organization are in accounts/rates.ts.

import { createLru } from "./lru.ts";
export type Buckets = {
  /** Takes one; answers 0, or the seconds until there is one again. */
  take(name: string, nowMs: number): number;
  /** True if `take` would answer more than 0. Takes nothing itself. */
  isEmpty(name: string, nowMs: number): boolean;
};

type Bucket = { tokens: number; at_ms: number };

/**
 * Buckets that hold `burst` and refill by `per_s`. At most `names_max` names are known, the one used longest ago is
 * forgotten first, and a forgotten name has a full bucket again.
 */
export function createBuckets(limits: { per_s: number; burst: number; names_max: number }): Buckets {
  const { per_s, burst, names_max } = limits;
  const buckets = createLru<Bucket>(names_max);
  const left = (name: string, nowMs: number): number => {
    const known = buckets.peek(name);
    // A clock that was set back takes nothing away.
    return known ? Math.min(burst, known.tokens + (Math.max(0, nowMs - known.at_ms) / 1000) * per_s) : burst;
  };
  return {
    isEmpty: (name, nowMs) => left(name, nowMs) < 1,
    take(name, nowMs) {
      const tokens = left(name, nowMs);
      const isOpen = tokens >= 1;
      buckets.set(name, { tokens: isOpen ? tokens - 1 : tokens, at_ms: nowMs });
      return isOpen ? 0 : (1 - tokens) / per_s;
    },
  };
}
