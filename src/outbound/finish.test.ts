// What an outcome means: when it is final, what is said of it, whom it suppresses.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedClock } from "../platform/clock.ts";
import { deferredLocally, refusedByDns, tooLate } from "./attempt.ts";
import { decide, type FinishWorld } from "./finish.ts";
import type { Job } from "./types.ts";

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const world = {
  clock: fixedClock(NOW_MS),
  random: { float: () => 0.5, uuid: () => "01900000-0000-7000-8000-000000000000" },
} as unknown as FinishWorld;
const gone = refusedByDns("the domain nowhere.example does not exist", "nxdomain");

/** A job with so much time left, after so many attempts. */
function jobWith(leftMs: number, attempts: number, more: Partial<Job> & { has_expiry?: boolean } = {}): Job {
  const { has_expiry = false, ...own } = more;
  const about = { recipient_count: 1, has_expiry } as Job["about"];
  const times = { created_at: new Date(NOW_MS), expires_at: new Date(NOW_MS + leftMs), deferred_event_at: null };
  return { ...times, attempts, absent_since: null, email: "anna@nowhere.example", about, ...own } as Job;
}

test("a domain that is missed for the first time at the end of its mail's time proves nothing against the recipient", () => {
  for (const [attempts, leftMs] of [
    [9, 50 * MINUTE_MS],
    [0, 3 * MINUTE_MS],
  ] as const) {
    const { row, event } = decide(world, jobWith(leftMs, attempts), gone);
    assert.deepEqual(
      [row.final, row.status, row.bounce_type, row.bounce_code, row.bounce_class],
      [true, "failed", "soft", null, "expired"],
    );
    assert.deepEqual([event.event_type, event.suppress, event.bounce_type], ["failed", false, "soft"]);
    assert.match(row.diag_message ?? "", /nowhere\.example does not exist/);
  }
  assert.equal(decide(world, jobWith(3 * MINUTE_MS, 0, { has_expiry: true }), gone).row.status, "expired");
});

test("a missing domain is asked about again after an hour, and as usual where there is no time for that", () => {
  const waitOf = (leftMs: number, attempts: number): number => {
    const { row } = decide(world, jobWith(leftMs, attempts), gone);
    assert.equal(row.status, "deferred");
    return (row.next_attempt_at as Date).getTime() - NOW_MS;
  };
  assert.equal(waitOf(72 * HOUR_MS, 0), 61 * MINUTE_MS);
  assert.equal(waitOf(30 * MINUTE_MS, 0), 5 * MINUTE_MS);
  assert.equal(waitOf(48 * HOUR_MS, 9), 6 * HOUR_MS);
  assert.equal(waitOf(2 * HOUR_MS, 9), 61 * MINUTE_MS, "six hours would be too late");
});

test("a domain that is missed for the first time is deferred without a code of a permanent failure", () => {
  const { row, event } = decide(world, jobWith(72 * HOUR_MS, 0), gone);
  assert.deepEqual([row.bounce_code, row.diag_code, row.bounce_class], [null, "4.1.2", "bad_domain"]);
  assert.deepEqual([event.smtp_code, event.enhanced_code, event.suppress], [null, "4.1.2", false]);
  assert.deepEqual(row.absent_since, new Date(NOW_MS));
});

test("a domain that is missed again an hour later is gone: a hard bounce that suppresses", () => {
  const since = { absent_since: new Date(NOW_MS - 61 * MINUTE_MS) };
  const { row, event } = decide(world, jobWith(MINUTE_MS, 3, since), gone);
  assert.deepEqual([row.status, row.bounce_type, row.bounce_code], ["bounced", "hard", "550"]);
  assert.equal(event.suppress, true);
});

test("mail whose time is over before another attempt is expired, and no attempt is counted", () => {
  for (const attempts of [0, 4]) {
    const job = jobWith(-1, attempts);
    const { row, event } = decide(world, job, tooLate(job));
    assert.deepEqual([row.status, row.attempts, row.had_attempts], ["expired", attempts, attempts]);
    assert.deepEqual([event.event_type, event.attempt], ["expired", null]);
  }
});

test("what a server last said stays the reason of mail whose retries are used up", () => {
  const busy = { ...deferredLocally("4.3.2 too busy", "4.3.2", "busy"), smtp_code: "451" };
  const { row } = decide(world, jobWith(MINUTE_MS, 12), busy);
  assert.deepEqual(
    [row.status, row.bounce_type, row.bounce_code, row.bounce_class],
    ["bounced", "soft", "451", "expired"],
  );
});

test("mail with an end of its own that comes before the next retry has one attempt more, right before that end", () => {
  const busy = { ...deferredLocally("4.7.1 greylisted", "4.7.1", "greylisted"), smtp_code: "451" };
  const after = (leftMs: number, attempts: number, has_expiry = true) => {
    const { row } = decide(world, jobWith(leftMs, attempts, { has_expiry }), busy);
    return row.next_attempt_at === null ? row.status : row.next_attempt_at.getTime() - NOW_MS;
  };
  assert.equal(after(6 * MINUTE_MS, 0), 5 * MINUTE_MS, "the table's comes in time");
  assert.equal(after(5 * MINUTE_MS, 0), 4.75 * MINUTE_MS);
  assert.equal(after(75_000, 3), 60_000);
  assert.equal(after(74_999, 3), "expired", "too soon after the last one");
  assert.equal(after(15_000, 3), "expired");
  assert.equal(after(5 * MINUTE_MS, 3, false), "bounced", "after 72 hours it is over");
});
