import assert from "node:assert/strict";
import { test } from "node:test";
import { CLASS_BULK, CLASS_TRANSACTIONAL, type Job } from "../types.ts";
import { createFairness } from "./fairness.ts";

const job = (org: string, lane: number, n: number): Job => ({ org_id: org, lane_id: lane, position: n }) as Job;

test("an organization with a thousand messages holds one turn beside one with a single message", () => {
  const fair = createFairness();
  for (let n = 0; n < 1_000; n += 1)
    fair.push({ id: 1, org_id: "big", domain: "a.example", class: CLASS_TRANSACTIONAL }, job("big", 1, n));
  fair.push({ id: 2, org_id: "small", domain: "a.example", class: CLASS_TRANSACTIONAL }, job("small", 2, 0));
  const firstTwo = [fair.next()?.org_id, fair.next()?.org_id].sort();
  assert.deepEqual(firstTwo, ["big", "small"]);
});

test("an organization's lanes take turns, each in its own order", () => {
  const fair = createFairness();
  for (let n = 0; n < 3; n += 1) {
    fair.push({ id: 1, org_id: "a", domain: "a.example", class: CLASS_TRANSACTIONAL }, job("a", 1, n));
    fair.push({ id: 2, org_id: "a", domain: "a.example", class: CLASS_TRANSACTIONAL }, job("a", 2, n));
  }
  const order = Array.from({ length: 6 }, () => fair.next()).map((next) => `${next?.lane_id}:${next?.position}`);
  assert.deepEqual(order, ["1:0", "2:0", "1:1", "2:1", "1:2", "2:2"]);
});

test("bulk mail gets one turn in nine while transactional mail waits, and all turns when none does", () => {
  const fair = createFairness();
  for (let n = 0; n < 90; n += 1) {
    fair.push({ id: 1, org_id: "a", domain: "a.example", class: CLASS_TRANSACTIONAL }, job("a", 1, n));
    fair.push({ id: 2, org_id: "a", domain: "a.example", class: CLASS_BULK }, job("a", 2, n));
  }
  const first = Array.from({ length: 90 }, () => fair.next()?.lane_id);
  assert.equal(first.filter((lane) => lane === 2).length, 10);
  const rest = Array.from({ length: 90 }, () => fair.next());
  assert.ok(rest.every((next) => next !== null));
  assert.equal(fair.next(), null);
});

test("what is pushed comes out once, also when pushes and takes are mixed", () => {
  const fair = createFairness();
  const seen = new Set<string>();
  let pushed = 0;
  for (let round = 0; round < 2_000; round += 1) {
    const lane = (round * 7) % 5;
    fair.push(
      { id: lane, org_id: `org${round % 3}`, domain: "a.example", class: round % 2 },
      job(`org${round % 3}`, lane, pushed++),
    );
    if (round % 3 !== 0) seen.add(String(fair.next()?.position));
  }
  for (const next of fair.drain()) seen.add(String(next.position));
  assert.equal(seen.size, pushed);
  assert.equal(fair.size(), 0);
});

test("what may not be taken is passed over, keeps its place in its lane, and holds up no other", () => {
  const fair = createFairness();
  for (let n = 0; n < 3; n += 1)
    fair.push({ id: 1, org_id: "large", domain: "a.example", class: CLASS_TRANSACTIONAL }, job("large", 1, n));
  for (let n = 0; n < 3; n += 1)
    fair.push({ id: 2, org_id: "small", domain: "a.example", class: CLASS_TRANSACTIONAL }, job("small", 2, n));
  const small = (next: Job): boolean => next.org_id === "small";
  assert.deepEqual(
    [fair.next(small), fair.next(small), fair.next(small)].map((next) => next?.position),
    [0, 1, 2],
  );
  assert.equal(fair.next(small), null);
  assert.equal(fair.size(), 3);
  assert.deepEqual(
    [fair.next(), fair.next(), fair.next()].map((next) => next?.position),
    [0, 1, 2],
  );
});

test("a lane behind many that may not be taken is found, turn by turn", () => {
  const fair = createFairness();
  for (let lane = 0; lane < 40; lane += 1)
    fair.push({ id: lane, org_id: "a", domain: "a.example", class: CLASS_BULK }, job("a", lane, 0));
  const last = (next: Job): boolean => next.lane_id === 39;
  const turns = Array.from({ length: 10 }, () => fair.next(last));
  assert.equal(turns.filter((next) => next?.lane_id === 39).length, 1);
  assert.equal(fair.size(), 39);
});

test("one organization's messages are taken out of both classes, and the others keep their turns", () => {
  const fair = createFairness();
  for (let n = 0; n < 3; n += 1) {
    fair.push({ id: 1, org_id: "a", domain: "a.example", class: CLASS_TRANSACTIONAL }, job("a", 1, n));
    fair.push({ id: 2, org_id: "a", domain: "a.example", class: CLASS_BULK }, job("a", 2, n));
    fair.push({ id: 3, org_id: "b", domain: "a.example", class: CLASS_TRANSACTIONAL }, job("b", 3, n));
  }
  assert.equal(fair.next()?.org_id, "a");
  assert.equal(fair.drainOf("a").length, 5);
  assert.equal(fair.drainOf("nobody").length, 0);
  assert.equal(fair.size(), 3);
  assert.deepEqual(
    [1, 2, 3, 4].map(() => fair.next()?.org_id),
    ["b", "b", "b", undefined],
  );
});

test("what goes to some domains is taken out, and the others keep their order and their turns", () => {
  const fair = createFairness();
  const to = (id: number, org_id: string, domain: string) => ({ id, org_id, domain, class: CLASS_TRANSACTIONAL });
  for (let n = 0; n < 3; n += 1) {
    fair.push(to(1, "a", "held.example"), job("a", 1, n));
    fair.push(to(2, "a", "other.example"), job("a", 2, n));
    fair.push(to(3, "b", "held.example"), job("b", 3, n));
  }
  assert.equal(fair.next()?.lane_id, 1);
  assert.deepEqual(
    fair
      .drainTo((domain) => domain === "held.example")
      .map(({ lane_id, position }) => `${lane_id}:${position}`)
      .sort(),
    ["1:1", "1:2", "3:0", "3:1", "3:2"],
  );
  assert.equal(fair.size(), 3);
  assert.deepEqual(
    [1, 2, 3, 4].map(() => fair.next()?.position),
    [0, 1, 2, undefined],
  );
});

test("one message is taken out of the middle of its lane, and the others keep their order", () => {
  const fair = createFairness();
  for (let n = 0; n < 4; n += 1)
    fair.push({ id: 1, org_id: "a", domain: "a.example", class: CLASS_TRANSACTIONAL }, job("a", 1, n));
  assert.equal(fair.next()?.position, 0);
  assert.equal(fair.drainOf("a", ({ position }) => position === 2).length, 1);
  assert.deepEqual(
    [1, 2, 3].map(() => fair.next()?.position),
    [1, 3, undefined],
  );
  fair.push({ id: 1, org_id: "a", domain: "a.example", class: CLASS_TRANSACTIONAL }, job("a", 1, 9));
  assert.equal(fair.drainOf("a", ({ position }) => position === 9).length, 1);
  assert.deepEqual([fair.size(), fair.next()], [0, null]);
});
