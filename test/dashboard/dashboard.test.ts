// What the dashboard says and reads, without a browser: why a mail did not arrive, what a filter and a search mean, and how an
// error is said. The stories in Chromium are in dashboard/test/.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Declined, type Schemas } from "../../dashboard/api/client.ts";
import { sayError } from "../../dashboard/api/say-error.ts";
import { isNarrowed, readEmailFilters, readSearch } from "../../dashboard/lib/email-filters.ts";
import { sayCount, sayDuration, sayRelative } from "../../dashboard/lib/times.ts";
import { sayWhy } from "../../dashboard/lib/why.ts";

const NOW_MS = Date.parse("2026-11-24T12:00:00Z");
type Recipient = Schemas["Recipient"];
type Event = Schemas["EmailEvent"];

function recipient(fields: Partial<Recipient>): Recipient {
  const none = { next_attempt_at: null, delivered_at: null, bounce_type: null, bounce_code: null };
  const reply = { diag_code: null, diag_message: null, bounce_class: null };
  return { email: "anna@kontor.example", kind: "to", status: "queued", attempts: 1, ...none, ...reply, ...fields };
}

function event(fields: Partial<Event>): Event {
  const id = "01a20955-f37d-7779-8000-000000000000";
  const spoke = { mx_host: "mx.kontor.example", mx_ip: null, source_ip: null, tls: null, duration_ms: 12 };
  const reply = { smtp_code: "451", enhanced_code: "4.7.650", message: "451 4.7.650 rate limited" };
  const what = { id, event_type: "deferred", recipient: "anna@kontor.example", timestamp: "2026-11-24T11:59:00Z" };
  return { ...what, attempt: 1, ...reply, ...spoke, ...fields };
}

describe("why a mail did not arrive", () => {
  it("says for each state a sentence of its own", () => {
    const states: Recipient["status"][] = [
      ...(["queued", "deferred", "delivered", "bounced", "complained"] as const),
      ...(["suppressed", "failed", "expired", "canceled", "simulated"] as const),
    ];
    const said = states.map((status) => sayWhy({ recipient: recipient({ status }), events: [], nowMs: NOW_MS }));
    assert.equal(new Set(said.map(({ title }) => title)).size, states.length);
    for (const { text } of said) assert.match(text, /^[A-Z].*\.$/);
  });

  it("has a deferral's reason, when it goes on, and the server's words once", () => {
    const deferred = recipient({
      status: "deferred",
      bounce_class: "rate_limited",
      next_attempt_at: "2026-11-24T12:14:00Z",
      attempts: 2,
    });
    const why = sayWhy({ recipient: deferred, events: [event({})], nowMs: NOW_MS });
    assert.equal(why.title, "Not delivered yet: the recipient's server asks us to slow down");
    assert.match(why.text, /^mx\.kontor\.example answered for kontor\.example\. .*:14:00\. That was attempt 2\.$/);
    assert.equal(why.said, "451 4.7.650 rate limited");
  });

  it("tells an address at fault from a server that refuses", () => {
    const hard = recipient({ status: "bounced", bounce_type: "hard", bounce_class: "invalid_recipient" });
    const soft = recipient({ status: "bounced", bounce_type: "soft", bounce_code: "554", diag_message: "no" });
    assert.match(sayWhy({ recipient: hard, events: [], nowMs: NOW_MS }).title, /this address takes no mail/);
    const refused = sayWhy({ recipient: soft, events: [], nowMs: NOW_MS });
    assert.match(refused.title, /the server refused/);
    assert.equal(refused.said, "554 no");
  });
});

describe("the filters of an address", () => {
  it("keep what is meant and leave out what is wrong", () => {
    const search = { status: "bounced", tag: 7, to: "", environment: "prod", live: true, other: "x" };
    assert.deepEqual(readEmailFilters(search), { status: "bounced", tag: "7", live: true });
    assert.deepEqual(readEmailFilters({ status: "lost", live: "yes" }), {});
  });

  it("narrow the list only when they choose rows", () => {
    assert.equal(isNarrowed({ live: true, after: "01a20955-f37d-7779-8000-000000000000" }), false);
    assert.equal(isNarrowed({ subject: "invoice" }), true);
  });

  it("come from a search by what it looks like", () => {
    const id = "01a20955-f37d-7779-8000-000000000000";
    assert.deepEqual(readSearch(` ${id} `), { id });
    assert.deepEqual(readSearch("anna@kontor.example"), { to: "anna@kontor.example" });
    assert.deepEqual(readSearch("<a@b.example>"), { message_id: "a@b.example" });
    assert.deepEqual(readSearch("Your invoice @ home"), { subject: "Your invoice @ home" });
    assert.deepEqual(readSearch(" "), { subject: undefined });
  });
});

describe("an error", () => {
  const said = (status: number, body: unknown) => sayError(new Declined(status, body));

  it("is a title and a whole sentence, never a code alone", () => {
    for (const status of [0, 400, 401, 403, 404, 409, 422, 429, 500, 503]) {
      const { title, text } = said(status, { error: "the domain is not ready", code: "domain_not_ready" });
      assert.match(text, /^[A-Z].*\.$/, String(status));
      assert.doesNotMatch(title + text, /_/, String(status));
    }
    assert.match(sayError(new TypeError("x is undefined")).text, /x is undefined\.$/);
  });

  it("tells who may not from what is not there and from nobody signed in", () => {
    assert.equal(said(403, { error: "no", code: "test_key_not_allowed" }).title, "A test key may not do this");
    assert.deepEqual(
      [401, 403, 404, 409].map((status) => said(status, {}).kind),
      ["signed-out", "no-permission", "not-found", "error"],
    );
    assert.equal(said(429, { error: "x", retry_after_seconds: 9 }).text, "Try again in 9 seconds.");
  });
});

describe("figures", () => {
  it("are said as people say them", () => {
    assert.equal(sayCount(1, { one: "e-mail" }), "1 e-mail");
    assert.equal(sayCount(100_000, { one: "e-mail", isAtLeast: true }), "at least 100,000 e-mails");
    assert.deepEqual([840, 12_400, 300_000, 9e6, 3e8].map(sayDuration), ["0.8 s", "12 s", "5 min", "3 h", "3 d"]);
    assert.equal(sayRelative("2026-11-24T11:57:00Z", NOW_MS), "3 minutes ago");
    assert.equal(sayRelative("2026-11-24T14:00:00Z", NOW_MS), "in 2 hours");
  });
});
