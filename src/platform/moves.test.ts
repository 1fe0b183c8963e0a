import assert from "node:assert/strict";
import { test } from "node:test";
import { createMoves } from "./moves.ts";

/** What has come of a promise by now. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<boolean>((resolve) => setImmediate(resolve, false))]);
}

test("what had begun is waited for, and nothing that begins later", async () => {
  const moves = createMoves();
  const endFirst = moves.begin();
  const endSecond = moves.begin();
  const ended = moves.begunEnded();
  moves.begin();
  endFirst();
  assert.equal(await isDone(ended), false);
  endSecond();
  assert.equal(await isDone(ended), true);
});

test("a later wait includes what an earlier one waits for", async () => {
  const moves = createMoves();
  const end = moves.begin();
  const first = moves.begunEnded();
  const second = moves.begunEnded();
  assert.equal(await isDone(second), false);
  end();
  assert.equal(await isDone(Promise.all([first, second])), true);
});

test("ended twice counts once", async () => {
  const moves = createMoves();
  const end = moves.begin();
  moves.begin();
  end();
  end();
  assert.equal(await isDone(moves.begunEnded()), false);
});

test("nothing begun: over at once", async () => {
  assert.equal(await isDone(createMoves().begunEnded()), true);
});
