// A memory for what was looked up: known for seconds (or an hour) by the monotonic clock, and the oldest go when it is
// full. It asks nobody: joining the questions of the same moment is coalesce.ts.
import type { Clock } from "../clock.ts";

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
  const known = new Map<string, { value: V; untilMs: number }>();
  return {
    get(name) {
      const entry = known.get(name);
      return entry && entry.untilMs > clock.monotonic() ? entry.value : undefined;
    },
    set(name, value, forMs = for_ms) {
      // Whoever is written again is the youngest.
      known.delete(name);
      if (known.size >= names_max) dropOldest(known, Math.ceil(names_max / 10));
      known.set(name, { value, untilMs: clock.monotonic() + forMs });
    },
    drop: (name) => void known.delete(name),
  };
}

/** Many at once: a Map finds its first name by walking over the places of all that were dropped before. */
function dropOldest(known: Map<string, unknown>, count: number): void {
  let left = count;
  for (const name of known.keys()) {
    if (left <= 0) return;
    known.delete(name);
    left -= 1;
  }
}
