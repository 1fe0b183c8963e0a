import assert from "node:assert/strict";
import { test } from "node:test";
import { fairShare } from "./leases.ts";

const SOURCE = "s";
const lease = (slot: number, node_id: number | null) => ({ source_id: SOURCE, slot, node_id });

test("a lone node takes every free slot", () => {
  const all = Array.from({ length: 16 }, (_, slot) => lease(slot, null));
  const { take, give, drain } = fairShare(all, [1], 1, () => true);
  assert.equal(take.length, 16);
  assert.deepEqual([give, drain], [[], []]);
});

test("when a second node joins, the first gives idle slots away and lets busy ones run dry", () => {
  const all = Array.from({ length: 16 }, (_, slot) => lease(slot, 1));
  const { take, give, drain } = fairShare(all, [1, 2], 1, ({ slot }) => slot < 3);
  assert.deepEqual(take, []);
  assert.deepEqual(
    give.map(({ slot }) => slot),
    [0, 1, 2],
  );
  assert.equal(drain.length, 5);
  assert.ok(drain.every(({ slot }) => slot >= 3));
});

test("shares differ by at most one and never overlap", () => {
  const nodes = [4, 7, 9];
  let all = Array.from({ length: 16 }, (_, slot) => lease(slot, null));
  for (const node of nodes) {
    const { take } = fairShare(all, nodes, node, () => true);
    all = all.map((one) => (take.some(({ slot }) => slot === one.slot) ? { ...one, node_id: node } : one));
  }
  const counts = nodes.map((node) => all.filter(({ node_id }) => node_id === node).length);
  assert.deepEqual(counts.sort(), [5, 5, 6]);
  assert.ok(all.every(({ node_id }) => node_id !== null));
});

test("a node that is not registered takes nothing", () => {
  assert.deepEqual(
    fairShare([lease(0, null)], [1], 2, () => true),
    { take: [], give: [], drain: [] },
  );
});
