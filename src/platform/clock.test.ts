import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { until } from "../../test/support/until.ts";
import { createClock, fixedClock, sleep } from "./clock.ts";

/** Whether the clock shows `aheadMs` more than the machine, read before and after it: the time in between does not count. */
function isAhead(clock: { now(): number }, aheadMs: number): boolean {
  const before = Date.now();
  const read = clock.now();
  return read >= before + aheadMs - 1 && read <= Date.now() + aheadMs + 1;
}

async function reads(clock: { now(): number }, aheadMs: number): Promise<void> {
  await until(`the clock is ${aheadMs} ms ahead`, () => isAhead(clock, aheadMs));
}

test("without skew and offset the clock is the machine's, in whole milliseconds", () => {
  const clock = createClock({});
  assert.ok(isAhead(clock, 0));
  assert.ok(Number.isInteger(clock.now()));
});

test("the skew of the database is added, and replaced by the next", () => {
  const clock = createClock({});
  clock.setSkew(5_000.4);
  assert.ok(isAhead(clock, 5_000));
  assert.ok(Number.isInteger(clock.now()));
  clock.setSkew(-250);
  assert.ok(isAhead(clock, -250));
});

test("the offset file moves the clock while it runs: missing is 0, half-written keeps the last, removed is 0 again", async () => {
  const dir = mkdtempSync(join(tmpdir(), "clock-"));
  const offsetFile = join(dir, "offset");
  const clock = createClock({ offsetFile });
  await reads(clock, 0);
  writeFileSync(offsetFile, "129600\n");
  await reads(clock, 129_600_000);
  writeFileSync(offsetFile, "-1.5");
  await reads(clock, -1_500);
  writeFileSync(offsetFile, "");
  await sleep(60);
  await reads(clock, -1_500);
  clock.setSkew(1_000);
  await reads(clock, -500);
  clock.setSkew(0);
  rmSync(dir, { recursive: true });
  await reads(clock, 0);
});

test("an offset never touches the monotonic clock", () => {
  const dir = mkdtempSync(join(tmpdir(), "clock-"));
  writeFileSync(join(dir, "offset"), "99999");
  const clock = createClock({ offsetFile: join(dir, "offset") });
  const before = clock.monotonic();
  assert.ok(clock.now() - Date.now() > 99_000_000);
  assert.ok(clock.monotonic() - before < 90_000_000);
  rmSync(dir, { recursive: true });
});

test("a fixed clock stands still until it is advanced", () => {
  const clock = fixedClock(1_000);
  assert.equal(clock.now(), 1_000);
  clock.advance(250);
  assert.equal(clock.now(), 1_250);
  assert.equal(clock.monotonic(), 250);
  clock.setSkew(-50);
  assert.equal(clock.now(), 1_200);
});

test("a sleep ends at its time, at once for an aborted signal, and early when aborted", async () => {
  const started = performance.now();
  await sleep(20);
  assert.ok(performance.now() - started >= 19);
  await sleep(60_000, AbortSignal.abort());
  const abort = new AbortController();
  const sleeping = sleep(60_000, abort.signal);
  abort.abort();
  await sleeping;
  assert.ok(performance.now() - started < 5_000);
});

test("a sleep longer than a timer can hold does not end at once", async () => {
  const abort = new AbortController();
  let ended = false;
  const sleeping = sleep(2 ** 40, abort.signal).then(() => {
    ended = true;
  });
  await sleep(20);
  assert.equal(ended, false);
  abort.abort();
  await sleeping;
});

test("a wall clock that is set moves nothing, neither at once nor when the database's time is measured next", (t) => {
  const clock = createClock({});
  clock.setSkew(1_000);
  const before = clock.now();
  const machine = Date.now;
  t.mock.method(Date, "now", () => machine() - 3_600_000);
  assert.ok(clock.now() >= before && clock.now() < before + 600_000, `${clock.now() - before} ms on`);
  clock.setSkew(1_000 + 3_600_000);
  assert.ok(clock.now() >= before - 1 && clock.now() < before + 600_000, `${clock.now() - before} ms on`);
});
