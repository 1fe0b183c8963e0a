// SPF records as customers publish them: which let us send, and what is said of those that do not.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startProcessorTime } from "../../test/support/processor-time.ts";
import { judgeSpf } from "./spf.ts";

const host = "_spf.postern.test";
const google = "v=spf1 include:netblocks.test ~all";

type Zone = Record<string, string[] | "servfail">;

async function judge(texts: string[], zone: Zone = {}) {
  const asked: string[] = [];
  const verdict = await judgeSpf(texts, host, async (name) => {
    asked.push(name);
    const records = zone[name];
    if (records === "servfail") return { kind: "failed", reason: "servfail" };
    if (!records) return { kind: "absent", reason: "nxdomain" };
    return { kind: "found", records, ttl_s: 60, authenticated: false };
  });
  return { ...verdict, asked };
}

const good: [string, string, Zone?][] = [
  ["the record we ask for", `v=spf1 include:${host} ~all`],
  ["other case and double spaces", `V=SPF1  Include:_SPF.Postern.Test  -ALL`],
  ["a final dot", `v=spf1 include:${host}. ~all`],
  ["an explicit plus", `v=spf1 +include:${host} -all`],
  ["networks before it", `v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 a mx/24 a:x.test/24 include:${host} ?all`],
  ["an unknown modifier", `v=spf1 include:${host} exp=why.test unknown=1 ~all`],
  ["a redirect to ours", `v=spf1 redirect=${host}`],
  [
    "ours behind another include",
    `v=spf1 include:a.test include:${host} ~all`,
    { "a.test": ["v=spf1 ip4:192.0.2.1 -all"] },
  ],
  ["ours inside another include", "v=spf1 include:a.test ~all", { "a.test": [`v=spf1 include:${host} -all`] }],
  ["ours behind a redirect", "v=spf1 redirect=a.test", { "a.test": [`v=spf1 include:${host} -all`] }],
  ["a macro before ours", `v=spf1 exists:%{i}.x.test include:%{d}.y.test include:${host} -all`],
  ["ours as the tenth look-up", `v=spf1 ${"a ".repeat(9)}include:${host} -all`],
];
for (const [what, record, zone] of good) {
  test(`SPF lets us send with ${what}`, async () => {
    const { status, hint, found } = await judge(["google-site-verification=x", record], zone);
    assert.deepEqual({ status, hint, found }, { status: "ok", hint: null, found: [record] });
  });
}

const bad: [string, string[], RegExp, Zone?][] = [
  [
    "another include only",
    ["v=spf1 include:a.test ~all"],
    /change it to: v=spf1 include:a\.test include:_spf\.postern\.test ~all/,
    { "a.test": [google], "netblocks.test": ["v=spf1 -all"] },
  ],
  ["no mechanism at all", ["v=spf1"], /change it to: v=spf1 include:_spf/],
  [
    "two records",
    [`v=spf1 include:${host} ~all`, "v=spf1 include:a.test mx -all"],
    /2 SPF records.*by one: v=spf1 include:_spf\.postern\.test include:a\.test mx ~all/,
  ],
  ["ours behind all", [`v=spf1 ~all include:${host}`], /stands behind "~all"/],
  ["ours behind a redirect's record", [`v=spf1 redirect=a.test`], /does not include/, { "a.test": ["v=spf1 -all"] }],
  ["a minus before ours", [`v=spf1 -include:${host} ~all`], /without "-"/],
  ["a mechanism other than include", [`v=spf1 a:${host} ~all`], /write include:/],
  ["a misspelt term", [`v=spf1 includes:${host} ~all`], /not a term of SPF/],
  ["ipv4: for ip4:", [`v=spf1 ipv4:192.0.2.1 include:${host} ~all`], /"ipv4:192\.0\.2\.1" is not a term/],
  ["a space after the colon", [`v=spf1 include: ${host} ~all`], /no space may follow the colon/],
  ["a bad network", [`v=spf1 ip4:192.0.2.300 include:${host} ~all`], /not an IPv4/],
  ["a bad prefix", [`v=spf1 ip6:2001:db8::/129 include:${host} ~all`], /not an IPv6/],
  ["quotes inside", [`v=spf1 "include:${host}" ~all`], /quotation mark/],
  ["parts joined without a space", [`v=spf1 include:a.testinclude:${host} ~all`], /two terms without a space/],
  [
    "an include without SPF before ours",
    [`v=spf1 include:gone.test include:${host} ~all`],
    /gone\.test has no SPF record.*before it/,
  ],
  [
    "an include with two SPF records",
    [`v=spf1 include:a.test include:${host} ~all`],
    /has 2 SPF records/,
    { "a.test": [google, google] },
  ],
  ["ours as the eleventh look-up", [`v=spf1 ${"a ".repeat(10)}include:${host} -all`], /more than 10 DNS look-ups/],
  [
    "the value in two records",
    ["v=spf1 include:a.test", `include:${host} ~all`],
    /split over several TXT records/,
    { "a.test": ["v=spf1 -all"] },
  ],
  ["quotes around the value", [`"v=spf1 include:${host} ~all"`], /quotation marks/],
  ["no space after the version", [`v=spf1include:${host} ~all`], /no space after v=spf1/],
  ["a space before the version", [` v=spf1 include:${host} ~all`], /begins with a space/],
  ["a Sender ID record", ["spf2.0/pra include:a.test ~all"], /Sender ID/],
];
for (const [what, texts, hint, zone] of bad) {
  test(`SPF that does not let us send says why: ${what}`, async () => {
    const verdict = await judge(texts, zone);
    assert.equal(verdict.status, "mismatch");
    assert.match(verdict.hint ?? "", hint);
    assert.notEqual(verdict.found.length, 0);
  });
}

test("no SPF record is missing, whatever else stands at the root", async () => {
  const verdict = await judge(["MS=ms123", "my text about anti-spf tools"]);
  assert.equal(verdict.status, "missing");
  assert.deepEqual(verdict.found, []);
});

test("an include that cannot be asked for is an error, not a mismatch", async () => {
  const verdict = await judge([`v=spf1 include:a.test include:${host} ~all`], { "a.test": "servfail" });
  assert.equal(verdict.status, "error");
  assert.match(verdict.hint ?? "", /could not be looked up \(servfail\)/);
});

test("includes that run in a circle end after ten look-ups", async () => {
  const verdict = await judge(["v=spf1 include:a.test ~all"], { "a.test": ["v=spf1 include:a.test ~all"] });
  assert.equal(verdict.status, "mismatch");
  assert.match(verdict.hint ?? "", /more than 10/);
  assert.equal(verdict.asked.length, 10);
});

test("an enormous record is cut before it is read", async () => {
  const verdict = await judge([`v=spf1 ${"include:a.test ".repeat(100_000)}include:${host} ~all`], {
    "a.test": ["v=spf1 -all"],
  });
  assert.equal(verdict.status, "mismatch");
});

test("a record of 60 KB that is almost one is judged at once", async () => {
  const used = startProcessorTime();
  const verdict = await judge([`v${"=".repeat(60_000)}spf`, `${" ".repeat(60_000)}spf`]);
  assert.ok(used() < 1_000, `${used()} ms`);
  assert.equal(verdict.status, "missing");
});
