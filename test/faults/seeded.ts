// Chance that can be repeated: the same seed gives the same points in time, in as far as the machine does.

export type Chance = {
  /** In [0, 1). */
  float(): number;
  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number;
  pick<T>(from: readonly T[]): T;
};

/** mulberry32: small, fast, good enough to choose points in time. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  const float = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (from: number, to: number): number => from + Math.floor(float() * (to - from + 1));
  return { float, between, pick: (from) => from[between(0, from.length - 1)] as never };
}
