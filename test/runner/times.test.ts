// The table of `npm test -- --profile`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { tableOf } from "./times.ts";

test("the slowest files come first, by the processor time that they and their children took, and the sums say where it went", () => {
  const lines = tableOf(
    [
      { kind: "begin", file: "a.test.ts" },
      { kind: "end", file: "a.test.ts", wall_ms: 9000, own_ms: 1000, children_ms: 0 },
      { kind: "end", file: "b.test.ts", wall_ms: 4000, own_ms: 500, children_ms: 2500 },
      { kind: "end", file: "c.test.ts", wall_ms: 10, own_ms: 10, children_ms: 0 },
      { kind: "process", file: "a.test.ts", own_ms: 2510, children_ms: 2500 },
    ],
    2,
    { wall_ms: 10_000, database: { own_ms: 400, children_ms: 600 } },
  );
  assert.equal(lines.length, 4);
  assert.match(lines[1] ?? "", /^ +0\.5 +2\.5 +4\.0 {2}b\.test\.ts$/);
  assert.match(lines[2] ?? "", /a\.test\.ts$/);
  const sums =
    /^3 files in 1 processes took 10\.0 s; processor time: 1\.5 s in tests, 1\.0 s in .*, 2\.5 s in .*, 1\.0 s in/;
  assert.match(lines[3] ?? "", sums);
});
