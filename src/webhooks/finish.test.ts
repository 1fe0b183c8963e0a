import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedClock } from "../platform/clock.ts";
import { createRandom } from "../platform/random.ts";
import { judge } from "./dispatch.ts";
import { createFinisher, type FinishWorld, notesOf } from "./finish.ts";
import type { Outcome } from "./queue-queries.ts";
import type { AttemptResult, ClaimedRow } from "./types.ts";

const NOW = Date.UTC(2026, 10, 20);
const clock = fixedClock(NOW);
const random = createRandom(clock);
const world = { clock, random };

function row(attempt: number, ageMs = 0): ClaimedRow {
  return {
    org_id: random.uuid(),
    id: random.uuid(),
    webhook_id: "w",
    event_id: random.uuid(),
    event: "email.delivered",
    body_bytes: 10,
    created_at: new Date(NOW - ageMs),
    attempt,
    claim_id: random.uuid(),
  };
}

const failed: AttemptResult = { attempt_id: "a", status_code: 500, error: "the receiver answered 500", duration_ms: 9 };
const done: AttemptResult = { ...failed, status_code: 200, error: null };

test("a failure is retried until the seventh attempt; success and 410 end it at any attempt", () => {
  for (let before = 0; before < 7; before += 1) {
    assert.equal(judge(world, row(before), failed).status, before < 6 ? "retrying" : "failed");
    assert.equal(judge(world, row(before), done).status, "delivered");
    const gone = judge(world, row(before), { ...failed, status_code: 410 });
    assert.deepEqual([gone.status, gone.gone, gone.next_attempt_at], ["failed", true, null]);
  }
});

test("the delay runs from the end of the attempt, and attempts alone decide, however old the delivery is", () => {
  const next = judge(world, row(0), failed).next_attempt_at?.getTime() ?? 0;
  assert.ok(next >= NOW + 60_000 && next < NOW + 61_000);
  const monthMs = 30 * 86_400_000;
  for (let before = 0; before < 6; before += 1) {
    assert.equal(judge(world, row(before, monthMs), failed).status, "retrying", `attempt ${before + 1}`);
  }
  assert.equal(judge(world, row(6, monthMs), failed).status, "failed");
});

test("a lane learns the failures since its last success, the last success and the earliest retry", () => {
  const at = (ms: number) => new Date(NOW + ms);
  const outcomes: Outcome[] = [
    { ...judge(world, row(0), failed), at: at(1) },
    { ...judge(world, row(0), done), at: at(2) },
    { ...judge(world, row(0), failed), at: at(3), next_attempt_at: at(900) },
    { ...judge(world, row(0), failed), at: at(4), next_attempt_at: at(800) },
    { ...judge(world, row(0), failed), status: "failed", tried: false, next_attempt_at: null },
  ];
  const [note] = notesOf(outcomes);
  assert.deepEqual([note?.succeeded_at, note?.failures], [at(2), 2]);
  assert.ok(Number(note?.next_at) <= NOW + 61_000);
  assert.equal(
    notesOf([{ ...judge(world, row(0), { ...failed, status_code: 410 }), at: at(5) }])[0]?.next_at?.getTime(),
    NOW + 5,
  );
});

/** A database that fails as asked; what it commits is what its transactions were asked to finish. */
function fakeDb(fail: (outcomes: number) => Error | null) {
  const sizes: number[] = [];
  const db = {
    transaction: async (work: (tx: unknown) => Promise<unknown>) => {
      let size = 0;
      const tx = {
        execute: async (text: string, values: unknown[][]) => {
          if (text.includes("insert into webhook_delivery")) size = values[0]?.length ?? 0;
          return size;
        },
        query: async () => [],
      };
      await work(tx);
      const error = fail(size);
      if (error) throw error;
      sizes.push(size);
    },
  };
  return { sizes, db };
}

function finisherOn(db: object, patienceMs: number) {
  const real = { now: () => NOW, monotonic: () => performance.now(), setSkew: () => undefined };
  const quiet = { warn: () => undefined, error: () => undefined };
  return createFinisher({ db, clock: real, log: quiet } as unknown as FinishWorld, patienceMs);
}

test("outcomes that end together are committed together, at most 500 at a time", async () => {
  const { db, sizes } = fakeDb(() => null);
  const finisher = finisherOn(db, 1_000);
  for (let index = 0; index < 1_100; index += 1) finisher.add(judge(world, row(0), done));
  assert.equal(finisher.pending(), 1_100);
  await finisher.drained();
  assert.deepEqual(sizes, [500, 500, 100]);
  assert.equal(finisher.pending(), 0);
});

test("a database that cannot be reached is asked again; the outcomes are kept meanwhile", async () => {
  let refusals = 2;
  const { db, sizes } = fakeDb(() => {
    refusals -= 1;
    return refusals >= 0 ? Object.assign(new Error("connect"), { code: "ECONNREFUSED" }) : null;
  });
  const finisher = finisherOn(db, 5_000);
  finisher.add(judge(world, row(0), done));
  await finisher.drained();
  assert.deepEqual(sizes, [1]);
});

test("when the database stays away too long the outcomes are given up, and later ones go through", async () => {
  let away = true;
  const { db, sizes } = fakeDb(() => (away ? Object.assign(new Error("connect"), { code: "ECONNREFUSED" }) : null));
  const finisher = finisherOn(db, 0);
  finisher.add(judge(world, row(0), done));
  await finisher.drained();
  away = false;
  finisher.add(judge(world, row(0), done));
  await finisher.drained();
  assert.deepEqual(sizes, [1]);
});

test("an outcome that the database refuses costs the others of its batch nothing", async () => {
  const { db, sizes } = fakeDb((size) => (size > 1 ? Object.assign(new Error("no"), { code: "22P02" }) : null));
  const finisher = finisherOn(db, 5_000);
  for (let index = 0; index < 3; index += 1) finisher.add(judge(world, row(0), done));
  await finisher.drained();
  assert.deepEqual(sizes, [1, 1, 1]);
});
