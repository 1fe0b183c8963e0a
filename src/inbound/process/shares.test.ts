// Whose received mail is held, and whose is next.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../types.ts";
import { createShares, type Next } from "./shares.ts";

const LIMITS = { jobs: 8, bytes: 800, unfinished: 100, places: 4, waiting: 4 };
const job = (org_id: string, size = 10): Job => ({ mail: { org_id, size } }) as unknown as Job;
const stage = (more: Partial<typeof LIMITS> = {}) => createShares(({ mail }) => mail.size, { ...LIMITS, ...more });
const namesOf = (taken: (Next | null)[]) => taken.map((next) => next?.job.mail.org_id ?? null);

test("who is alone holds half, by number and by size, and a newcomer finds room", () => {
  const shares = stage();
  for (let at = 0; at < 4; at += 1) assert.ok(shares.admit([job("a")]));
  assert.ok(!shares.admit([job("a")]));
  assert.ok(shares.admit([job("b")]));
  const large = stage();
  assert.ok(!large.admit([job("a", 401)]));
  assert.ok(large.admit([job("a", 400)]));
  assert.ok(!large.admit([job("a", 1)]));
  assert.ok(large.admit([job("b", 200)]));
});

test("of a mail for several organizations all is held or nothing", () => {
  const shares = stage();
  for (let at = 0; at < 4; at += 1) shares.admit([job("a")]);
  assert.ok(!shares.admit([job("b"), job("a")]));
  assert.equal(shares.jobs().length, 4);
  assert.ok(shares.admit([job("b"), job("c")]));
});

test("places go to one organization after another, half of them to who is alone, and come back once", () => {
  const shares = stage();
  const held = ["a", "a", "a", "a", "b", "b"].map((org) => job(org));
  for (const each of held.slice(0, 4)) shares.hold(each);
  for (const each of held.slice(0, 4)) shares.push(each, () => undefined);
  const alone = [shares.next(), shares.next(), shares.next()];
  assert.deepEqual(namesOf(alone), ["a", "a", null]);
  for (const each of held.slice(4)) {
    shares.hold(each);
    shares.push(each, () => undefined);
  }
  assert.deepEqual(namesOf([shares.next(), shares.next()]), ["b", null], "one is left for whoever comes");
  alone[0]?.leave();
  alone[0]?.leave();
  assert.deepEqual(namesOf([shares.next(), shares.next()]), ["a", null]);
});

test("what waits for a commit counts, without a place", () => {
  const shares = stage({ unfinished: 4 });
  const held = Array.from({ length: 4 }, () => job("a"));
  for (const each of held) shares.hold(each);
  for (const each of held) shares.push(each, () => undefined);
  for (const next of [shares.next(), shares.next()]) next?.leave();
  assert.equal(shares.next(), null);
  shares.release(held[0] as Job);
  assert.equal(shares.next()?.job, held[2]);
});

test("who has enough waiting, or holds a full share, is given nothing more from the queue until little is left", () => {
  const shares = stage({ jobs: 100 });
  const held = Array.from({ length: 4 }, () => job("a"));
  for (const each of held) shares.hold(each);
  for (const each of held) shares.push(each, () => undefined);
  assert.deepEqual(shares.crowded(), ["a"]);
  assert.ok(!shares.isHungry("a"));
  assert.ok(shares.isHungry("b"));
  for (let at = 0; at < 2; at += 1) shares.next()?.leave();
  assert.deepEqual(shares.crowded(), []);
  assert.ok(!shares.isHungry("a"));
  shares.next();
  assert.ok(shares.isHungry("a"));
  assert.equal(shares.room(), 96);
});

test("one mail under two claims is two, and both are let go", () => {
  const shares = stage();
  const { mail } = job("a");
  const [stale, standing] = [job("a"), job("a")].map((each): Job => ({ ...each, mail }));
  for (const each of [stale, standing]) shares.hold(each as Job);
  for (const each of [stale, stale, standing]) shares.release(each as Job);
  assert.deepEqual([shares.jobs(), shares.room()], [[], 8]);
  for (let at = 0; at < 4; at += 1) assert.ok(shares.admit([job("a")]));
});
