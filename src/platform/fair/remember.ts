// A memory for what was looked up: known for seconds (or an hour) by the monotonic clock, and what was read longest ago goes
// when it is full. It asks nobody: joining the questions of the same moment is coalesce.ts.

import type { Clock } from "../clock.ts";
import { createLru } from "./lru.ts";

export type Memory<V> = {
  /** Undefined when it is not known, or not any more. */
  get(name: string): V | undefined;
  set(name: string, value: V, forMs?: number): void;
  drop(name: string): void;
};

/** A memory of `names_max` names; each is known for `for_ms`, unless `set` says otherwise. */
export function remember<V>(
  clock: Pick<Clock, "monotonic">,
  { for_ms, names_max }: { for_ms: number; names_max: number },
): Memory<V> {
  const known = createLru<{ value: V; untilMs: number }>(names_max);
  return {
    get(name) {
      const entry = known.get(name);
      return entry && entry.untilMs > clock.monotonic() ? entry.value : undefined;
    },
    set(name, value, forMs = for_ms) {
      known.set(name, { value, untilMs: clock.monotonic() + forMs });
    },
    drop: (name) => void known.delete(name),
  };
}
