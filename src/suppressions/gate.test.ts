import assert from "node:assert/strict";
import { it } from "node:test";
import { createGate } from "./gate.ts";

const never = new AbortController().signal;
const settled = () => new Promise(setImmediate);

it("lets the next one in when somebody leaves, in the order of arrival", async () => {
  const gate = createGate({ open_max: 1, waiting_max: 5 });
  const order: string[] = [];
  const first = await gate.enter(never);
  const others = ["second", "third"].map(async (name) => {
    const leave = await gate.enter(never);
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
  const gate = createGate({ open_max: 1, waiting_max: 1 });
  const leave = await gate.enter(never);
  const waiting = gate.enter(never);
  assert.equal(await gate.enter(never), null);
  leave?.();
  assert.notEqual(await waiting, null);
});

it("forgets who stops waiting, and lets nobody in who is gone already", async () => {
  const gate = createGate({ open_max: 1, waiting_max: 1 });
  const gone = new AbortController();
  const leave = await gate.enter(never);
  const waiting = gate.enter(gone.signal);
  gone.abort();
  assert.equal(await waiting, null);
  assert.equal(await gate.enter(gone.signal), null);
  const next = gate.enter(never);
  leave?.();
  assert.notEqual(await next, null);
});
