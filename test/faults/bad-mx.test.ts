// How the windows of `bad-mx` are compared, and what it needs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { shareOf } from "./bad-mx.ts";
import { needSocketTable } from "./bad-servers.ts";
import { Lacking } from "./lacking.ts";

test("each window is compared with the control next to it, so that a machine that changes its pace changes nothing", () => {
  assert.equal(shareOf({ control: [20, 80, 80, 40], bad: [20, 80, 80, 40] }), 1);
  assert.equal(shareOf({ control: [100, 50, 100, 50], bad: [90, 45, 90, 45] }), 0.9);
  assert.equal(shareOf({ control: [100, 100, 100], bad: [10, 90, 100] }), 0.9);
  assert.ok(Number.isNaN(shareOf({ control: [], bad: [] })));
});

test("a machine that shows no table of sockets cannot play it, which is no failure", () => {
  assert.throws(() => needSocketTable("/nowhere/net/tcp"), Lacking);
});
