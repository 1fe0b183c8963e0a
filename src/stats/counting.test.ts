// What each event adds to the counters.
import assert from "node:assert/strict";
import { test } from "node:test";
import { countsOf, NO_PROVIDER, rate, ratesOf, sumCounts, sumReasons, zeroCounters } from "./counting.ts";
import type { CountedEvent } from "./types.ts";

const ORG = "00000000-0000-7000-8000-000000000001";
const DOMAIN = "00000000-0000-7000-8000-00000000000d";

const event = (event_type: string, more: Partial<CountedEvent> = {}): CountedEvent => ({
  org_id: ORG,
  event_type,
  at: new Date("2026-11-20T10:41:34.123Z"),
  attempt: 1,
  isp: "google",
  class: null,
  enhanced_code: null,
  bounce_type: null,
  about: { domain_id: DOMAIN, environment: "live" },
  ...more,
});

const adds: [string, CountedEvent, Record<string, number>][] = [
  ["a delivery at once", event("delivered"), { total_sent: 1, total_delivered: 1 }],
  ["a delivery at the third attempt", event("delivered", { attempt: 3 }), { total_delivered: 1 }],
  ["the first deferral", event("deferred"), { total_sent: 1, total_deferred: 1 }],
  ["an answer that was lost", event("ambiguous"), { total_sent: 1, total_deferred: 1 }],
  [
    "a hard bounce",
    event("bounced", { bounce_type: "hard" }),
    { total_sent: 1, total_bounced: 1, total_hard_bounce: 1 },
  ],
  ["a soft bounce later", event("bounced", { bounce_type: "soft", attempt: 9 }), { total_bounced: 1 }],
  [
    "a delayed bounce",
    event("bounced", { bounce_type: "hard", attempt: null }),
    { total_bounced: 1, total_hard_bounce: 1 },
  ],
  ["a complaint", event("complained", { attempt: null }), { total_complaints: 1 }],
  ["mail that could not be sent", event("failed"), { total_sent: 1, total_failed: 1 }],
  ["mail out of time", event("expired", { attempt: 4 }), { total_failed: 1 }],
];

for (const [what, given, wanted] of adds) {
  test(`${what} adds ${Object.keys(wanted).join(" and ")}`, () => {
    assert.deepEqual(countsOf(given), { ...zeroCounters(), ...wanted });
  });
}

for (const [what, given] of [
  ["a later deferral", event("deferred", { attempt: 2 })],
  ["a cancelation", event("canceled", { attempt: null })],
  ["a retry by hand, until its first attempt", event("retried", { attempt: null })],
  ["test mail", event("delivered", { about: { domain_id: DOMAIN, environment: "test" } })],
] as [string, CountedEvent][]) {
  test(`${what} adds nothing`, () => assert.equal(countsOf(given), null));
}

test("events of one domain become one row an hour, and one a day for each provider", () => {
  const rows = sumCounts([
    event("delivered"),
    event("delivered", { isp: "yahoo" }),
    event("delivered", { isp: null }),
    event("delivered", { at: new Date("2026-11-20T23:59:59.999Z") }),
    event("delivered", { at: new Date("2026-11-21T00:00:00.000Z") }),
  ]);
  const shown = rows.map((row) => [row.span, row.starts_at.toISOString(), row.isp, row.total_delivered]);
  assert.deepEqual(
    shown.sort((a, b) => (String(a) < String(b) ? -1 : 1)),
    [
      ["day", "2026-11-20T00:00:00.000Z", "google", 2],
      ["day", "2026-11-20T00:00:00.000Z", NO_PROVIDER, 1],
      ["day", "2026-11-20T00:00:00.000Z", "yahoo", 1],
      ["day", "2026-11-21T00:00:00.000Z", "google", 1],
      ["hour", "2026-11-20T10:00:00.000Z", "", 3],
      ["hour", "2026-11-20T23:00:00.000Z", "", 1],
      ["hour", "2026-11-21T00:00:00.000Z", "", 1],
    ],
  );
});

test("bounces are counted by class and enhanced code; a code that is none is not kept", () => {
  const bounce = (mailClass: string | null, enhanced_code: string | null) =>
    event("bounced", { class: mailClass, enhanced_code });
  const rows = sumReasons([
    bounce("invalid_recipient", "5.1.1"),
    bounce("invalid_recipient", "5.1.1"),
    bounce("blocked", "5.7.1 <script>"),
    bounce(null, null),
    event("bounced", { about: { domain_id: DOMAIN, environment: "test" } }),
    event("deferred", { class: "greylisted" }),
  ]);
  assert.deepEqual(
    rows.map((row) => [row.reason, row.code, row.count, row.starts_at.toISOString()]),
    [
      ["invalid_recipient", "5.1.1", 2, "2026-11-20T00:00:00.000Z"],
      ["blocked", "", 1, "2026-11-20T00:00:00.000Z"],
      ["unknown", "", 1, "2026-11-20T00:00:00.000Z"],
    ],
  );
});

test("rates have four decimals, lie between 0 and 1, and are 0 when nothing was sent", () => {
  assert.equal(rate(1, 3), 0.3333);
  assert.equal(rate(2, 3), 0.6667);
  assert.equal(rate(5, 0), 0);
  assert.equal(rate(5, 4), 1);
  const counters = { ...zeroCounters(), total_sent: 8, total_delivered: 6, total_bounced: 2, total_hard_bounce: 1 };
  assert.deepEqual(ratesOf(counters), {
    delivery_rate: 0.75,
    bounce_rate: 0.25,
    hard_bounce_rate: 0.125,
    complaint_rate: 0,
  });
});
