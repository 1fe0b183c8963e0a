// One commit for all that came in one moment: while one batch commits, the next gathers, so batches grow with the load and what
// comes alone waits for one commit. Not here: what a batch writes, and what becomes of an item that cannot be written.

export type GroupCommit<T> = {
  add(item: T): void;
  /** What waits for its commit to begin, as it is weighed. */
  waiting(): Weight;
  /** Items that are not committed yet, those under way among them. */
  uncommitted(): number;
  /** Resolves when all that was added so far, and meanwhile, is committed. */
  drained(): Promise<void>;
};

/** How large an item or a batch is. */
export type Weight = { items: number; bytes: number };

export type Grouping<T> = {
  /** The limit of one batch. An item is never divided: one that is too large goes alone. */
  max: Weight;
  /** One and 0 bytes if it is missing. */
  weigh?(item: T): Weight;
  /** Batches under way at once, 1 if it is missing. */
  writers?: number;
  /** With fewer items waiting, they join the next batch instead of starting one of their own beside it. */
  second_writer_from?: number;
  /** Before each batch: resolves when enough has gathered. A turn of the event loop if it is missing. */
  gather?(waiting: number): Promise<unknown>;
  /** Must not reject: `commit` itself reports what failed. */
  commit(batch: T[]): Promise<unknown>;
};

/** Nothing waits yet. */
export function createGroupCommit<T>(grouping: Grouping<T>): GroupCommit<T> {
  const { writers: writersMax = 1, second_writer_from = 0, gather, commit } = grouping;
  const weigh = grouping.weigh ?? (() => ({ items: 1, bytes: 0 }));
  const waiting: T[] = [];
  const weight: Weight = { items: 0, bytes: 0 };
  let [writers, underWay] = [0, 0];
  const drains: (() => void)[] = [];

  function start(): void {
    if (waiting.length === 0 || writers >= writersMax) return;
    if (writers > 0 && weight.items < second_writer_from) return;
    writers += 1;
    void write().finally(() => {
      writers -= 1;
      if (waiting.length > 0) start();
      else if (writers === 0) for (const drained of drains.splice(0)) drained();
    });
  }

  async function write(): Promise<void> {
    if (gather) await gather(waiting.length);
    const batch = waiting.splice(0, lengthOfBatch(waiting, weigh, grouping.max));
    for (const item of batch) add(weight, weigh(item), -1);
    underWay += batch.length;
    await commit(batch);
    underWay -= batch.length;
  }

  return {
    add(item) {
      waiting.push(item);
      add(weight, weigh(item), 1);
      // A turn of the event loop lets what arrived together share a statement. The global setImmediate, which the simulation
      // plays; that of node:timers/promises goes past it.
      if (gather) start();
      else if (waiting.length === 1) setImmediate(start);
    },
    waiting: () => ({ ...weight }),
    uncommitted: () => waiting.length + underWay,
    drained: () => (waiting.length + writers > 0 ? new Promise((done) => drains.push(done)) : Promise.resolve()),
  };
}

function add(sum: Weight, { items, bytes }: Weight, times: 1 | -1): void {
  sum.items += times * items;
  sum.bytes += times * bytes;
}

function lengthOfBatch<T>(waiting: readonly T[], weigh: (item: T) => Weight, max: Weight): number {
  const sum: Weight = { items: 0, bytes: 0 };
  let length = 0;
  for (const item of waiting) {
    add(sum, weigh(item), 1);
    if (length > 0 && (sum.items > max.items || sum.bytes > max.bytes)) break;
    length += 1;
  }
  return length;
}

/** What a batch came to, of those it holds: null when they are committed, else why not. */
export type Settle<T> = (items: readonly T[], failure: unknown) => void;

/**
 * One bad item must not cost the others: when a batch fails, each is tried alone. Unless `isFinal` says of the error that a
 * smaller one would fail as well.
 */
export async function commitOrSingly<T>(
  batch: readonly T[],
  commit: (batch: readonly T[]) => Promise<unknown>,
  { settle, isFinal = () => false }: { settle: Settle<T>; isFinal?(error: unknown): boolean },
): Promise<void> {
  const failure = await commit(batch);
  if (failure === null || batch.length === 1 || isFinal(failure)) return settle(batch, failure);
  for (const item of batch) settle([item], await commit([item]));
}
