import assert from "node:assert/strict";
import { test } from "node:test";
import { createProcessorShares } from "./processor-shares.ts";

/** `pause.ms`: of each piece of work that is asked about, so much was collecting garbage. */
function shares() {
  const time = { ms: 0 };
  const pause = { ms: 0 };
  const { spendHere, ...others } = createProcessorShares(
    { monotonic: () => time.ms },
    { within: (_span, then) => then(pause.ms) },
  );
  return { time, pause, ...others, spendHere: (orgId: string, ms: number) => spendHere(orgId, { ms, elapsed_ms: ms }) };
}

test("ordinary work costs nothing, however much there is of it", () => {
  const { spendHere, waitMs } = shares();
  for (let n = 0; n < 100_000; n += 1) spendHere("a", 0.4);
  assert.equal(waitMs("a", "here"), 0);
});

test("an organization that used its part waits until it has flowed off; others do not", () => {
  const { time, spendHere, waitMs } = shares();
  for (let n = 0; n < 400; n += 1) spendHere("a", 5.5);
  assert.equal(waitMs("a", "here"), 4_000);
  assert.equal(waitMs("b", "here"), 0);
  assert.equal(waitMs("a", "aside"), 0);
  time.ms += 4_000;
  assert.equal(waitMs("a", "here"), 0);
});

test("work that holds the shared thread for long counts many times, aside it counts once", () => {
  const { spendHere, spendAside, waitMs } = shares();
  spendHere("a", 100);
  assert.ok(waitMs("a", "here") > 3_000);
  spendAside("a", 100);
  assert.equal(waitMs("a", "aside"), 0);
});

test("pauses of collecting garbage make no work long", () => {
  const { pause, spendHere, waitMs } = shares();
  pause.ms = 35;
  spendHere("a", 40);
  assert.equal(waitMs("a", "here"), 0);
  pause.ms = 5;
  spendHere("b", 105);
  assert.ok(waitMs("b", "here") > 3_000);
});
