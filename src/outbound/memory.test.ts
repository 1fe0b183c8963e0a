import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemory } from "./memory.ts";
import type { Job, Lane } from "./types.ts";

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
