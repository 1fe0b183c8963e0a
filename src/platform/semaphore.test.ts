import assert from "node:assert/strict";
import { it } from "node:test";
import { createSemaphore } from "./semaphore.ts";

const never = new AbortController().signal;
const settled = () => new Promise(setImmediate);

it("lets the next one in when somebody leaves, in the order of arrival", async () => {
  const semaphore = createSemaphore({ open_max: 1, waiting_max: 5 });
  const order: string[] = [];
  const first = await semaphore.enter(never);
  const others = ["second", "third"].map(async (name) => {
    const leave = await semaphore.enter(never);
    order.push(name);
    return leave;
  });
  await settled();
  assert.deepEqual(order, []);
  first?.();
  first?.();
  await settled();
  assert.deepEqual(order, ["second"]);
  (await others[0])?.();
  await others[1];
  assert.deepEqual(order, ["second", "third"]);
});

it("turns away beyond the number that may wait", async () => {
  const semaphore = createSemaphore({ open_max: 1, waiting_max: 1 });
  const leave = await semaphore.enter(never);
  const waiting = semaphore.enter(never);
  assert.equal(await semaphore.enter(never), null);
  leave?.();
  assert.notEqual(await waiting, null);
});

it("forgets who stops waiting, and lets nobody in who is gone already", async () => {
  const semaphore = createSemaphore({ open_max: 1, waiting_max: 1 });
  const gone = new AbortController();
  const leave = await semaphore.enter(never);
  const waiting = semaphore.enter(gone.signal);
  gone.abort();
  assert.equal(await waiting, null);
  assert.equal(await semaphore.enter(gone.signal), null);
  const next = semaphore.enter(never);
  leave?.();
  assert.notEqual(await next, null);
});

it("does a task in its turn, gives the place back also when it fails, and does none beyond the number", async () => {
  const semaphore = createSemaphore({ open_max: 1, waiting_max: 1 });
  const first = Promise.withResolvers<string>();
  const done = [semaphore.run(() => first.promise), semaphore.run(async () => "second")];
  assert.equal(await semaphore.run(async () => "third"), null);
  first.reject(new Error("no"));
  await assert.rejects(done[0]!, /no/);
  assert.equal(await done[1], "second");
  assert.equal(await semaphore.run(async () => "fourth"), "fourth");
});
