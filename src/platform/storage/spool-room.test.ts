import assert from "node:assert/strict";
import { test } from "node:test";
import { createSpoolRoom } from "./spool-room.ts";

function roomOf(bytes: number) {
  const now = { bytes, looks: 1 };
  const room = createSpoolRoom(() => now);
  return { room, now };
}

test("what was promised counts until it is given back or written and seen", () => {
  const { room, now } = roomOf(100);
  assert.equal(room.take(60), true);
  assert.equal(room.take(50), false, "the same bytes are not promised twice");
  assert.equal(room.take(40), true);
  room.free(40);
  assert.equal(room.take(41), false);
  room.wrote(60);
  assert.equal(room.take(41), false, "no look has seen it yet");
  now.looks += 1;
  now.bytes = 100;
  assert.equal(room.take(41), false, "that look may have begun before");
  now.looks += 1;
  now.bytes = 40;
  assert.equal(room.take(41), false);
  assert.equal(room.take(40), true);
});

test("after a time without mail what was written long ago does not count twice", () => {
  const { room, now } = roomOf(100);
  assert.equal(room.take(60), true);
  room.wrote(60);
  now.looks += 50;
  now.bytes = 80;
  assert.equal(room.take(80), true);
});

test("what was taken may be promised again without being asked", () => {
  const { room } = roomOf(10);
  room.keep(30);
  assert.equal(room.take(1), false);
  room.free(30);
  assert.equal(room.take(10), true);
});
