import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job, Lane } from "../types.ts";
import { createMemory } from "./memory.ts";

const lane = (id: number): Lane => ({
  id,
  org_id: "o",
  source_id: "s",
  slot: id % 16,
  domain: "d",
  class: 0,
  relay_domain_id: null,
});
const done = (id: number, bytes: number): Job => ({ lane_id: id, mime: Buffer.alloc(bytes) }) as unknown as Job;

test("a lane hands over until its window is full, then older mail in the queue goes first", () => {
  const memory = createMemory();
  let admitted = 0;
  while (memory.admit(lane(1), 10, 0)) admitted += 1;
  assert.equal(admitted, 4_000);
  memory.finish(done(1, 10));
  assert.equal(memory.admit(lane(1), 10, 0), false, "there is room, but a backlog waits in the queue");
  memory.setBacklog(1, false);
  assert.equal(memory.admit(lane(1), 10, 0), true);
});

test("large messages fill the memory by their bytes", () => {
  const memory = createMemory();
  const large = 50 * 1024 * 1024;
  assert.deepEqual(
    [1, 2, 3, 4].map((id) => memory.admit(lane(id), large, 0)),
    [true, true, true, false],
  );
});

test("a slot is idle again once its last delivery is finished", () => {
  const memory = createMemory();
  memory.admit(lane(1), 5, 0);
  assert.equal(memory.isIdle({ source_id: "s", slot: 1 }), false);
  memory.finish(done(1, 5));
  assert.equal(memory.isIdle({ source_id: "s", slot: 1 }), true);
  assert.equal(memory.size(), 0);
});

test("a paused lane hands nothing over until its time or its resumption", () => {
  const memory = createMemory();
  memory.admit(lane(1), 1, 0);
  memory.pause([1], 1_000);
  assert.equal(memory.admit(lane(1), 1, 999), false);
  assert.equal(memory.admit(lane(1), 1, 1_001), true);
  memory.pause([1], 5_000);
  memory.resume([1]);
  assert.equal(memory.admit(lane(1), 1, 2_000), true);
});

test("a lane is paused though nothing of it is held, and what was held of it is gone", () => {
  const memory = createMemory();
  memory.pause([1], 1_000);
  assert.equal(memory.admit(lane(1), 1, 999), false);
  memory.admit(lane(2), 1, 0);
  memory.finish(done(2, 1));
  memory.pause([2], 1_000);
  memory.dropPauses(999);
  assert.equal(memory.admit(lane(2), 1, 999), false);
  assert.equal(memory.admit(lane(2), 1, 1_000), true);
});

test("an organization holds half of the memory when it is alone, and a newcomer finds room at once", () => {
  const memory = createMemory();
  const other = (id: number): Lane => ({ ...lane(id), org_id: "p" });
  for (let id = 1; id <= 20_000; id += 1) {
    if (memory.crowded().length > 0) break;
    memory.claimed(lane(id));
  }
  assert.equal(memory.size(), 10_000);
  assert.deepEqual(memory.crowded(), ["o"]);
  assert.equal(memory.admit(lane(1), 1, 0), false, "what it brings itself waits in the queue");
  assert.equal(memory.hasBacklog(), false, "it is no use to claim for it");
  assert.equal(memory.admit(other(30_000), 1, 0), true);
  for (let id = 30_001; id <= 40_000 && !memory.crowded().includes("p"); id += 1) memory.claimed(other(id));
  assert.equal(memory.size(), 15_000);
  assert.ok(memory.roomInAll() > 0, "and there is room for a third");
});

test("an organization that held its share is given more once a whole claim fits", () => {
  const memory = createMemory();
  for (let id = 1; id <= 10_000; id += 1) memory.claimed(lane(id));
  memory.setBacklog(1, true);
  assert.deepEqual([memory.crowded(), memory.hasBacklog()], [["o"], false]);
  for (let id = 1; id <= 199; id += 1) memory.finish(done(id, 0));
  assert.deepEqual([memory.crowded(), memory.hasBacklog()], [["o"], false]);
  memory.finish(done(200, 0));
  assert.deepEqual([memory.crowded(), memory.hasBacklog()], [[], true]);
});
