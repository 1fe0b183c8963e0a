// What an outcome means: when it is final, what is said of it, whom it suppresses.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedClock } from "../../platform/clock.ts";
import type { Job } from "../types.ts";
import { deferredLocally, refusedByDns, tooLate } from "./attempt.ts";
import { decide, type FinishWorld } from "./finish.ts";

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const world = {
  clock: fixedClock(NOW_MS),
  random: { float: () => 0.5, uuid: () => "01900000-0000-7000-8000-000000000000" },
} as unknown as FinishWorld;
const gone = refusedByDns("the domain nowhere.example does not exist", "absent");

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
      [true, "expired", "soft", null, "expired"],
    );
    assert.deepEqual([event.event_type, event.suppress, event.bounce_type], ["expired", false, "soft"]);
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
    ["expired", "soft", "451", "expired"],
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
  assert.equal(after(5 * MINUTE_MS, 3, false), 4.75 * MINUTE_MS, "the end of 72 hours is one as well");
  assert.equal(after(15_000, 18, false), "expired");
});

test("mail that is given up ends as expired whatever the cause, the record and the event say the same, and how often it was tried", () => {
  const refused = { ...deferredLocally("4.3.2 too busy", "4.3.2", "busy"), smtp_code: "451" };
  const silent = deferredLocally("mx.nowhere.example does not answer", "4.4.1", "connection");
  const late = { created_at: new Date(NOW_MS - 72 * HOUR_MS + 15_000) };
  for (const outcome of [refused, silent, { ...silent, ambiguous: true }, gone]) {
    const { row, event } = decide(world, jobWith(15_000, 17, late), outcome);
    assert.deepEqual([row.final, row.status, row.bounce_type, row.bounce_class], [true, "expired", "soft", "expired"]);
    assert.deepEqual([event.event_type, event.bounce_type, event.class], ["expired", "soft", "expired"]);
    assert.equal(event.message, `gave up after 18 attempts over 72 h: ${outcome.message}`);
    assert.equal(row.diag_message, outcome.message, "what was said last");
  }
  const job = jobWith(-1, 18, { created_at: new Date(NOW_MS - 72 * HOUR_MS) });
  const { row, event } = decide(world, job, tooLate(job));
  assert.deepEqual([row.status, row.bounce_class, event.class], ["expired", "expired", "expired"]);
  assert.equal(event.message, "gave up after 18 attempts over 72 h");
});

test("the time of mail that was scheduled begins at its time, and that of a one-time code is shown in minutes", () => {
  const over = deferredLocally("busy", "4.3.2", "busy");
  const said = (job: Job): string | null => decide(world, job, over).event.message;
  const scheduled = jobWith(15_000, 17, { created_at: new Date(NOW_MS - 240 * HOUR_MS) });
  assert.match(said(scheduled) ?? "", /^gave up after 18 attempts over 72 h:/);
  const code = jobWith(15_000, 0, { created_at: new Date(NOW_MS - 5 * MINUTE_MS), has_expiry: true });
  assert.match(said(code) ?? "", /^gave up after 1 attempt over 5 min:/);
});

test("what a server refuses for good keeps its own word, in the record as in the event", () => {
  const no = { ...deferredLocally("5.7.1 no", "5.7.1", "policy"), kind: "bounced", smtp_code: "550" } as const;
  const { row, event } = decide(world, jobWith(HOUR_MS, 2), { ...no, bounce_type: "hard" });
  assert.deepEqual(
    [row.status, row.bounce_class, event.class, event.message],
    ["bounced", "policy", "policy", "5.7.1 no"],
  );
  assert.deepEqual([row.bounce_type, event.bounce_type], ["hard", "hard"]);
});
