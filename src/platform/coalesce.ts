// Turns many single look-ups into few batched ones: while one batch is on its way, the next gathers. No timer: an idle
// caller waits for nothing, a busy one shares a round trip with its neighbours.

/**
 * `load(keys)` gets the distinct waiting keys (at most `keysMax`) and returns the values found; a missing key yields
 * undefined. At most `lanes` loads are under way at once. A failed load rejects exactly the callers it was for.
 */
export function coalesce<K, V>(options: {
  load: (keys: K[]) => Promise<Map<K, V>>;
  keys_max: number;
  lanes: number;
}): (key: K) => Promise<V | undefined> {
  let waiting = new Map<K, PromiseWithResolvers<V | undefined>>();
  let running = 0;

  function pump(): void {
    if (running >= options.lanes || waiting.size === 0) return;
    const batch = takeBatch();
    running += 1;
    options
      .load([...batch.keys()])
      .then(
        (found) => {
          for (const [key, promise] of batch) promise.resolve(found.get(key));
        },
        (error) => {
          for (const promise of batch.values()) promise.reject(error);
        },
      )
      .finally(() => {
        running -= 1;
        pump();
      });
  }

  function takeBatch(): Map<K, PromiseWithResolvers<V | undefined>> {
    if (waiting.size <= options.keys_max) {
      const all = waiting;
      waiting = new Map();
      return all;
    }
    const some = new Map([...waiting].slice(0, options.keys_max));
    for (const key of some.keys()) waiting.delete(key);
    return some;
  }

  return (key) => {
    const known = waiting.get(key);
    if (known) return known.promise;
    const promise = Promise.withResolvers<V | undefined>();
    waiting.set(key, promise);
    // Deliberate: one turn of the event loop gathers the requests that arrived together.
    if (waiting.size === 1) setImmediate(pump);
    return promise.promise;
  };
}
