import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { commitOrSingly, createGroupCommit, type Grouping } from "./group-commit.ts";

type Batch = { items: number[]; commit: PromiseWithResolvers<void> };

/** Batches as they begin; each is committed when the test says so. */
function grouping(options: Partial<Grouping<number>> = {}) {
  const batches: Batch[] = [];
  const group = createGroupCommit<number>({
    max: { items: 3, bytes: 100 },
    commit(items) {
      const commit = Promise.withResolvers<void>();
      batches.push({ items, commit });
      return commit.promise;
    },
    ...options,
  });
  const begun = () => batches.map(({ items }) => items.join(" "));
  return { group, batches, begun };
}

const turn = () => new Promise((done) => setImmediate(done));

async function commitNext({ batches }: ReturnType<typeof grouping>, at: number): Promise<void> {
  batches[at]?.commit.resolve();
  await turn();
}

describe("a group commit", () => {
  test("takes together what came in one moment, and what came meanwhile next", async () => {
    const given = grouping();
    for (const item of [1, 2]) given.group.add(item);
    assert.deepEqual(given.begun(), []);
    await turn();
    for (const item of [3, 4, 5, 6]) given.group.add(item);
    await turn();
    assert.deepEqual(given.begun(), ["1 2"]);
    assert.deepEqual([given.group.waiting().items, given.group.uncommitted()], [4, 6]);
    await commitNext(given, 0);
    assert.deepEqual(given.begun(), ["1 2", "3 4 5"]);
    await commitNext(given, 1);
    assert.deepEqual(given.begun(), ["1 2", "3 4 5", "6"]);
  });

  test("is drained once all is committed, at once where there is nothing", async () => {
    const given = grouping();
    await given.group.drained();
    given.group.add(1);
    let isDrained = false;
    const drained = given.group.drained().then(() => {
      isDrained = true;
    });
    await turn();
    given.group.add(2);
    await commitNext(given, 0);
    assert.equal(isDrained, false);
    await commitNext(given, 1);
    await drained;
    assert.equal(given.group.uncommitted(), 0);
  });

  test("divides no item, and lets one that is too large go alone", async () => {
    const weigh = (item: number) => ({ items: 1, bytes: item });
    const given = grouping({ weigh });
    for (const item of [60, 60, 500, 1]) given.group.add(item);
    assert.deepEqual(given.group.waiting(), { items: 4, bytes: 621 });
    await turn();
    for (const at of [0, 1, 2, 3]) await commitNext(given, at);
    assert.deepEqual(given.begun(), ["60", "60", "500", "1"]);
  });

  test("begins a second batch beside the first only with enough items", async () => {
    const given = grouping({ writers: 2, second_writer_from: 2 });
    given.group.add(1);
    await turn();
    given.group.add(2);
    await turn();
    assert.deepEqual(given.begun(), ["1"]);
    await commitNext(given, 0);
    for (const item of [3, 4]) given.group.add(item);
    await turn();
    assert.deepEqual(given.begun(), ["1", "2", "3 4"]);
  });

  test("waits for `gather` before each batch", async () => {
    const gathered: PromiseWithResolvers<void>[] = [];
    const gather = () => {
      gathered.push(Promise.withResolvers<void>());
      return gathered.at(-1)!.promise;
    };
    const given = grouping({ gather });
    given.group.add(1);
    await turn();
    given.group.add(2);
    assert.deepEqual(given.begun(), []);
    gathered[0]?.resolve();
    await turn();
    assert.deepEqual(given.begun(), ["1 2"]);
  });
});

describe("a batch that fails", () => {
  const bad = new Error("bad");
  const play = async (items: number[], isFinal?: (error: unknown) => boolean) => {
    const [commits, settled]: [string[], [number[], unknown][]] = [[], []];
    await commitOrSingly(
      items,
      async (some) => {
        commits.push(some.join(" "));
        return some.includes(2) ? bad : null;
      },
      { settle: (some, failure) => settled.push([[...some], failure]), ...(isFinal ? { isFinal } : {}) },
    );
    return { commits, settled };
  };

  test("is tried one by one, so that only the bad item fails", async () => {
    assert.deepEqual(await play([1, 2, 3]), {
      commits: ["1 2 3", "1", "2", "3"],
      settled: [
        [[1], null],
        [[2], bad],
        [[3], null],
      ],
    });
    assert.deepEqual((await play([1, 3])).commits, ["1 3"]);
  });

  test("is not tried again when it is one item, or the error is final", async () => {
    assert.deepEqual((await play([2])).commits, ["2"]);
    const { commits, settled } = await play([1, 2], () => true);
    assert.deepEqual([commits, settled], [["1 2"], [[[1, 2], bad]]]);
  });
});
