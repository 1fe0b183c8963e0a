import assert from "node:assert/strict";
import { test } from "node:test";
import { createShares, type Pace, type Sized, type Slot } from "./shares.ts";

const KINDS = [
  { bytes_max: 1_000, slots: 8 },
  { bytes_max: Number.POSITIVE_INFINITY, slots: 2 },
];

type Waiting = { name: string; pace: Pace; deliveries: Sized[] };

const delivery = (org_id: string, size = 10): Sized => ({ job: { org_id, about: { size } } });

/** Paths with deliveries that begin as soon as they may; `done` ends one of an organization. */
function stage() {
  const begun: { path: string; delivery: Sized; slot: Slot }[] = [];
  const started: string[] = [];
  const shares = createShares<Waiting>((path) => drive(path), KINDS, 6);

  function drive(path: Waiting): void {
    for (let [next] = path.deliveries; next; [next] = path.deliveries) {
      const slot = shares.enter(path, next);
      if (!slot) return;
      path.deliveries.shift();
      begun.push({ path: path.name, delivery: next, slot });
      started.push(`${path.name}:${next.job.org_id}`);
    }
  }

  return {
    shares,
    started,
    path(name: string, deliveries: Sized[], pace: Pace = "quick"): Waiting {
      const path = { name, pace, deliveries };
      drive(path);
      return path;
    },
    running: (org: string) => begun.filter(({ delivery: { job } }) => job.org_id === org).length,
    slotOf: (name: string) => begun.find(({ path }) => path === name)?.slot as Slot,
    done(org: string): void {
      const at = begun.findIndex(({ delivery: { job } }) => job.org_id === org);
      const [ended] = begun.splice(at, 1);
      ended?.slot.leave();
    },
  };
}

test("an organization with ten thousand destinations has half of the slots, and another begins at once", () => {
  const { path, running, shares } = stage();
  for (let n = 0; n < 10_000; n += 1) path(`dead ${n}`, [delivery("flood")]);
  assert.equal(running("flood"), 4);
  path("shop", [delivery("shop"), delivery("shop"), delivery("shop")]);
  assert.equal(running("shop"), 2);
  assert.equal(shares.size(), 6);
});

test("beside each other two organizations come to equal shares", () => {
  const { path, running, done } = stage();
  for (let n = 0; n < 100; n += 1) path(`dead ${n}`, [delivery("flood")]);
  path(
    "shop",
    Array.from({ length: 100 }, () => delivery("shop")),
  );
  for (let n = 0; n < 20; n += 1) done(n % 2 === 0 ? "flood" : "shop");
  assert.ok(Math.abs(running("flood") - running("shop")) <= 1, `${running("flood")} and ${running("shop")}`);
  assert.ok(running("shop") >= 2);
});

test("every path of an organization gets its turn, however much the first ones hold", () => {
  const { path, started, done } = stage();
  path(
    "first",
    Array.from({ length: 50 }, () => delivery("a")),
  );
  for (let n = 0; n < 10; n += 1) path(`later ${n}`, [delivery("a")]);
  for (let n = 0; n < 70; n += 1) if (started.length > n) done("a");
  for (let n = 0; n < 10; n += 1) assert.ok(started.includes(`later ${n}:a`), `later ${n} of ${started}`);
});

test("however many servers stall, mail to those that are quick, and to new ones beside slow ones, begins at once", () => {
  const { path, running, started } = stage();
  for (let n = 0; n < 100; n += 1) path(`stalling ${n}`, [delivery("shop")], "slow");
  assert.equal(running("shop"), 2);
  for (let n = 0; n < 100; n += 1) path(`new ${n}`, [delivery("shop")], "new");
  assert.equal(running("shop"), 3);
  path("quick", [delivery("shop")]);
  assert.deepEqual(started, ["stalling 0:shop", "stalling 1:shop", "new 0:shop", "quick:shop"]);
});

test("mail to servers that stall goes on as its own slots come free, and none is left out", () => {
  const { path, started, done } = stage();
  for (let n = 0; n < 20; n += 1) path(`stalling ${n}`, [delivery("a")], "slow");
  path("large and stalling", [delivery("a", 20_000_000)], "slow");
  for (let n = 0; n < 21; n += 1) done("a");
  assert.equal(started.length, 21);
});

test("a path that turned out slow while it waited gets its turn as a slow one", () => {
  const { path, started, done } = stage();
  for (let n = 0; n < 4; n += 1) path(`quick ${n}`, [delivery("a")]);
  const turned = path("turned", [delivery("a")], "new");
  turned.pace = "slow";
  for (let n = 0; n < 4; n += 1) done("a");
  assert.equal(started.at(-1), "turned:a");
});

test("large messages are few at once, and no small one waits for them", () => {
  const { path, running } = stage();
  for (let n = 0; n < 50; n += 1) path(`large ${n}`, [delivery("videos", 20_000_000)]);
  assert.equal(running("videos"), 1);
  path("small", [delivery("videos"), delivery("shop")]);
  assert.equal(running("videos"), 2);
  assert.equal(running("shop"), 1);
});

test("a large message that is sent and waits for its answer leaves its slot to the next one", () => {
  const { path, running, started, slotOf, shares } = stage();
  for (let n = 0; n < 3; n += 1) path(`large ${n}`, [delivery("videos", 20_000_000)]);
  assert.equal(running("videos"), 1);
  slotOf("large 0").lighten();
  slotOf("large 1").lighten();
  assert.deepEqual(started, ["large 0:videos", "large 1:videos", "large 2:videos"]);
  assert.equal(shares.size(), 3, "each has a slot still");
  assert.equal(slotOf("large 0").weigh(), false, "its place is taken");
  for (const name of ["large 0", "large 1", "large 2"]) slotOf(name).leave();
  assert.equal(shares.size(), 0);
});

test("an attempt that waits for a server leaves its slot to the next one, up to a limit of its own", () => {
  const { path, started, slotOf, shares } = stage();
  for (let n = 0; n < 10; n += 1) path(`silent ${n}`, [delivery("a")], "new");
  assert.equal(started.length, 3);
  for (let n = 0; n < 6; n += 1) if (started.length > n) slotOf(`silent ${n}`).stall();
  assert.equal(started.length, 6, "three hang, which is half of what may, and three have slots");
  assert.equal(shares.size(), 6);
  assert.equal(slotOf("silent 0").weigh(), false, "its place is taken");
  for (let n = 3; n < 6; n += 1) slotOf(`silent ${n}`).leave();
  assert.equal(started.length, 9);
});

test("it keeps its slot where its organization has its share of small ones, and has it back where it is free", () => {
  const { path, running, slotOf } = stage();
  for (let n = 0; n < 4; n += 1) path(`small ${n}`, [delivery("a")]);
  path("large", [delivery("a", 20_000_000)]);
  path("next", [delivery("a", 20_000_000)]);
  slotOf("large").lighten();
  assert.equal(running("a"), 5);
  slotOf("small 0").leave();
  slotOf("large").lighten();
  assert.equal(running("a"), 6);
  slotOf("next").leave();
  assert.equal(slotOf("large").weigh(), true);
});

test("large messages all go in the end", () => {
  const { path, started, done } = stage();
  for (let n = 0; n < 50; n += 1) path(`large ${n}`, [delivery("videos", 20_000_000)]);
  for (let n = 0; n < 50; n += 1) done("videos");
  assert.equal(started.length, 50);
});

test("of the sessions that are kept open the oldest is closed when they are too many", () => {
  const { shares } = stage();
  const closed: number[] = [];
  const forget = shares.keep(() => closed.push(0));
  forget();
  for (let n = 1; n <= 1_002; n += 1) shares.keep(() => closed.push(n));
  assert.deepEqual(closed, [1, 2]);
});
