// Times, figures, states and reasons as people read them.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sayBrowser } from "./browsers.ts";
import { sayTypeChange } from "./domain-types.ts";
import { sayNumber, sayShare } from "./domain-views.ts";
import { STATUSES } from "./email-filters.ts";
import { sayLimit } from "./limits.ts";
import { keyState, sayFailure, sayFingerprint } from "./masked-words.ts";
import { readOperation, sayChanges, sayOperation } from "./operations.ts";
import { toneOfEmail, wordOf } from "./states.ts";
import * as times from "./times.ts";
import { explainVerdicts } from "./verdicts.ts";
import { sayWhy, serverWords } from "./why.ts";

const DAY_MS = 86_400_000;
/** In the time zone of the reader. */
const at = (day: number, hour: number, minute = 0) => new Date(2026, 10, day, hour, minute, 9);
const NOW = at(24, 18).getTime();

describe("another type of a domain", () => {
  it("names the records that it needs then, and what becomes of its mail", () => {
    const say = (type: "outbound" | "inbound", to: "outbound" | "inbound" | "both" | "alias", verified = true) =>
      sayTypeChange({ type, verified }, to).join(" ");
    assert.match(say("outbound", "both"), /^It needs our MX record\. .*goes on sending for 72 hours/);
    assert.doesNotMatch(say("outbound", "both", false), /72 hours/);
    assert.match(say("inbound", "both"), /^It needs an SPF and a DKIM record\. It can send once DNS shows both\.$/);
    assert.match(say("outbound", "inbound"), /MX record.*Nothing can be sent from it any more/);
    assert.match(say("inbound", "outbound"), /SPF.*Mail to it is refused/);
    assert.equal(say("inbound", "alias"), "It needs the same records as before.");
  });
});

describe("a time", () => {
  it("in a list: the clock alone today, the day with it before, the year with it in another one", () => {
    assert.equal(times.sayShortly(at(24, 14, 2).toISOString(), NOW), "14:02:09");
    assert.equal(times.sayShortly(at(23, 14, 2).toISOString(), NOW), "23 Nov, 14:02");
    assert.equal(times.sayShortly(new Date(2025, 0, 5, 9, 30).toISOString(), NOW), "5 Jan 2025, 09:30");
  });

  it("exactly: with seconds and the zone", () => {
    assert.match(times.sayExactly(at(24, 14, 2).toISOString()), /^24 Nov 2026, 14:02:09 \S+/);
  });

  it("relatively: in the largest unit that is full, both ways", () => {
    const ago = (ms: number) => times.sayRelative(new Date(NOW - ms).toISOString(), NOW);
    assert.deepEqual([0, 59_999, 60_000, 7_199_000, 26 * 3_600_000, 5 * DAY_MS].map(ago), [
      ...["now", "59 seconds ago", "1 minute ago", "1 hour ago", "yesterday", "5 days ago"],
    ]);
    assert.deepEqual([-90_000, -2 * 3_600_000, -DAY_MS].map(ago), ["in 1 minute", "in 2 hours", "tomorrow"]);
  });

  it("how long it took", () => {
    const all = [840, 9_400, 12_000, 180_000, 7_200_000, 4 * DAY_MS].map(times.sayDuration);
    assert.deepEqual(all, ["0.8 s", "9.4 s", "12 s", "3 min", "2 h", "4 d"]);
  });
});

describe("a limit", () => {
  it("of warming or of a quota says which one it is, when it is over, and where it is lifted", () => {
    const message =
      "the daily limit of this domain's warming phase (50) is exceeded. A domain that has sent: POST /v1/x";
    const warming = sayLimit({ limit_type: "daily", message, retry_after_seconds: 41_234, warming_phase: "phase_1" });
    assert.equal(warming.title, "The domain's limit is reached");
    assert.match(warming.text, /^The daily limit of .* \(50\) is exceeded\. Try again in 11 hours\. The domain's page/);
    const quota = {
      limit_type: "monthly_quota",
      message: "the monthly quota is exceeded",
      retry_after_seconds: 200_000,
    };
    const text = "The monthly quota is exceeded. Try again in 2 days.";
    assert.deepEqual(sayLimit({ ...quota, warming_phase: "" }), { title: "A limit is reached", text });
  });

  it("of a pace says how many seconds to wait", () => {
    const text = "Try again in 7 seconds.";
    assert.deepEqual(sayLimit({ limit_type: "sign_ins", message: "x", retry_after_seconds: 7 }), {
      ...{ title: "Too many tries", text },
    });
    assert.equal(sayLimit({ limit_type: "requests_per_second", retry_after_seconds: 7 }).title, "Too many requests");
  });
});

describe("a figure", () => {
  it("of bytes has three or four digits at most, and its unit", () => {
    const said = [999, 1_000, 84_400, 999_499, 999_500, 2_500_000, 999_950_000, 1.5e12].map(times.saySize);
    assert.deepEqual(said, [...["999 bytes", "1 KB", "84 KB", "999 KB", "1.0 MB", "2.5 MB", "1.0 GB", "1500.0 GB"]]);
  });

  it("of things agrees with their number, and says when there are more", () => {
    const mail = { one: "e-mail" };
    assert.deepEqual(
      [0, 1, 18_204].map((total) => times.sayCount(total, mail)),
      [...["0 e-mails", "1 e-mail", "18,204 e-mails"]],
    );
    assert.equal(times.sayCount(2, { one: "alias", many: "aliases" }), "2 aliases");
    assert.equal(times.sayCount(100_000, { ...mail, isAtLeast: true }), "at least 100,000 e-mails");
    assert.deepEqual(
      [times.sayFigure(1_000, true), times.sayFigure(0, true), times.sayFigure(12)],
      ["1,000+", "0", "12"],
    );
  });

  it("of a share never says 0.0 % of something, nor a share of nothing", () => {
    const said = [
      times.sayPercent(0, 10),
      times.sayPercent(1, 100_000),
      times.sayPercent(1, 3),
      times.sayPercent(1, 0),
    ];
    assert.deepEqual(said, ["0.0 %", "under 0.1 %", "33 %", "–"]);
    assert.deepEqual(
      [sayShare(0.985), sayShare(null), sayNumber(50_000), sayNumber(null)],
      [...["98.5 %", "–", "50,000", "no limit"]],
    );
  });
});

describe("a state", () => {
  it("is words that begin with a capital, and every state of an e-mail has a tone", () => {
    assert.equal(wordOf("partially_delivered"), "Partially delivered");
    assert.ok(STATUSES.every((status) => ["good", "warn", "bad", "idle"].includes(toneOfEmail(status))));
    assert.deepEqual([toneOfEmail("delivered"), toneOfEmail("bounced")], ["good", "bad"]);
  });

  it("of a browser is what people call it, whatever it claims to be besides", () => {
    const edge = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/131.0 Safari/537.36 Edg/131.0";
    assert.equal(sayBrowser(edge), "Edge on Windows");
    assert.equal(
      sayBrowser("Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Version/18.1 Safari/604.1"),
      "Safari on iOS",
    );
    assert.deepEqual([sayBrowser("curl/8.11"), sayBrowser("")], ["curl/8.11", "Unknown"]);
  });

  it("of the audit log is the operation in words, with its abbreviations", () => {
    const said = ["createApiKey", "updateIpPool", "setMaskedPgpKey", "offerTotp"].map(sayOperation);
    assert.deepEqual(said, ["Create API key", "Update IP pool", "Set masked PGP key", "Offer TOTP"]);
    const names = ["createApiKey", "setMaskedPgpKey", "login", "organizations set"];
    assert.deepEqual(names.map(sayOperation).map(readOperation), names);
    assert.equal(readOperation(" createApiKey "), "createApiKey");
  });

  it("of the audit log is what became of each field, and its name alone where its value is not kept", () => {
    const changes = [
      { field: "active", before: "true", after: "false" },
      { field: "thresholds.tag", before: null, after: "4" },
      { field: "ip_pool", before: "bulk", after: null },
    ];
    const fields = ["active", "thresholds", "url", "ip_pool"];
    const said = ["active: true → false", "thresholds.tag: 4", "ip_pool: bulk → –", "url"];
    assert.deepEqual(sayChanges({ fields, changes }), said);
  });
});

describe("masked mail", () => {
  it("that failed says whether it was refused, and how", () => {
    assert.equal(sayFailure("hard 5.1.1 invalid_recipient"), "The address takes no mail: 5.1.1, invalid recipient");
    assert.equal(sayFailure("soft 5.7.1 content"), "Refused: 5.7.1, content");
    assert.deepEqual([sayFailure("soft"), sayFailure("something else")], ["Refused", "something else"]);
  });

  it("the fingerprint of a key stands in groups of four, and its end is said a month before", () => {
    assert.equal(sayFingerprint("0123456789ABCDEF01"), "0123 4567 89AB CDEF 01");
    assert.equal(sayFingerprint(""), "");
    const ends = (days: number) => keyState(new Date(NOW + days * DAY_MS).toISOString(), NOW);
    assert.deepEqual(
      [ends(-1), ends(0), ends(29), ends(31), keyState(null, NOW)],
      ["over", "over", "soon", "good", "good"],
    );
  });
});

describe("why a mail did not arrive", () => {
  type Known = Parameters<typeof sayWhy>[0];
  const recipient = (fields: Partial<Known["recipient"]>): Known["recipient"] => ({
    ...({ email: "t@kontor.example", status: "deferred", attempts: 2, next_attempt_at: null } as Known["recipient"]),
    ...{ bounce_type: null, bounce_class: null, bounce_code: null, diag_code: null, diag_message: null },
    ...fields,
  });
  const event = (fields: Partial<Known["events"][number]>): Known["events"][number] => ({
    ...({ smtp_code: null, enhanced_code: null, message: null, mx_host: null } as Known["events"][number]),
    ...fields,
  });
  const busy = event({ smtp_code: "451", enhanced_code: "4.7.1", message: "Try later", mx_host: "mx.kontor.example" });

  it("every state is a title and full sentences", () => {
    const states = [
      "queued",
      "deferred",
      "delivered",
      "bounced",
      "complained",
      "suppressed",
      "failed",
      "expired",
    ] as const;
    for (const status of [...states, "canceled", "simulated"] as const) {
      const { title, text } = sayWhy({ recipient: recipient({ status }), events: [], nowMs: NOW });
      assert.ok(title.length > 0 && /[.!?]$/.test(text), `${status}: ${text}`);
      assert.doesNotMatch(`${title} ${text}`, /undefined|null|NaN/, status);
    }
  });

  it("what was put back says why, by whom, and when it goes on", () => {
    const next_attempt_at = at(24, 18, 30).toISOString();
    const known = { recipient: recipient({ bounce_class: "greylisted", next_attempt_at }), events: [busy], nowMs: NOW };
    const { title, text, said, tone } = sayWhy(known);
    assert.equal(title, "Not delivered yet: the recipient's server lets new senders wait");
    assert.match(
      text,
      /^mx\.kontor\.example answered for kontor\.example\. .*tries again at 18:30:09\. That was attempt 2\.$/,
    );
    assert.deepEqual([said, tone], ["451 4.7.1 Try later", "warn"]);
  });

  it("what Postern itself holds back blames no server", () => {
    const why = "waits for the next window: the hourly limit of this domain's warming phase (5) is exceeded";
    const held = recipient({ attempts: 0, bounce_class: "local", next_attempt_at: at(24, 19).toISOString() });
    const waits = event({ enhanced_code: "4.3.0", message: why });
    const { title, text, said } = sayWhy({ recipient: held, events: [event({}), waits], nowMs: NOW });
    assert.equal(title, "Not sent yet: Postern holds it back");
    assert.equal(text, "No server was asked yet. Postern looks again at 19:00:09.");
    assert.equal(said, why);
  });

  it("a bounce says what can be done, in Postern's words and in the server's", () => {
    const hard = recipient({
      status: "bounced",
      bounce_type: "hard",
      bounce_class: "invalid_recipient",
      diag_message: "No such user",
    });
    const why = sayWhy({ recipient: hard, events: [], nowMs: NOW });
    assert.deepEqual([why.tone, why.said], ["bad", "No such user"]);
    assert.match(why.text, /does not exist/);
  });

  it("a server's code that is in its words already stands there once", () => {
    assert.equal(
      serverWords(event({ smtp_code: "550", enhanced_code: "5.1.1", message: "550 5.1.1 gone" })),
      "550 5.1.1 gone",
    );
    assert.equal(serverWords(event({})), null);
  });

  it("SPF, DKIM and DMARC name the domain, and the colour goes with the result", () => {
    const mail = {
      ...{ spf: "fail", dkim: "pass", envelope: { from: "a@shop.example", helo: "mx", remote_ip: "192.0.2.1" } },
      auth_results: { dkim: { domain: "shop.example" }, dmarc: { result: "pass", from_domain: "shop.example" } },
    } as unknown as Parameters<typeof explainVerdicts>[0];
    const verdicts = explainVerdicts(mail);
    assert.deepEqual(
      verdicts.map(({ name, tone }) => [name, tone]),
      [
        ["SPF", "bad"],
        ["DKIM", "good"],
        ["DMARC", "good"],
      ],
    );
    assert.equal(verdicts[0]?.text, "shop.example says that 192.0.2.1 may not send for it.");
  });
});
