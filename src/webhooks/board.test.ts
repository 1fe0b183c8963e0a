import assert from "node:assert/strict";
import { test } from "node:test";
import * as board from "./board.ts";
import type { ClaimedRow } from "./types.ts";

let made = 0;

function row(org_id: string, webhook_id: string, body_bytes = 100): ClaimedRow {
  made += 1;
  const id = String(made).padStart(8, "0");
  const created_at = new Date(0);
  return {
    org_id,
    id,
    webhook_id,
    event_id: id,
    event: "email.delivered",
    body_bytes,
    created_at,
    attempt: 0,
    claim_id: "c",
  };
}

function fill(on: board.Board, org: string, hook: string, rows: number, failures = 0, bytes = 100): board.Lane {
  const lane = board.laneFor(on, { org_id: org, webhook_id: hook, consecutive_failures: failures });
  board.addRows(
    lane,
    Array.from({ length: rows }, () => ({ row: row(org, hook, bytes), claimed_ms: 0 })),
  );
  return lane;
}

function startAll(on: board.Board): board.Started[] {
  const started: board.Started[] = [];
  for (let next = board.startNext(on); next; next = board.startNext(on)) started.push(next);
  return started;
}

test("a lane starts four attempts at once and the next when one ends", () => {
  const on = board.createBoard();
  fill(on, "a", "h1", 10);
  const started = startAll(on);
  assert.equal(started.length, board.CONCURRENCY);
  board.endAttempt(started[0] as board.Started);
  assert.equal(startAll(on).length, 1);
});

test("organizations take turns whatever they have waiting, then their lanes do", () => {
  const on = board.createBoard();
  for (let lane = 0; lane < 10; lane += 1) fill(on, "big", `big-${lane}`, 16);
  fill(on, "small", "small-1", 2);
  const first = startAll(on).slice(0, 4);
  assert.deepEqual(
    first.map(({ lane }) => lane.org_id),
    ["big", "small", "big", "small"],
  );
  assert.notEqual(first[0]?.lane.webhook_id, first[2]?.lane.webhook_id);
});

test("failing and slow receivers share slots of their own; healthy ones lose none to them", () => {
  const on = board.createBoard();
  for (let lane = 0; lane < 300; lane += 1) fill(on, "a", `dead-${lane}`, 4, 5);
  const dead = startAll(on);
  assert.equal(dead.length, on.suspect.in_flight_max / 2);
  for (let lane = 0; lane < 300; lane += 1) fill(on, "b", `live-${lane}`, 4);
  const live = startAll(on);
  assert.equal(live.length, on.healthy.in_flight_max / 2);
  assert.ok(live.every(({ lane }) => lane.org_id === "b"));
});

test("any number of new receivers that never answer leaves slots to other organizations' receivers", () => {
  const on = board.createBoard();
  for (let lane = 0; lane < 1_000; lane += 1) fill(on, "flood", `new-${lane}`, 4);
  assert.equal(startAll(on).length, on.healthy.in_flight_max / 2);
  fill(on, "shop", "live", 16);
  assert.deepEqual(
    startAll(on).map(({ lane }) => lane.webhook_id),
    Array(board.CONCURRENCY).fill("live"),
  );
  for (let org = 0; org < 500; org += 1) fill(on, `org-${org}`, `live-${org}`, 4);
  startAll(on);
  assert.ok(on.healthy.in_flight > on.healthy.in_flight_max * 0.9, "what is left is shared, not kept");
});

test("large bodies to receivers that never answer leave room to other organizations', and hide no small one", () => {
  const on = board.createBoard();
  const mib = 1024 * 1024;
  for (let lane = 0; lane < 20; lane += 1) fill(on, "flood", `new-${lane}`, 4, 0, 10 * mib);
  assert.equal(startAll(on).length, 3);
  const next = () => startAll(on).map(({ lane }) => lane.webhook_id);
  fill(on, "flood", "small", 1);
  assert.deepEqual(next(), ["small"]);
  fill(on, "shop", "live", 1, 0, 30 * mib);
  assert.deepEqual(next(), ["live"]);
});

test("a receiver that fails or takes two seconds becomes suspect and gives up what it holds beyond four rows", () => {
  for (const attempt of [
    { failed: true, duration_ms: 5 },
    { failed: false, duration_ms: 2_000 },
  ]) {
    const on = board.createBoard();
    const lane = fill(on, "a", "h", 16);
    const [started] = startAll(on) as [board.Started];
    const surplus = board.learn(on, lane, attempt);
    assert.equal(surplus.length, 8);
    assert.equal(lane.waiting.length, 4);
    assert.equal(lane.pool, on.suspect);
    assert.deepEqual([on.healthy.waiting, on.suspect.waiting], [0, 4]);
    board.endAttempt(started);
    assert.deepEqual([on.healthy.in_flight, on.suspect.in_flight], [3, 0]);
    board.learn(on, lane, { failed: false, duration_ms: 5 });
    assert.equal(lane.pool, on.healthy);
  }
});

test("a receiver that answers fast earns up to 32 attempts at once, and is back at four after one failure", () => {
  const on = board.createBoard();
  const lane = fill(on, "a", "h", 0);
  for (let success = 0; success < 4; success += 1) board.learn(on, lane, { failed: false, duration_ms: 20 });
  assert.ok(Math.floor(lane.limit) <= 5);
  for (let success = 0; success < 1_000; success += 1) board.learn(on, lane, { failed: false, duration_ms: 20 });
  assert.equal(lane.limit, board.CONCURRENCY_MAX);
  board.learn(on, lane, { failed: true, duration_ms: 20 });
  assert.equal(lane.limit, board.CONCURRENCY);
  const steady = fill(on, "a", "steady", 0);
  for (let success = 0; success < 100; success += 1) board.learn(on, steady, { failed: false, duration_ms: 1_500 });
  assert.equal(steady.limit, board.CONCURRENCY, "neither fast nor slow: no more, no less");
});

test("large bodies are bounded together, but a single one always goes", () => {
  const on = board.createBoard();
  const mib = 1024 * 1024;
  fill(on, "a", "h1", 4, 0, 40 * mib);
  const started = startAll(on);
  assert.equal(started.length, 1);
  board.endAttempt(started[0] as board.Started);
  assert.equal(startAll(on).length, 1);
  const alone = board.createBoard();
  fill(alone, "a", "h", 1, 0, 100 * mib);
  assert.equal(startAll(alone).length, 1);
});

test("what is claimed is shared out within each pool's room, organizations in turn", () => {
  const on = board.createBoard();
  const due = (org_id: string, webhook_id: string, consecutive_failures = 0) => ({
    org_id,
    webhook_id,
    consecutive_failures,
    closed: false,
  });
  const dead = Array.from({ length: 100 }, (_value, lane) => due("a", `dead-${lane}`, 3));
  const { wants, cut } = board.shareOut(on, [...dead, due("b", "dead-b", 1), due("b", "live-b")], 1_000);
  assert.equal(cut, false);
  const rows = (prefix: string) =>
    wants.filter((want) => want.webhook_id.startsWith(prefix)).reduce((sum, want) => sum + want.rows, 0);
  assert.equal(rows("dead-b"), 4, "the other organization's turn comes before the hundredth lane of the first");
  assert.equal(rows("dead"), on.suspect.waiting_max / 2 + 2, "one organization holds as much as it leaves free");
  assert.equal(rows("live-b"), 16);
  const small = board.shareOut(on, [due("b", "live-b"), due("b", "live-c")], 3);
  assert.deepEqual([small.wants.map((want) => want.rows), small.cut], [[3], true]);
});

test("an organization's claimed rows leave places in memory to others'", () => {
  const on = board.createBoard();
  for (let lane = 0; lane < 500; lane += 1) fill(on, "flood", `new-${lane}`, 4);
  const due = { org_id: "flood", webhook_id: "more", consecutive_failures: 0, closed: false };
  const other = { ...due, org_id: "shop", webhook_id: "live" };
  const { wants } = board.shareOut(on, [due, other], 1_000);
  assert.deepEqual(wants, [{ org_id: "shop", webhook_id: "live", rows: 16 }]);
});

test("lanes that were found empty come after those that may have rows, and ask for little", () => {
  const on = board.createBoard();
  const due = ["empty-1", "empty-2", "busy"].map((webhook_id) => ({
    org_id: webhook_id,
    webhook_id,
    consecutive_failures: 0,
    closed: false,
  }));
  for (const lane of due.slice(0, 2)) board.laneFor(on, lane).empty_since_ms = 1;
  const { wants } = board.shareOut(on, due, 20);
  assert.deepEqual(
    wants.map((want) => [want.webhook_id, want.rows]),
    [
      ["busy", 16],
      ["empty-1", 4],
    ],
  );
});

test("a full lane is not looked for, and an emptied board gives every row back once", () => {
  const on = board.createBoard();
  fill(on, "a", "full", 16);
  fill(on, "a", "hungry", 3);
  assert.deepEqual(board.fullLanes(on), ["full"]);
  startAll(on);
  const rows = board.emptyBoard(on);
  assert.equal(rows.length, 19 - 7);
  assert.deepEqual([on.healthy.waiting, board.emptyBoard(on).length, board.startNext(on)], [0, 0, null]);
});
