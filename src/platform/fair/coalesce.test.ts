// Look-ups that share round trips.
import assert from "node:assert/strict";
import { test } from "node:test";
import { coalesce, coalesceByOrg, coalesceListsByOrg, type OrgKey } from "./coalesce.ts";

const A = "00000000-0000-7000-8000-00000000000a";
const B = "00000000-0000-7000-8000-00000000000b";

test("questions of the same moment share one load, and each key is asked once", async () => {
  const loads: string[][] = [];
  const find = coalesce<string, number>({
    keys_max: 10,
    lanes: 1,
    load: async (keys) => {
      loads.push(keys);
      return new Map(keys.filter((key) => key !== "none").map((key) => [key, key.length]));
    },
  });
  assert.deepEqual(await Promise.all(["one", "three", "one", "none"].map(find)), [3, 5, 3, undefined]);
  assert.deepEqual(loads, [["one", "three", "none"]]);
});

test("a load has at most keys_max keys, and at most `lanes` are under way", async () => {
  let now = 0;
  let most = 0;
  const sizes: number[] = [];
  const find = coalesce<number, number>({
    keys_max: 3,
    lanes: 2,
    load: async (keys) => {
      now += 1;
      most = Math.max(most, now);
      sizes.push(keys.length);
      await Promise.resolve();
      now -= 1;
      return new Map(keys.map((key) => [key, key * 2]));
    },
  });
  const numbers = [1, 2, 3, 4, 5, 6, 7, 8];
  assert.deepEqual(
    await Promise.all(numbers.map(find)),
    numbers.map((key) => key * 2),
  );
  assert.ok(Math.max(...sizes) <= 3 && most <= 2, `${sizes}, ${most}`);
});

test("a failed load rejects its callers and nobody else", async () => {
  let loads = 0;
  const find = coalesce<string, string>({
    keys_max: 10,
    lanes: 1,
    load: async (keys) => {
      loads += 1;
      if (loads === 1) throw new Error("away");
      return new Map(keys.map((key) => [key, "there"]));
    },
  });
  const [first, second] = await Promise.allSettled([find("a"), find("b")]);
  assert.deepEqual([first.status, second.status], ["rejected", "rejected"]);
  assert.equal(await find("a"), "there");
});

/** What the keys look like to `load`, and what is found under each. */
const echo = (asked: OrgKey[][]) => ({
  keys_max: 10,
  lanes: 1,
  load: async (keys: OrgKey[]) => {
    asked.push(keys);
    return keys.map(({ org_id, key }) => [org_id, key, `${org_id.at(-1)}:${key}`] as const);
  },
});

test("a key of an organization may be any text, and is no other organization's", async () => {
  const asked: OrgKey[][] = [];
  const find = coalesceByOrg<string>(echo(asked));
  const keys = ["", "/", "a b/c", "\0", `${B}/x`, "|", "constructor"];
  const wanted = [A, B].flatMap((org_id) => keys.map((key) => ({ org_id, key })));
  assert.deepEqual(
    await Promise.all(wanted.map(({ org_id, key }) => find(org_id, key))),
    wanted.map(({ org_id, key }) => `${org_id.at(-1)}:${key}`),
  );
  assert.deepEqual(asked.flat(), wanted);
});

test("what is not found is undefined, or an empty list; lists keep the order of the rows", async () => {
  const load = async () => [[A, "two", 1] as const, [B, "two", 9] as const, [A, "two", 2] as const];
  const one = coalesceByOrg<number>({ keys_max: 10, lanes: 1, load });
  assert.deepEqual(await Promise.all([one(A, "two"), one(A, "none"), one(B, "two")]), [2, undefined, 9]);
  const many = coalesceListsByOrg<number>({ keys_max: 10, lanes: 1, load });
  assert.deepEqual(await Promise.all([many(A, "two"), many(A, "none"), many(B, "two")]), [[1, 2], [], [9]]);
});
