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
    const some: typeof waiting = new Map();
    for (const [key, promise] of waiting) {
      if (some.size === options.keys_max) break;
      some.set(key, promise);
      waiting.delete(key);
    }
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

export type OrgKey = { org_id: string; key: string };

/** A value that was found, with what it was asked by. */
export type Found<V> = readonly [orgId: string, key: string, value: V];

type LoadByOrg<V> = {
  load: (keys: OrgKey[]) => Promise<readonly Found<V>[]>;
  keys_max: number;
  lanes: number;
};

/** `coalesce` for what is found by an organization and one key of any text; of several values of a key the last is it. */
export function coalesceByOrg<V>(options: LoadByOrg<V>): (orgId: string, key: string) => Promise<V | undefined> {
  const find = coalesce<string, V>({
    ...options,
    load: async (names) => {
      const found = await options.load(names.map(parseName));
      return new Map(found.map(([orgId, key, value]) => [nameOf(orgId, key), value]));
    },
  });
  return (orgId, key) => find(nameOf(orgId, key));
}

/** The same for all the values of a key, in the order in which they were found; none is an empty list. */
export function coalesceListsByOrg<V>(options: LoadByOrg<V>): (orgId: string, key: string) => Promise<V[]> {
  const find = coalesce<string, V[]>({
    ...options,
    load: async (names) => {
      const lists = new Map<string, V[]>();
      for (const [orgId, key, value] of await options.load(names.map(parseName))) {
        const name = nameOf(orgId, key);
        const list = lists.get(name);
        if (list) list.push(value);
        else lists.set(name, [value]);
      }
      return lists;
    },
  });
  return async (orgId, key) => (await find(nameOf(orgId, key))) ?? [];
}

// An organization's id has no slash, so the first one ends it, whatever the key holds.
function nameOf(orgId: string, key: string): string {
  return `${orgId}/${key}`;
}

function parseName(name: string): OrgKey {
  const at = name.indexOf("/");
  return { org_id: name.slice(0, at), key: name.slice(at + 1) };
}
