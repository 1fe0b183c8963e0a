import assert from "node:assert/strict";
import { test } from "node:test";
import { createMetrics } from "../platform/process/metrics.ts";
import type { World } from "../platform/world.ts";
import type { VersionKey } from "./queries.ts";
import { parsedVersions } from "./versions.ts";

const ORG = "0198c0de-0000-7000-8000-000000000001";
const key = (n: number, version = 1): VersionKey => ({
  org_id: ORG,
  id: `0198c0de-0000-7000-8000-${`${n}`.padStart(12, "0")}`,
  version,
});

/** Answers the look-up of versions with sources of 1,000 bytes, and notes how many were asked for. */
function fakeDb(): { world: Pick<World, "db" | "clock" | "metrics">; asked: number[] } {
  const asked: number[] = [];
  const query = async (_text: string, [orgs, ids, versions]: [string[], string[], number[]]) => {
    asked.push(ids.length);
    return ids
      .map((id, at) => ({ org_id: orgs[at], id, version: versions[at] as number }))
      .filter(({ version }) => version < 9)
      .map((row) => ({ ...row, subject: "{{a}}", html_body: "x".repeat(1_000), text_body: null, variables: [] }));
  };
  return { world: { db: { query }, clock: { monotonic: () => 0 }, metrics: createMetrics() } as never, asked };
}

test("a version is read and parsed once, also when many ask at once", async () => {
  const { world, asked } = fakeDb();
  const find = parsedVersions(world);
  const [first, ...others] = await Promise.all(Array.from({ length: 20 }, () => find(key(1))));
  assert.ok(first);
  for (const other of others) assert.equal(other, first);
  assert.equal(await find(key(1)), first);
  assert.deepEqual(asked, [1]);
  assert.notEqual(await find(key(1, 2)), first);
  assert.deepEqual(asked, [1, 1]);
});

test("a version that is not there is undefined, and asked for again", async () => {
  const { world, asked } = fakeDb();
  const find = parsedVersions(world);
  assert.equal(await find(key(1, 9)), undefined);
  assert.equal(await find(key(1, 9)), undefined);
  assert.deepEqual(asked, [1, 1]);
});

test("above its weight the least recently used ones go, never the newest", async () => {
  const { world, asked } = fakeDb();
  // Each weighs 1,000 + 2 × 1,005 + 500 = 3,510: two fit.
  const find = parsedVersions(world, 7_200);
  for (const n of [1, 2, 1, 3]) await find(key(n));
  assert.equal(asked.length, 3);
  await find(key(1));
  assert.equal(asked.length, 3);
  await find(key(2));
  assert.equal(asked.length, 4);
  const tiny = parsedVersions(world, 1);
  await tiny(key(1));
  await tiny(key(1));
  assert.equal(asked.length, 5);
});
