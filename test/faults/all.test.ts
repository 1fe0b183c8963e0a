// The table of `npm run faults -- all`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { table } from "./all.ts";

test("the table says of each scenario whether it passed, failed or was not played, and why", () => {
  const lines = table([
    { scenario: "kill", acknowledged: 500, lost: 0, duplicates: 3, flagged: 3, seconds: 12.5, ok: true },
    { scenario: "bad-mx", acknowledged: 100, lost: 1, duplicates: 0, flagged: 0, seconds: 1, ok: false },
    { scenario: "power-cut", skipped: "mounting a loop device needs root", ok: false },
    { scenario: "upgrade", error: "ended with 1", ok: false },
  ]);
  assert.match(lines[0] as string, /^scenario +verdict +acknowledged +lost +duplicates +flagged +seconds$/);
  assert.match(lines[1] as string, /^kill +passed +500 +0 +3 +3 +12\.5$/);
  assert.match(lines[2] as string, /^bad-mx +FAILED +100 +1 +0 +0 +1$/);
  assert.match(lines[3] as string, /^power-cut +not played .*mounting a loop device needs root$/);
  assert.match(lines[4] as string, /^upgrade +FAILED .*ended with 1$/);
});
