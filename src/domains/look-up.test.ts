// What a check says of records that a real name server answers: every status and every hint, and the bounds of a check.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { dkimRecord, generateDkimKey } from "../mail/dkim/key.ts";
import { createClock } from "../platform/clock.ts";
import { createResolver, type Resolver } from "../platform/dns/resolver.ts";
import { lookUpRecords } from "./look-up.ts";
import type { ExpectedRecord, Purpose } from "./types.ts";

let dns: DnsServer;
let resolver: Resolver;
const clock = createClock({});

const ourRecord = ["v=spf1 ip4:198.51.100.25 -all"];
beforeEach(() => {
  dns.set("_spf.postern.test", "TXT", ourRecord);
  dns.set("bounces.postern.test", "TXT", ["v=spf1 include:_spf.postern.test -all"]);
});

before(async () => {
  dns = await startDnsServer();
  resolver = resolverOf(3_000);
});
function resolverOf(timeout_ms: number): Resolver {
  return createResolver({
    ...{ servers: [dns.address], timeout_ms, attempts: 1, cache_max: 1_000, validating: false },
    now: () => clock.now(),
  });
}
after(() => dns.stop());
afterEach(() => dns.clear());

const key = await generateDkimKey("rsa");
const domain = "shop.example.test";
const token = "postern-verify=AbCdEfGhIjKlMnOpQrStUvWxYz012345";
const uri = "mailto:00112233445566778899aabbccddeeff@reports.postern.test";

function record(purpose: Purpose, name: string, value: string, more: Partial<ExpectedRecord> = {}): ExpectedRecord {
  return { purpose, type: "TXT", name, value, priority: null, ttl: 3600, required: true, note: null, ...more };
}
const config = { hostname: "postern.test", public_addresses: ["198.51.100.25"] };
const records = {
  ownership: record("ownership", `_postern.${domain}`, token),
  spf: record("spf", domain, "v=spf1 include:_spf.postern.test ~all"),
  dkim: record("dkim", `postern1._domainkey.${domain}`, dkimRecord(key.public_key, "rsa")),
  mx: record("mx", domain, "mx.postern.test", { type: "MX", priority: 10 }),
  return_path: record("return_path", `pt-bounces.${domain}`, "bounces.postern.test", { type: "CNAME" }),
  dmarc: record("dmarc", `_dmarc.${domain}`, `v=DMARC1; p=none; rua=${uri}`),
  dmarc_authorization: record("dmarc_authorization", `${domain}._report._dmarc.reports.postern.test`, "v=DMARC1"),
};

type Zone = [name: string, type: string, values: unknown[]][];

async function look(purpose: Purpose, zone: Zone = [], acknowledged = false) {
  for (const [name, type, values] of zone) dns.set(name, type, values);
  const owner = { domain, inbound_mx_acknowledged: acknowledged, pool: [] };
  const [check] = await lookUpRecords({ resolver, clock, config }, owner, [records[purpose]], { fresh: true });
  assert.ok(check);
  assert.deepEqual([check.purpose, check.name], [purpose, records[purpose].name]);
  assert.match(check.checked_at, /^\d{4}-\d\d-\d\dT.*\.\d{3}Z$/);
  return check;
}

const mx = (preference: number, exchange = "mx.postern.test") => ({ preference, exchange });
const at = { ownership: `_postern.${domain}`, dkim: `postern1._domainkey.${domain}`, dmarc: `_dmarc.${domain}` };
const path = `pt-bounces.${domain}`;
const spf = records.spf.value;

const right: [string, Purpose, Zone, RegExp?][] = [
  ["ownership", "ownership", [[at.ownership, "TXT", [token]]]],
  ["ownership beside another organization's token", "ownership", [[at.ownership, "TXT", ["postern-verify=x", token]]]],
  [
    "ownership behind an alias",
    "ownership",
    [
      [at.ownership, "CNAME", ["t.other.test"]],
      ["t.other.test", "TXT", [token]],
    ],
  ],
  ["SPF", "spf", [[domain, "TXT", ["other=1", spf]]]],
  ["DKIM", "dkim", [[at.dkim, "TXT", [records.dkim.value]]]],
  ["DKIM with a testing flag, and says so", "dkim", [[at.dkim, "TXT", [`${records.dkim.value}; t=y`]]], /t=y/],
  ["the return path", "return_path", [[path, "CNAME", ["Bounces.Postern.Test"]]]],
  [
    "the return path through an alias of one's own",
    "return_path",
    [
      [path, "CNAME", ["b.example.test"]],
      ["b.example.test", "CNAME", ["bounces.postern.test"]],
    ],
  ],
  ["MX", "mx", [[domain, "MX", [mx(10)]]]],
  ["MX with another priority", "mx", [[domain, "MX", [mx(0)]]]],
  [
    "MX with a back-up behind ours, and says so",
    "mx",
    [[domain, "MX", [mx(20, "backup.test"), mx(10)]]],
    /backup\.test whenever/,
  ],
  ["DMARC", "dmarc", [[at.dmarc, "TXT", [records.dmarc.value]]]],
  [
    "DMARC with a stricter policy and further addresses",
    "dmarc",
    [
      [
        at.dmarc,
        "TXT",
        [
          `v=DMARC1;p=reject; rua=mailto:me@example.test , ${uri.toUpperCase().replace("MAILTO", "mailto")}!10m ; pct=50`,
        ],
      ],
    ],
  ],
];
for (const [what, purpose, zone, hint] of right) {
  test(`right: ${what}`, async () => {
    const check = await look(purpose, zone);
    assert.equal(check.status, "ok", check.hint ?? "");
    assert.ok(check.found.length > 0);
    if (hint) assert.match(check.hint ?? "", hint);
    else assert.equal(check.hint, null);
  });
}

const doubled = (name: string, zone = "example.test") => `${name}.${zone}`;
const absent: [string, Purpose, Zone, RegExp][] = [
  ["ownership", "ownership", [], /no TXT record/],
  [
    "ownership with the zone's name twice",
    "ownership",
    [[doubled(at.ownership), "TXT", [token]]],
    /stands at _postern\.shop\.example\.test\.example\.test.*Enter only _postern\.shop as/,
  ],
  [
    "ownership with the domain's name twice",
    "ownership",
    [[doubled(at.ownership, domain), "TXT", [token]]],
    /Enter only _postern as/,
  ],
  [
    "ownership at the root",
    "ownership",
    [[domain, "TXT", [token]]],
    /stands at shop\.example\.test itself; it must stand at _postern\.shop/,
  ],
  ["SPF", "spf", [[domain, "TXT", ["other=1"]]], /no SPF record/],
  ["SPF with the zone's name twice", "spf", [[doubled(domain), "TXT", [spf]]], /Enter only shop as/],
  ["SPF with the domain's name twice", "spf", [[doubled(domain, domain), "TXT", [spf]]], /Enter only @ as/],
  ["DKIM", "dkim", [], /no TXT record/],
  [
    "DKIM with the zone's name twice",
    "dkim",
    [[doubled(at.dkim), "TXT", [records.dkim.value]]],
    /Enter only postern1\._domainkey\.shop as/,
  ],
  ["DKIM at the root", "dkim", [[domain, "TXT", [records.dkim.value]]], /itself; it must stand at postern1/],
  ["MX", "mx", [[domain, "A", ["192.0.2.1"]]], /no MX record/],
  ["MX with the zone's name twice", "mx", [[doubled(domain), "MX", [mx(10)]]], /Enter only shop as/],
  ["return path", "return_path", [], /no CNAME record/],
  [
    "return path with the zone's name twice",
    "return_path",
    [[doubled(path), "CNAME", ["bounces.postern.test"]]],
    /Enter only pt-bounces\.shop as/,
  ],
  ["DMARC", "dmarc", [[at.dmarc, "TXT", ["hello"]]], /no DMARC record/],
  ["DMARC at the root", "dmarc", [[domain, "TXT", [records.dmarc.value]]], /itself; it must stand at _dmarc/],
];
for (const [what, purpose, zone, hint] of absent) {
  test(`missing: ${what}`, async () => {
    const check = await look(purpose, zone);
    assert.equal(check.status, "missing");
    assert.deepEqual(check.found, []);
    assert.match(check.hint ?? "", hint);
  });
}

const p = records.dkim.value;
const wrong: [string, Purpose, Zone, RegExp][] = [
  ["ownership in quotes", "ownership", [[at.ownership, "TXT", [`"${token}"`]]], /quotation marks/],
  ["ownership with text behind it", "ownership", [[at.ownership, "TXT", [`${token};`]]], /before or behind/],
  [
    "ownership without its beginning",
    "ownership",
    [[at.ownership, "TXT", [token.slice(15)]]],
    /lacks its beginning postern-verify=/,
  ],
  ["ownership in lower case", "ownership", [[at.ownership, "TXT", [token.toLowerCase()]]], /case differ/],
  ["ownership cut off", "ownership", [[at.ownership, "TXT", [token.slice(0, 30)]]], /cut off/],
  ["another token", "ownership", [[at.ownership, "TXT", ["postern-verify=zzz"]]], /another token/],
  ["a wildcard's text", "ownership", [["*.example.test", "TXT", ["v=spf1 -all"]]], /not ours \(perhaps a wildcard/],
  ["two SPF records", "spf", [[domain, "TXT", [spf, "v=spf1 mx -all"]]], /2 SPF records/],
  [
    "SPF of others",
    "spf",
    [[domain, "TXT", ["v=spf1 mx -all"]]],
    /change it to: v=spf1 mx include:_spf\.postern\.test -all/,
  ],
  ["another DKIM key", "dkim", [[at.dkim, "TXT", [`${p.slice(0, -20)}AAAAAAAAAAAAAAAAAAAA`]]], /another key/],
  ["DKIM in two records", "dkim", [[at.dkim, "TXT", [p.slice(0, 200), p.slice(200)]]], /split over several/],
  ["DKIM in quotes", "dkim", [[at.dkim, "TXT", [`"${p.slice(0, 200)}" "${p.slice(200)}"`]]], /quotation marks/],
  [
    "MX elsewhere",
    "mx",
    [[domain, "MX", [mx(1, "aspmx.test")]]],
    /goes to aspmx\.test. Publishing our MX instead moves all mail/,
  ],
  ["MX before ours", "mx", [[domain, "MX", [mx(10), mx(5, "aspmx.test")]]], /goes to aspmx\.test first/],
  ["MX beside ours", "mx", [[domain, "MX", [mx(10), mx(10, "aspmx.test")]]], /same priority/],
  ["a null MX", "mx", [[domain, "MX", [mx(0, ".")]]], /null MX/],
  ["an MX that is an address", "mx", [[domain, "MX", [mx(10, "192.0.2.1")]]], /names an address/],
  [
    "an MX with the zone's name behind it",
    "mx",
    [[domain, "MX", [mx(10, "mx.postern.test.example.test")]]],
    /Enter mx\.postern\.test\. with the final dot/,
  ],
  [
    "a return path to another host",
    "return_path",
    [[path, "CNAME", ["else.test"]]],
    /points to else\.test; it must point to bounces/,
  ],
  [
    "a return path with the zone's name behind it",
    "return_path",
    [[path, "CNAME", ["bounces.postern.test.example.test"]]],
    /with the final dot/,
  ],
  [
    "a proxied or flattened return path",
    "return_path",
    [
      [path, "A", ["192.0.2.9"]],
      [path, "AAAA", ["2001:db8::9"]],
    ],
    /proxied or flattened/,
  ],
  ["two DMARC records", "dmarc", [[at.dmarc, "TXT", [records.dmarc.value, "v=DMARC1; p=reject"]]], /2 DMARC records/],
  ["DMARC without rua", "dmarc", [[at.dmarc, "TXT", ["v=DMARC1; p=reject"]]], /names nobody.*rua=mailto:0011/],
  [
    "DMARC with others' rua",
    "dmarc",
    [[at.dmarc, "TXT", ["v=DMARC1; p=none; rua=mailto:a@b.test"]]],
    /rua=mailto:a@b\.test,mailto:0011/,
  ],
  ["DMARC without mailto:", "dmarc", [[at.dmarc, "TXT", [`v=DMARC1; p=none; rua=${uri.slice(7)}`]]], /lacks mailto:/],
  [
    "DMARC with a policy that is none",
    "dmarc",
    [[at.dmarc, "TXT", [`v=DMARC1; p=block; rua=${uri}`]]],
    /p=block is not a policy/,
  ],
  ["DMARC in quotes", "dmarc", [[at.dmarc, "TXT", [`"${records.dmarc.value}"`]]], /quotation marks/],
  ["DMARC with backslashes", "dmarc", [[at.dmarc, "TXT", [records.dmarc.value.replaceAll(";", "\\;")]]], /backslashes/],
  ["DMARC in lower case", "dmarc", [[at.dmarc, "TXT", [records.dmarc.value.toLowerCase()]]], /begin with v=DMARC1;/],
];
for (const [what, purpose, zone, hint] of wrong) {
  test(`mismatch: ${what}`, async () => {
    const check = await look(purpose, zone);
    assert.equal(check.status, "mismatch");
    assert.ok(check.found.length > 0);
    assert.match(check.hint ?? "", hint);
  });
}

test("who acknowledged that all mail moves is asked to replace the MX records", async () => {
  const check = await look("mx", [[domain, "MX", [mx(1, "aspmx.test")]]], true);
  assert.match(check.hint ?? "", /goes to aspmx\.test; replace its MX records by ours/);
});

for (const fault of ["servfail", "refused", "timeout"] as const) {
  test(`a name server that answers ${fault} is an error, which says nothing about the record`, async () => {
    const expected = Object.values(records);
    for (const { name } of expected) dns.fail(name, fault);
    const owner = { domain, inbound_mx_acknowledged: false, pool: [] };
    const world = { resolver: fault === "timeout" ? resolverOf(300) : resolver, clock, config };
    const checks = await lookUpRecords(world, owner, expected, { fresh: true });
    assert.deepEqual(new Set(checks.map((check) => check.status)), new Set(["error"]));
    for (const check of checks) assert.match(check.hint ?? "", new RegExp(`could not be asked \\(${fault}\\)`));
  });
}

test("a fresh check does not believe the cache; a scheduled one may", async () => {
  dns.set(at.ownership, "TXT", [token], 300);
  const owner = { domain, inbound_mx_acknowledged: false, pool: [] };
  const ask = async (fresh: boolean) => {
    const [check] = await lookUpRecords({ resolver, clock, config }, owner, [records.ownership], { fresh });
    return check?.status;
  };
  assert.equal(await ask(false), "ok");
  dns.remove(at.ownership);
  assert.equal(await ask(false), "ok");
  assert.equal(await ask(true), "missing");
});

test("one check asks each question once", async () => {
  dns.queries.length = 0;
  await lookUpRecords(
    { resolver, clock, config },
    { domain, inbound_mx_acknowledged: false, pool: [] },
    Object.values(records),
    {
      fresh: true,
    },
  );
  const asked = dns.queries.map(({ name, type }) => `${type} ${name}`);
  assert.equal(new Set(asked).size, asked.length, asked.join("\n"));
});

test("what a hostile zone holds is kept short and without control characters", async () => {
  dns.set(
    at.ownership,
    "TXT",
    Array.from({ length: 15 }, (_, index) => `${index}\u0000\n${"x".repeat(2_000)}`),
  );
  const owner = { domain, inbound_mx_acknowledged: false, pool: [] };
  const [check] = await lookUpRecords({ resolver, clock, config }, owner, [records.ownership], { fresh: true });
  assert.equal(check?.found.length, 10);
  assert.ok(check?.found.every((text) => text.length === 1_024 && !/\p{Cc}/u.test(text)));
});

const owner = { domain, inbound_mx_acknowledged: false, pool: [] };

test("a check begins no further question after 8 seconds", async () => {
  let elapsedMs = 0;
  const time = { ...clock, monotonic: () => elapsedMs };
  const slow: Resolver = {
    ...resolver,
    txt: async (name, how) => {
      elapsedMs += 8_001;
      return resolver.txt(name, how);
    },
  };
  dns.queries.length = 0;
  const [check] = await lookUpRecords({ resolver: slow, clock: time, config }, owner, [records.ownership], {
    fresh: true,
  });
  assert.equal(check?.status, "missing");
  assert.equal(dns.queries.length, 1, "the record was not looked for under the doubled name");
});

test("a check asks at most 150 questions", async () => {
  const many = Array.from({ length: 200 }, (_, index) => record("ownership", `n${index}.${domain}`, token));
  dns.queries.length = 0;
  const checks = await lookUpRecords({ resolver, clock, config }, owner, many, { fresh: true });
  assert.equal(dns.queries.length, 150);
  assert.equal(checks.filter((check) => check.status === "error").length, 50);
});

test("the operator's yes to reports is any record that begins with v=DMARC1, a wildcard's too", async () => {
  const { name } = records.dmarc_authorization;
  const missing = await look("dmarc_authorization", [[name, "TXT", []]]);
  assert.equal(missing.status, "missing");
  assert.match(
    missing.hint ?? "",
    /operator of this service .* \*\._report\._dmarc\.reports\.postern\.test serves all/,
  );
  const other = await look("dmarc_authorization", [[name, "TXT", ["v=spf1 -all"]]]);
  assert.deepEqual([other.status, other.found], ["mismatch", ["v=spf1 -all"]]);
  const present = await look("dmarc_authorization", [[name, "TXT", ["v=DMARC1; rua=mailto:other@x.example"]]]);
  assert.deepEqual([present.status, present.hint], ["ok", null]);
});

// What receivers find: our address is 198.51.100.25.
const ours = "_spf.postern.test";
const held: [string, Zone, RegExp][] = [
  ["our part of SPF is absent", [[ours, "TXT", []]], /"permerror" for mail from 198\.51\.100\.25/],
  [
    "our part of SPF names others",
    [[ours, "TXT", ["v=spf1 ip4:203.0.113.1 -all"]]],
    /"softfail".*_spf\.postern\.test does not list/,
  ],
  ["our part of SPF is there twice", [[ours, "TXT", [...ourRecord, "v=spf1 -all"]]], /more than one SPF record/],
];
for (const [what, zone, hint] of held) {
  test(`a record that is right stays so when ${what}, and says who can mend it`, async () => {
    const check = await look("spf", [[domain, "TXT", [spf]], ...zone]);
    assert.equal(check.status, "ok");
    assert.match(check.hint ?? "", hint);
    assert.match(check.hint ?? "", /Only the operator of this service can mend that\.$/);
  });
}

test("the envelope's name is evaluated behind its alias", async () => {
  const zone: Zone = [[path, "CNAME", ["bounces.postern.test"]]];
  const absent = await look("return_path", [...zone, ["bounces.postern.test", "TXT", []]]);
  assert.equal(absent.status, "ok");
  assert.match(
    absent.hint ?? "",
    /"none" for mail from 198.*pt-bounces\.shop\.example\.test has no SPF record.*operator/,
  );
});

test("where the alias is not in place, the host that mail leaves under until then is evaluated", async () => {
  const none = await look("return_path", [["bounces.postern.test", "TXT", []]]);
  assert.equal(none.status, "missing");
  assert.match(none.hint ?? "", /^There is no CNAME record.* Receivers find "none".*bounces\.postern\.test has no SPF/);
});

test("mail of a domain with a pool of addresses is judged from these", async () => {
  for (const [pool, hint] of [
    [["203.0.113.7"], /mail from 203\.0\.113\.7/],
    [["10.0.0.7"], null],
  ] as const) {
    dns.set(domain, "TXT", [spf]);
    const world = { resolver, clock, config };
    const [check] = await lookUpRecords(world, { ...owner, pool: [...pool] }, [records.spf], { fresh: true });
    if (hint) assert.match(check?.hint ?? "", hint);
    else assert.equal(check?.hint, null, "an address behind a translating router is known to nobody");
  }
});

const faulty: [string, string, Zone, RegExp][] = [
  [
    "a look-up too many without answer",
    "v=spf1 a:x.test a:y.test a:z.test include:_spf.postern.test -all",
    [],
    /permerror/,
  ],
  ["a minus before our network", "v=spf1 -ip4:198.51.100.0/24 include:_spf.postern.test ~all", [], /"fail"/],
  [
    "more look-ups than are allowed, with ours",
    `v=spf1 ${"exists:%{i}.here.test ".repeat(9)}include:_spf.postern.test -all`,
    [
      ["*.here.test", "TXT", ["x"]],
      [ours, "TXT", ["v=spf1 a:mail.postern.test -all"]],
      ["mail.postern.test", "A", ["198.51.100.25"]],
    ],
    /permerror/,
  ],
];
for (const [what, value, zone, hint] of faulty) {
  test(`a record that includes ours is a mismatch when receivers do not let mail pass: ${what}`, async () => {
    const check = await look("spf", [[domain, "TXT", [value]], ...zone]);
    assert.equal(check.status, "mismatch", check.hint ?? "");
    assert.match(check.hint ?? "", hint);
    assert.doesNotMatch(check.hint ?? "", /operator/);
  });
}

test("a name server that is silent on the way to our part is an error, and takes no proof away", async () => {
  dns.fail("slow.test", "servfail");
  const check = await look("spf", [[domain, "TXT", ["v=spf1 a:slow.test include:_spf.postern.test -all"]]]);
  assert.equal(check.status, "error");
});
