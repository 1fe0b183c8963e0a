import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedClock } from "./clock.ts";
import { createRandom, derivedUuid, seededRandom, uuidFloor, uuidTime } from "./random.ts";

const NOW = Date.UTC(2026, 3, 1);
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test("ids are UUIDv7 of the clock's time", () => {
  const id = createRandom(fixedClock(NOW)).uuid();
  assert.match(id, UUID_V7);
  assert.equal(uuidTime(id), NOW);
});

test("a hundred thousand ids of one millisecond are distinct, ordered, and borrow little time", () => {
  const random = createRandom(fixedClock(NOW));
  let last = "";
  for (let count = 0; count < 100_000; count += 1) {
    const id = random.uuid();
    assert.ok(id > last, `${id} does not come after ${last}`);
    last = id;
  }
  assert.match(last, UUID_V7);
  assert.ok(uuidTime(last) - NOW < 60, `borrowed ${uuidTime(last) - NOW} ms`);
});

test("ids stay ordered when the clock steps back a little, and follow it when it is set back", () => {
  const clock = fixedClock(NOW);
  const random = createRandom(clock);
  const first = random.uuid();
  clock.advance(-5_000);
  assert.ok(random.uuid() > first);
  clock.advance(-86_400_000);
  assert.equal(uuidTime(random.uuid()), NOW - 5_000 - 86_400_000);
});

test("the floor of a millisecond is not above its ids and above all earlier ones", () => {
  const clock = fixedClock(NOW);
  const random = createRandom(clock);
  const before = Array.from({ length: 100 }, () => random.uuid());
  clock.advance(1_000);
  const floor = uuidFloor(NOW + 1_000);
  assert.match(floor, UUID_V7);
  assert.equal(uuidTime(floor), NOW + 1_000);
  assert.ok(before.every((id) => id < floor));
  for (let count = 0; count < 100; count += 1) assert.ok(random.uuid() >= floor);
});

test("a derived id is of its origin's time, and the same for the same names alone", () => {
  const origin = createRandom({ now: () => NOW }).uuid();
  const id = derivedUuid(origin, 0, "key");
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(uuidTime(id), uuidTime(origin));
  assert.equal(derivedUuid(origin, 0, "key"), id);
  const others = [derivedUuid(origin, 1, "key"), derivedUuid(origin, 0, "yek"), derivedUuid(origin, "0", "key")];
  assert.equal(new Set([id, ...others]).size, 4);
});

test("what is not a UUIDv7 has no time", () => {
  for (const text of ["", "x", "9f1c2d3e-0000-4000-8000-000000000000", "0196-7"])
    assert.ok(Number.isNaN(uuidTime(text)));
  assert.equal(uuidTime("0195EF3A-1B00-7000-8000-000000000000"), 0x0195ef3a1b00);
});

test("tokens have their length and use all 62 characters about equally", () => {
  const token = createRandom(fixedClock(NOW)).token(4_096).repeat(1);
  assert.match(token, /^[0-9A-Za-z]{4096}$/);
  const counts = new Map<string, number>();
  for (const character of token) counts.set(character, (counts.get(character) ?? 0) + 1);
  assert.equal(counts.size, 62);
  // 66 expected each, a standard deviation of 8: eight of them is one in 10^15.
  for (const [character, count] of counts) assert.ok(count > 2 && count < 132, `${character} came ${count} times`);
});

test("floats lie in [0, 1) and fill it", () => {
  const random = createRandom(fixedClock(NOW));
  const values = Array.from({ length: 10_000 }, () => random.float());
  assert.ok(values.every((value) => value >= 0 && value < 1));
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  assert.ok(Math.abs(mean - 0.5) < 0.03, `mean ${mean}`);
});

test("bytes are copies: later draws do not change them", () => {
  const random = createRandom(fixedClock(NOW));
  const bytes = random.bytes(16);
  const copy = Buffer.from(bytes);
  for (let count = 0; count < 2_000; count += 1) random.bytes(16);
  assert.deepEqual(bytes, copy);
  assert.equal(random.bytes(65_536).length, 65_536);
});

test("a length past the limit is a bug of the caller", () => {
  const random = createRandom(fixedClock(NOW));
  assert.throws(() => random.bytes(65_537), RangeError);
  assert.throws(() => random.token(4_097), RangeError);
  assert.throws(() => random.token(-1), RangeError);
});

test("a seed gives the same sequence again, another seed another", () => {
  const draw = (seed: string) => {
    const random = seededRandom(seed, fixedClock(NOW));
    return [random.uuid(), random.token(20), random.float(), random.bytes(100).toString("hex"), random.uuid()];
  };
  assert.deepEqual(draw("a"), draw("a"));
  assert.notDeepEqual(draw("a"), draw("b"));
});
