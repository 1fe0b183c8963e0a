import assert from "node:assert/strict";
import { test } from "node:test";
import { createFairGate, createFairPlaces } from "./fair-gate.ts";

/** Tasks that run until they are ended. */
function stage(places: number) {
  const gate = createFairGate(places);
  const running: { who: string; end(): void }[] = [];
  const turn = () => new Promise((done) => setImmediate(done));
  return {
    turn,
    begin(who: string): Promise<string> {
      return gate(who, () => new Promise((done) => running.push({ who, end: () => done(who) })));
    },
    count: (who: string) => running.filter((task) => task.who === who).length,
    async end(who: string) {
      const at = running.findIndex((task) => task.who === who);
      running.splice(at, 1)[0]?.end();
      await turn();
    },
  };
}

test("who is alone has half of the places, and a newcomer begins at once", async () => {
  const { begin, count, turn } = stage(8);
  for (let n = 0; n < 10_000; n += 1) void begin("flood");
  await turn();
  assert.equal(count("flood"), 4);
  void begin("shop");
  await turn();
  assert.equal(count("shop"), 1);
});

test("all that waits has its turn, in order", async () => {
  const { begin, end, turn } = stage(4);
  const done: number[] = [];
  const all = Array.from({ length: 50 }, (_none, n) => begin("a").then(() => done.push(n)));
  await turn();
  for (let n = 0; n < 50; n += 1) await end("a");
  await Promise.all(all);
  assert.deepEqual(
    done,
    Array.from({ length: 50 }, (_none, n) => n),
  );
});

test("a task that fails leaves its place", async () => {
  const gate = createFairGate(2);
  for (let n = 0; n < 5; n += 1)
    await assert.rejects(
      gate("a", () => Promise.reject(new Error("no"))),
      /no/,
    );
  assert.equal(await gate("a", async () => 7), 7);
});

test("who stops waiting, or is one too many of their organization, gets no place; others' places are as before", async () => {
  const places = createFairPlaces({ places: 4, waiting_max: 2 });
  const held = [await places.enter("a"), await places.enter("a")];
  assert.equal(places.enterNow("a"), null);
  const gone = new AbortController();
  const [impatient, patient] = [places.enter("a", gone.signal), places.enter("a")];
  assert.equal(await places.enter("a"), null);
  const newcomer = places.enterNow("b");
  assert.ok(newcomer);
  gone.abort();
  assert.equal(await impatient, null);
  assert.equal(await places.enter("a", gone.signal), null);
  newcomer();
  held[0]?.();
  const leave = await patient;
  assert.ok(leave);
  leave();
  leave();
  held[1]?.();
  assert.deepEqual([places.enterNow("a"), places.enterNow("a"), places.enterNow("a")].map(Boolean), [
    true,
    true,
    false,
  ]);
});
