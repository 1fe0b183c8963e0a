// A map of so many entries, of which the one used longest ago goes when it is full.
import { LRUCache } from "lru-cache";

export type Lru<V extends {}> = LRUCache<string, V>;

/**
 * An empty map that keeps at most `entriesMax` entries. It is bounded by size, each entry counting one, and not by
 * `max`: lru-cache reserves memory for `max` entries at once, 9 ms and 4 MB for 100,000 of them, before the first is set.
 */
export function createLru<V extends {}>(entriesMax: number): Lru<V> {
  return new LRUCache({ maxSize: entriesMax, sizeCalculation: () => 1 });
}
