// What figures decide: advance, hold, pause, step back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decideDay, holdReason, lookNow, pauseReason, trailing, trailingNow } from "./decide.ts";
import type { Figures, StoredPhase, WarmingRow } from "./types.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MONDAY = Date.parse("2026-11-02T00:00:00.000Z");

const NO_FIGURES: Figures = { sent: 0, delivered: 0, bounced: 0, hard_bounced: 0, complained: 0 };
const figures = (more: Partial<Figures>): Figures => ({ ...NO_FIGURES, ...more });
const GOOD = figures({ sent: 1_000, delivered: 990, bounced: 10, hard_bounced: 5 });
const BAD = figures({ sent: 1_000, delivered: 900, bounced: 100, hard_bounced: 30 });
const TERRIBLE = figures({ sent: 1_000, delivered: 900, bounced: 100, hard_bounced: 60 });

const row = (phase: StoredPhase, more: Partial<WarmingRow> = {}): WarmingRow => ({
  org_id: "o",
  domain_id: "d",
  phase,
  warming_started_at: new Date(MONDAY),
  phase_started_at: new Date(MONDAY),
  paused_days: 0,
  paused_at: null,
  paused_reason: null,
  held_reason: null,
  judged_from: new Date(MONDAY),
  decided_through: "2026-11-01",
  idle_days: 0,
  next_look_at: new Date(MONDAY),
  ...more,
});
const day = (number: number): number => MONDAY + (number - 1) * DAY;
const same = (all: Figures) => ({ day: all, window: all });

const holds: [string, Partial<Figures>, RegExp | null][] = [
  ["nothing was sent", {}, /no mail was sent in the last 3 days/],
  ["just enough was delivered", { sent: 1_000, delivered: 950 }, null],
  ["too little was delivered", { sent: 1_000, delivered: 949 }, /deliveries are 94\.9 % of 1000 .* less than 95 %/],
  ["just not too many bounced", { sent: 1_000, delivered: 980, hard_bounced: 20 }, null],
  ["too many bounced", { sent: 1_000, delivered: 979, hard_bounced: 21 }, /hard bounces are 2\.1 %.* more than 2 %/],
  ["just not too many complained", { sent: 1_000, delivered: 1_000, complained: 1 }, null],
  ["too many complained", { sent: 1_000, delivered: 1_000, complained: 2 }, /complaints are 0\.2 %.* more than 0\.1 %/],
];
for (const [what, given, wanted] of holds) {
  test(`a phase whose days are over ${wanted ? "is held" : "ends"} when ${what}`, () => {
    const { row: after, history } = decideDay(row("phase_1"), day(14), same(figures(given)));
    if (wanted === null) {
      assert.deepEqual([history?.decision, history?.reason, after.phase], ["advanced", null, "phase_2"]);
      return;
    }
    assert.deepEqual([history?.decision, after.phase], ["held", "phase_1"]);
    assert.match(String(history?.reason), wanted);
    assert.equal(after.held_reason, history?.reason);
  });
}

const pauses: [string, Partial<Figures>, RegExp | null][] = [
  ["hard bounces are 5 %", { sent: 100, hard_bounced: 5 }, null],
  ["hard bounces are above 5 %", { sent: 100, hard_bounced: 6 }, /hard bounces are 6 % of 100 .* more than 5 %/],
  ["complaints are 0.3 %", { sent: 1_000, complained: 3 }, null],
  ["complaints are above 0.3 %", { sent: 1_000, complained: 4 }, /complaints are 0\.4 % of 1000 .* more than 0\.3 %/],
  ["one of a few bounced", { sent: 25, hard_bounced: 1, complained: 1 }, null],
  ["two of few bounced", { sent: 20, hard_bounced: 2 }, /hard bounces are 10 %/],
  ["hardly anything was sent", { sent: 19, hard_bounced: 19 }, null],
  ["soft bounces are many", { sent: 100, bounced: 50 }, null],
];
for (const [what, given, wanted] of pauses) {
  test(`a domain is ${wanted ? "paused" : "not paused"} when ${what}`, () => {
    const reason = pauseReason(figures(given));
    if (wanted === null) assert.equal(reason, null);
    else assert.match(String(reason), wanted);
  });
}

test("before its days are over a phase goes on, and what held it is forgotten", () => {
  const { row: after, history } = decideDay(row("phase_1", { held_reason: "x" }), day(13), same(BAD));
  assert.deepEqual([history?.decision, after.phase, after.held_reason], ["continued", "phase_1", null]);
  assert.equal(after.decided_through, "2026-11-14");
});

test("a day of the history tells what was in force and what happened", () => {
  const { history } = decideDay(row("phase_1"), day(2), { day: BAD, window: GOOD });
  const wanted = { ...BAD, date: "2026-11-03", phase: "phase_1", daily_limit: 75, decision: "continued", reason: null };
  assert.deepEqual(history, wanted);
});

test("the next phase begins at the midnight that ended the day", () => {
  const { row: after } = decideDay(row("phase_3", { paused_days: 2 }), day(16), same(GOOD));
  assert.deepEqual([after.phase, after.phase_started_at, after.paused_days], ["phase_4", new Date(day(17)), 0]);
});

test("after the last phase a domain is warm, and its days are no longer noted", () => {
  const { row: warm } = decideDay(row("phase_4"), day(14), same(GOOD));
  assert.equal(warm.phase, "warmed");
  const { row: after, history } = decideDay(warm, day(15), same(TERRIBLE));
  assert.deepEqual([history, after.phase, after.paused_at], [null, "warmed", null]);
});

test("figures beyond the limits pause before they hold", () => {
  const { row: after, history } = decideDay(row("phase_2"), day(14), same(TERRIBLE));
  assert.deepEqual([history?.decision, after.phase, after.paused_at], ["paused", "phase_2", new Date(day(15))]);
  assert.match(String(after.paused_reason), /hard bounces are 6 %/);
});

test("a paused day decides nothing, however good its figures", () => {
  const paused = row("phase_2", { paused_at: new Date(day(3)), paused_reason: "by hand" });
  const { row: after, history } = decideDay(paused, day(20), same(GOOD));
  assert.deepEqual([history?.decision, history?.reason, after.phase], ["paused", "by hand", "phase_2"]);
});

for (const [phase, wanted] of [
  ["warmed", "phase_4"],
  ["phase_3", "phase_2"],
  ["phase_1", "phase_1"],
] as const) {
  test(`the thirtieth idle day takes ${phase} to the first day of ${wanted}`, () => {
    const almost = decideDay(row(phase, { idle_days: 28 }), day(40), same(NO_FIGURES)).row;
    assert.deepEqual([almost.idle_days, almost.phase], [29, phase]);
    const { row: after, history } = decideDay(almost, day(41), same(NO_FIGURES));
    assert.deepEqual([history?.decision, history?.reason], ["stepped_back", "no mail was sent for 30 days"]);
    assert.deepEqual([after.phase, after.phase_started_at, after.idle_days], [wanted, new Date(day(42)), 0]);
  });
}

test("a day with mail begins the idle days again", () => {
  assert.equal(decideDay(row("warmed", { idle_days: 29 }), day(5), same(GOOD)).row.idle_days, 0);
});

test("a look in the middle of a day pauses a running domain only", () => {
  const now = day(3) + HOUR;
  const paused = lookNow(row("phase_1"), TERRIBLE, now);
  assert.deepEqual([paused.paused_at, paused.phase], [new Date(now), "phase_1"]);
  for (const given of [row("warmed"), row("phase_1", { paused_at: new Date(day(2)), paused_reason: "by hand" })]) {
    assert.equal(lookNow(given, TERRIBLE, now), given);
  }
  assert.equal(lookNow(row("phase_1"), GOOD, now).paused_at, null);
});

test("figures are taken over three UTC days, and never from before a start or a resume", () => {
  assert.deepEqual(trailing(day(15), null), { from: new Date(day(12)), to: new Date(day(15)) });
  const now = day(15) + 10.5 * HOUR;
  assert.deepEqual(trailingNow(now, null), { from: new Date(day(13)), to: new Date(day(15) + 11 * HOUR) });
  const resumed = new Date(day(14) + 7 * HOUR);
  assert.deepEqual(trailingNow(now, resumed).from, resumed);
  assert.deepEqual(trailingNow(day(16) - 1, null), { from: new Date(day(13)), to: new Date(day(16)) });
});

test("a hold names its reason in a sentence for people", () => {
  assert.equal(
    holdReason(figures({ sent: 3, delivered: 2 })),
    "deliveries are 66.67 % of 3 recipients in the last 3 days, less than 95 %",
  );
});
