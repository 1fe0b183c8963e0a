// The schedule: every day's limit, windows, and the days of a phase.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  allowancesAt,
  dayInPhase,
  daysLost,
  daysOf,
  limitsOf,
  nextLookAt,
  nextPhase,
  nextPhaseAt,
  previousPhase,
  scheduledLimits,
} from "./schedule.ts";
import { type PhaseState, RUNNING_PHASES, type StoredPhase } from "./types.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = Date.parse("2026-11-02T15:20:30.500Z");
const DOMAIN = "00000000-0000-7000-8000-00000000000d";

const state = (phase: StoredPhase, more: Partial<PhaseState> = {}): PhaseState => ({
  phase,
  phase_started_at: new Date(START),
  paused_days: 0,
  paused_at: null,
  paused_reason: null,
  ...more,
});
const day = (number: number): number => START + (number - 1) * DAY;

const WANTED = {
  phase_1: [50, 75, 100, 150, 200, 275, 350, 450, 550, 700, 850, 1000, 1250, 1500],
  phase_2: [2000, 2000, 2750, 2750, 3500, 3500, 4500, 4500, 6000, 6000, 8000, 8000, 10000, 10000],
  phase_3: [15000, 15000, 19000, 19000, 24000, 24000, 30000, 30000, 38000, 38000, 48000, 48000, 60000, 60000],
  phase_4: [
    100000, 100000, 100000, 125000, 125000, 125000, 160000, 160000, 160000, 160000, 200000, 200000, 200000, 200000,
  ],
} as const;

for (const phase of RUNNING_PHASES) {
  test(`${phase} has its fourteen limits, and the last one for as long as it is held`, () => {
    const limits = Array.from({ length: 14 }, (_, index) => scheduledLimits(state(phase), day(index + 1))?.daily_limit);
    assert.deepEqual(limits, [...WANTED[phase]]);
    assert.equal(scheduledLimits(state(phase), day(40))?.daily_limit, WANTED[phase].at(-1));
    assert.equal(daysOf(phase), 14);
  });
}

test("an hour has a tenth of the day, a minute a twenty-fifth of the hour and at least two, rounded down", () => {
  assert.deepEqual(limitsOf(50), { daily_limit: 50, hourly_limit: 5, per_minute_limit: 10 });
  assert.deepEqual(limitsOf(275), { daily_limit: 275, hourly_limit: 27, per_minute_limit: 10 });
  assert.deepEqual(limitsOf(1_000), { daily_limit: 1_000, hourly_limit: 100, per_minute_limit: 10 });
  assert.deepEqual(limitsOf(200_000), { daily_limit: 200_000, hourly_limit: 20_000, per_minute_limit: 800 });
});

test("a warm domain has no limits and no windows", () => {
  assert.equal(scheduledLimits(state("warmed"), day(1)), null);
  assert.deepEqual(allowancesAt(state("warmed"), DOMAIN, day(1)), []);
});

test("the limit rises at midnight UTC, whatever hour the phase began", () => {
  const limit = (text: string) => scheduledLimits(state("phase_1"), Date.parse(text))?.daily_limit;
  assert.equal(limit("2026-11-02T23:59:59.999Z"), 50);
  assert.equal(limit("2026-11-03T00:00:00.000Z"), 75);
});

test("mail counts in a day, an hour and a minute, each of which says when it opens again", () => {
  const windows = allowancesAt(state("phase_1"), DOMAIN, START);
  assert.deepEqual(windows, [
    {
      scope_id: DOMAIN,
      warming_phase: "phase_1",
      kind: "daily",
      starts_at: new Date("2026-11-02T00:00:00.000Z"),
      ceiling: 50,
      retry_after_seconds: 8 * 3600 + 39 * 60 + 30,
    },
    {
      scope_id: DOMAIN,
      warming_phase: "phase_1",
      kind: "hourly",
      starts_at: new Date("2026-11-02T15:00:00.000Z"),
      ceiling: 5,
      retry_after_seconds: 39 * 60 + 30,
    },
    {
      scope_id: DOMAIN,
      warming_phase: "phase_1",
      kind: "per_minute",
      starts_at: new Date("2026-11-02T15:20:00.000Z"),
      ceiling: 10,
      retry_after_seconds: 30,
    },
  ]);
});

test("a paused domain has a day in which nothing may be sent", () => {
  const paused = state("phase_2", { paused_at: new Date(START), paused_reason: "complaints" });
  assert.deepEqual(allowancesAt(paused, DOMAIN, day(3)), [
    {
      scope_id: DOMAIN,
      warming_phase: "phase_2",
      kind: "daily",
      starts_at: new Date("2026-11-04T00:00:00.000Z"),
      ceiling: 0,
      retry_after_seconds: 3_600,
      explanation: "sending from this domain is paused (complaints) until POST /v1/domains/{id}/warming/resume",
    },
  ]);
});

test("the days of a phase stand still while it is paused, and go on where they stopped", () => {
  const paused = state("phase_1", { paused_at: new Date(day(5)) });
  assert.deepEqual([dayInPhase(paused, day(5)), dayInPhase(paused, day(25))], [5, 5]);
  assert.equal(daysLost(paused, day(25)), 20);
  assert.equal(daysLost(paused, day(5) + HOUR), 0);
  const resumed = state("phase_1", { paused_days: 20 });
  assert.deepEqual([dayInPhase(resumed, day(25)), dayInPhase(resumed, day(26))], [5, 6]);
});

test("a pause from before the phase takes off only days of this phase", () => {
  const stepped = state("phase_1", { paused_at: new Date(START - 10 * DAY) });
  assert.equal(dayInPhase(stepped, day(4)), 1);
  assert.equal(daysLost(stepped, day(4)), 3);
});

test("the next phase may begin at the midnight after the last day, paused days not counted", () => {
  assert.deepEqual(nextPhaseAt(state("phase_1"), START), new Date("2026-11-16T00:00:00.000Z"));
  assert.deepEqual(nextPhaseAt(state("phase_1", { paused_days: 3 }), START), new Date("2026-11-19T00:00:00.000Z"));
  assert.deepEqual(nextPhaseAt(state("phase_1"), day(20)), new Date("2026-11-22T00:00:00.000Z"));
  assert.equal(nextPhaseAt(state("phase_1", { paused_at: new Date(START) }), START), null);
  assert.equal(nextPhaseAt(state("warmed"), START), null);
});

test("phases follow each other; the first has none before it, the last none after", () => {
  const chain = ["phase_1", "phase_2", "phase_3", "phase_4", "warmed"] as const;
  assert.deepEqual(chain.map(nextPhase), ["phase_2", "phase_3", "phase_4", "warmed", null]);
  assert.deepEqual(chain.map(previousPhase), ["phase_1", "phase_1", "phase_2", "phase_3", "phase_4"]);
});

test("a running domain is looked at every five minutes, any other at midnight, none later than that", () => {
  const midnight = new Date("2026-11-03T00:00:00.000Z");
  assert.deepEqual(nextLookAt(state("phase_1"), START), new Date(START + 300_000));
  assert.deepEqual(nextLookAt(state("phase_1"), midnight.getTime() - 1_000), midnight);
  assert.deepEqual(nextLookAt(state("warmed"), START), midnight);
  assert.deepEqual(nextLookAt(state("phase_1", { paused_at: new Date(START) }), START), midnight);
});
