import assert from "node:assert/strict";
import { test } from "node:test";
import { createTurns } from "./turns.ts";

/** Tasks that take as long as they say by a clock of their own, and what happened in which order. */
function bench() {
  const clock = { monotonicMs: 0, monotonic: () => clock.monotonicMs };
  const reported: string[] = [];
  const task = (name: string, ms: number) => () => {
    clock.monotonicMs += ms;
    reported.push(name);
    return name;
  };
  return { inTurn: createTurns(clock), reported, task };
}

test("what came in one moment runs in its order, and after 20 ms of it everything else has a turn", async () => {
  const { inTurn, reported, task } = bench();
  setImmediate(() => reported.push("somebody else"));
  const names = await Promise.all(["a", "b", "c", "d"].map((name) => inTurn("us", task(name, 12))));
  assert.deepEqual(names, ["a", "b", "c", "d"]);
  assert.deepEqual(reported, ["a", "b", "somebody else", "c", "d"]);
});

test("a task longer than a turn is not cut, and the next one waits for its own", async () => {
  const { inTurn, reported, task } = bench();
  const all = Promise.all(["a", "b", "c"].map((name) => inTurn("us", task(name, 500))));
  assert.deepEqual(reported, ["a"]);
  await new Promise((done) => setImmediate(done));
  assert.deepEqual(reported, ["a", "b"]);
  await all;
  assert.deepEqual(reported, ["a", "b", "c"]);
});

test("a short task runs at once, and again in a later turn", async () => {
  const { inTurn, reported, task } = bench();
  void inTurn("us", task("a", 0));
  assert.deepEqual(reported, ["a"]);
  await new Promise((done) => setImmediate(done));
  void inTurn("us", task("b", 19));
  void inTurn("us", task("c", 19));
  assert.deepEqual(reported, ["a", "b", "c"]);
});

test("a task that throws rejects, and holds up nobody", async () => {
  const { inTurn, task } = bench();
  const fails = inTurn("us", () => {
    throw new Error("no");
  });
  const after = inTurn("us", task("b", 1));
  await assert.rejects(fails, /^Error: no$/);
  assert.equal(await after, "b");
});

test("one task of each runs after another, whoever came first with many", async () => {
  const { inTurn, reported, task } = bench();
  const many = ["a", "b", "c", "d"].map((name) => inTurn("them", task(name, 500)));
  const ours = ["x", "y"].map((name) => inTurn("us", task(name, 500)));
  await Promise.all([...many, ...ours]);
  assert.deepEqual(reported, ["a", "b", "x", "c", "y", "d"]);
});

test("what a task took is the processor time alone: a machine that others keep busy is nobody's doing", async () => {
  const spent: number[] = [];
  const inTurn = createTurns({ monotonic: () => performance.now() }, (_who, { ms }) => spent.push(ms));
  await inTurn("us", () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200));
  await inTurn("us", () => {
    const { user, system } = process.threadCpuUsage();
    for (let now = process.threadCpuUsage(); now.user + now.system < user + system + 50_000; ) {
      now = process.threadCpuUsage();
    }
  });
  const [waited = 0, worked = 0] = spent;
  assert.ok(waited < 100, `${waited} ms of waiting`);
  assert.ok(worked >= 50, `${worked} ms of work`);
});
