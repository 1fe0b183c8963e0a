import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import { evaluateDmarc as evaluateTheirs } from "mailauth/lib/dmarc/index.js";
import { rounds } from "../../../test/support/rounds.ts";
import { findAuthor } from "./author.ts";
import { discoverPolicies, evaluateDmarc } from "./dmarc.ts";
import { parseDmarcRecord } from "./dmarc-record.ts";
import { asAnswers, dataFolder, fixedResolver, listedResolver, readJson, withCrlf } from "./look-ups.fixture.ts";
import { createLookUps } from "./look-ups.ts";
import { dnsOfExample, judge, plainMail, rsaKey, signed } from "./signed-mail.fixture.ts";

const folder = `${dataFolder}dmarc-evaluation/`;
const missing = existsSync(folder) ? false : "third-party cases are not here (../shared/data/dmarc-evaluation)";

type Case = {
  case: string;
  file: string;
  ip: string | null;
  mail_from: string | null;
  helo: string | null;
  expect: { dmarc: string; policy?: string };
};

describe("published DMARC cases", { skip: missing }, () => {
  const cases = missing ? [] : (readJson(`${folder}cases.json`) as Case[]);
  for (const one of cases) {
    it(`${one.case}: ${one.expect.dmarc} ${one.expect.policy ?? ""}`, async () => {
      const bytes = withCrlf(readFileSync(folder + one.file));
      const client = {
        remote_ip: one.ip ?? "203.0.113.250",
        helo: one.helo ?? "client.invalid",
        mail_from: one.mail_from ?? "",
      };
      const { dmarc } = await judge(
        bytes,
        {},
        { ...client, resolver: listedResolver(`${folder}dns.json`), now_ms: 1_790_000_000_000 },
      );
      assert.equal(dmarc.result, one.expect.dmarc, dmarc.reason);
      if (one.expect.policy) assert.equal(dmarc.policy, one.expect.policy);
      assert.equal(dmarc.result === "pass", dmarc.dkim_aligned || dmarc.spf_aligned, "the alignment explains it");
    });
  }
});

type Dns = Record<string, unknown[] | string>;

/** A mail from an address, signed or not by example.com, judged under records of DNS. */
async function dmarcOf(from: string, records: Dns, sender = "bounce@example.com", ip = "192.0.2.1") {
  const mail = Buffer.from(plainMail.toString().replace("alice@example.com", from));
  const dns = { "TXT example.com": dnsOfExample["TXT example.com"]!, ...records };
  return (await judge(mail, dns, { mail_from: sender, remote_ip: ip })).dmarc;
}

describe("DMARC", () => {
  it("passes by SPF or by DKIM, whichever is aligned, and says by which", async () => {
    const bySpf = await dmarcOf("a@example.com", dnsOfExample);
    assert.deepEqual([bySpf.result, bySpf.spf_aligned, bySpf.dkim_aligned], ["pass", true, false]);
    const byDkim = (await judge(await signed())).dmarc;
    assert.deepEqual([byDkim.result, byDkim.spf_aligned, byDkim.dkim_aligned], ["pass", false, true]);
    assert.deepEqual([byDkim.policy, byDkim.applied, byDkim.policy_domain], ["reject", "none", "example.com"]);
  });

  const policies: [
    what: string,
    from: string,
    records: Dns,
    policy: string | null,
    applied: string | null,
    result?: string,
  ][] = [
    ["p=", "a@other.test", { "TXT _dmarc.other.test": ["v=DMARC1; p=quarantine"] }, "quarantine", "quarantine"],
    ["p= for a name below", "a@x.other.test", { "TXT _dmarc.other.test": ["v=DMARC1; p=reject"] }, "reject", "reject"],
    [
      "sp= for a name below",
      "a@x.other.test",
      { "TXT _dmarc.other.test": ["v=DMARC1;p=none;sp=reject"] },
      "reject",
      "reject",
    ],
    [
      "np= for a name that is not there",
      "a@x.other.test",
      { "TXT _dmarc.other.test": ["v=DMARC1; p=none; sp=none; np=reject"] },
      "reject",
      "reject",
    ],
    [
      "sp= and not np= for a name that is there",
      "a@x.other.test",
      { "TXT _dmarc.other.test": ["v=DMARC1; p=none; sp=quarantine; np=reject"], "A x.other.test": ["192.0.2.9"] },
      "quarantine",
      "quarantine",
    ],
    [
      "an alias to nothing as a name that is there",
      "a@x.other.test",
      { "TXT _dmarc.other.test": ["v=DMARC1; p=none; np=reject"], "CNAME x.other.test": ["gone.test"] },
      "none",
      "none",
    ],
    [
      "the own record of a name below",
      "a@x.other.test",
      { "TXT _dmarc.other.test": ["v=DMARC1; p=reject"], "TXT _dmarc.x.other.test": ["v=DMARC1; p=none"] },
      "none",
      "none",
    ],
    [
      "t=y as one step less",
      "a@other.test",
      { "TXT _dmarc.other.test": ["v=DMARC1; p=reject; t=y"] },
      "reject",
      "quarantine",
    ],
    [
      "pct=0 as test mode",
      "a@other.test",
      { "TXT _dmarc.other.test": ["v=DMARC1; p=quarantine; pct=0"] },
      "quarantine",
      "none",
    ],
    [
      "pct=0 as nothing where t= stands",
      "a@other.test",
      { "TXT _dmarc.other.test": ["v=DMARC1; p=quarantine; pct=0; t=n"] },
      "quarantine",
      "quarantine",
    ],
    [
      "no p= but a place for reports as p=none",
      "a@other.test",
      { "TXT _dmarc.other.test": ["v=DMARC1; rua=mailto:r@other.test"] },
      "none",
      "none",
    ],
    [
      "no p= and nowhere to report to as no record",
      "a@other.test",
      { "TXT _dmarc.other.test": ["v=DMARC1; fo=1"] },
      null,
      null,
      "none",
    ],
    [
      "two records as none",
      "a@other.test",
      { "TXT _dmarc.other.test": ["v=DMARC1; p=reject", "v=DMARC1; p=none"] },
      null,
      null,
      "none",
    ],
    [
      "a record beside other texts",
      "a@other.test",
      { "TXT _dmarc.other.test": ["v=spf1 -all", "v=DMARC1; p=reject"] },
      "reject",
      "reject",
    ],
    [
      "a public suffix's record",
      "a@other.test",
      { "TXT _dmarc.test": ["v=DMARC1; p=reject; psd=y"] },
      "reject",
      "reject",
    ],
    [
      "a version in small letters as no record",
      "a@other.test",
      { "TXT _dmarc.other.test": ["v=dmarc1; p=reject"] },
      null,
      null,
      "none",
    ],
  ];
  for (const [what, from, records, policy, applied, result = "fail"] of policies) {
    it(`takes ${what}`, async () => {
      const dmarc = await dmarcOf(from, records);
      assert.deepEqual([dmarc.result, dmarc.policy, dmarc.applied], [result, policy, applied], dmarc.reason);
    });
  }

  const alignments: [what: string, from: string, records: Dns, aligned: boolean][] = [
    ["a name below the domain", "a@news.example.com", { "TXT _dmarc.example.com": ["v=DMARC1; p=reject"] }, true],
    [
      "a name below, strictly",
      "a@news.example.com",
      { "TXT _dmarc.example.com": ["v=DMARC1; p=reject; aspf=s"] },
      false,
    ],
    ["the very name, strictly", "a@example.com", { "TXT _dmarc.example.com": ["v=DMARC1; p=reject; aspf=s"] }, true],
    [
      "adkim=s, which is not SPF's",
      "a@news.example.com",
      { "TXT _dmarc.example.com": ["v=DMARC1; p=reject; adkim=s"] },
      true,
    ],
    ["another domain", "a@example.org", { "TXT _dmarc.example.org": ["v=DMARC1; p=reject"] }, false],
    ["a name that only ends alike", "a@badexample.com", { "TXT _dmarc.badexample.com": ["v=DMARC1; p=reject"] }, false],
    [
      "only a record on the name below (RFC 7489)",
      "a@news.example.com",
      { "TXT _dmarc.news.example.com": ["v=DMARC1; p=reject"] },
      true,
    ],
    [
      "a name below that says psd=n",
      "a@news.example.com",
      { "TXT _dmarc.news.example.com": ["v=DMARC1; p=reject; psd=n"] },
      false,
    ],
    ["capital letters", "a@EXAMPLE.com", { "TXT _dmarc.example.com": ["v=DMARC1; p=reject; aspf=s"] }, true],
  ];
  for (const [what, from, records, aligned] of alignments) {
    it(`${aligned ? "aligns" : "does not align"} example.com for ${what}`, async () => {
      const dmarc = await dmarcOf(from, records);
      assert.deepEqual([dmarc.spf_aligned, dmarc.result], [aligned, aligned ? "pass" : "fail"]);
    });
  }

  it("does not align a name beside the author's where only that has a record: it may be somebody else's", async () => {
    const beside = (records: Dns) =>
      dmarcOf("a@news.example.com", { "TXT shop.example.com": ["v=spf1 +all"], ...records }, "x@shop.example.com");
    const record = ["v=DMARC1; p=reject"];
    const only = await beside({ "TXT _dmarc.news.example.com": record });
    assert.deepEqual([only.result, only.spf_aligned], ["fail", false]);
    const both = await beside({ "TXT _dmarc.example.com": record });
    assert.deepEqual([both.result, both.spf_aligned], ["pass", true]);
  });

  it("tells the alignment without a record, by the public suffix list", async () => {
    const dmarc = await dmarcOf("a@news.example.com", {});
    assert.deepEqual([dmarc.result, dmarc.spf_aligned], ["none", true]);
    assert.equal(
      (await dmarcOf("a@b.github.io", { "TXT c.github.io": ["v=spf1 +all"] }, "x@c.github.io")).spf_aligned,
      false,
    );
  });

  it("is a temporary error when the policy, or what might have passed, cannot be asked for", async () => {
    assert.equal((await dmarcOf("a@other.test", { "TXT _dmarc.other.test": "ESERVFAIL" })).result, "temperror");
    const hidden = { "TXT _dmarc.example.com": ["v=DMARC1; p=reject"], "TXT example.com": "ETIMEOUT" };
    assert.equal((await dmarcOf("a@example.com", hidden)).result, "temperror");
    const elsewhere = { "TXT _dmarc.other.test": ["v=DMARC1; p=reject"], "TXT example.com": "ETIMEOUT" };
    assert.equal((await dmarcOf("a@other.test", elsewhere)).result, "fail");
    const keyless = { ...dnsOfExample, "TXT s1._domainkey.example.com": "ETIMEOUT" };
    assert.equal((await judge(await signed(), keyless)).dmarc.result, "temperror");
  });

  it("fails mail of several domains by the strictest of their policies", async () => {
    const dns = {
      // What passes is aligned with this one.
      "TXT example.com": ["v=spf1 +all"],
      "TXT _dmarc.example.com": ["v=DMARC1; p=reject"],
      "TXT _dmarc.strict.test": ["v=DMARC1; p=reject"],
      "TXT _dmarc.mild.test": ["v=DMARC1; p=quarantine"],
      "TXT _dmarc.trying.test": ["v=DMARC1; p=reject; t=y"],
    };
    const froms: [string, unknown[]][] = [
      ["From: ceo@strict.test, me@attacker.test", ["reject", "strict.test"]],
      ["From: me@attacker.test, ceo@mild.test", ["quarantine", "mild.test"]],
      ["From: me@mild.test, ceo@strict.test", ["reject", "strict.test"]],
      ["From: a@strict.test\r\nFrom: b@attacker.test", ["reject", "strict.test"]],
      ["From: a@trying.test, b@attacker.test", ["quarantine", "trying.test"]],
      ["From: a@attacker.test, b@other.test", [null, null]],
      ["From: a@example.com, b@mild.test", ["quarantine", "mild.test"]],
      ["From: nobody", [null, null]],
      // An author who stands behind what is looked at may ask for anything.
      [`From: ${[1, 2, 3, 4, 5].map((at) => `a@n${at}.test`).join(", ")}, ceo@strict.test`, ["reject", null]],
      [`From: ${[1, 2, 3, 4].map((at) => `a@n${at}.test`).join(", ")}, ceo@mild.test`, ["quarantine", "mild.test"]],
      [`From: ${"a@n.test, ".repeat(1_000)}ceo@strict.test`, ["reject", null]],
      [`${"From: a@n.test\r\n".repeat(10)}From: ceo@strict.test`, ["reject", null]],
      [`From: ceo@strict.test${`\r\n (${"x".repeat(900)})`.repeat(20)}`, ["reject", null]],
    ];
    for (const [from, expected] of froms) {
      const { dmarc } = await judge(Buffer.from(`${from}\r\nSubject: x\r\n\r\nx\r\n`), dns);
      assert.deepEqual(
        [dmarc.result, dmarc.from_domain, dmarc.applied, dmarc.policy_domain],
        ["fail", null, ...expected],
        from,
      );
    }
  });

  it("asks eight times at most for one name, however long it is", async () => {
    const asked: string[] = [];
    const nothing = fixedResolver({});
    const lookUps = createLookUps(
      asAnswers((name, type) => {
        asked.push(name);
        return nothing(name, type);
      }),
    );
    const author = findAuthor([Buffer.from(`From: a@${"a.".repeat(60)}example.com\r\n`)]);
    await discoverPolicies(author, lookUps);
    lookUps.end();
    assert.equal(asked.length, 8);
    assert.equal(asked[1], "_dmarc.a.a.a.a.a.example.com");
  });

  const authors: [from: string, domain: string | null][] = [
    ["From: a@example.com", "example.com"],
    ["From: =?utf-8?q?ceo=40bank.com?= <a@example.com>", "example.com"],
    ['From: "ceo@bank.com" <a@example.com>', "example.com"],
    ["From: a@example.com, b@EXAMPLE.COM.", "example.com"],
    ["From: Group: a@example.com, b@example.com;", "example.com"],
    ["From: (c@bank.com) a@example.com", "example.com"],
    ["From: a@b\u00fccher.example", "xn--bcher-kva.example"],
    ['From: "a@bank.com"@example.com', "example.com"],
    ["From: <@relay.test:a@example.com>", "example.com"],
    ["From: a@example.com, b@bank.com", null],
    ["From: <a@example.com> <b@bank.com>", null],
    ["From: a@bank.com@example.com", null],
    ["From: <a@bank.com (x). example>", "bank.com.example"],
    ["From: a@example.com, nobody", null],
    ["From: <a@bank.com((x))>", null],
    ["From: <a@bank,com>", null],
    ["From: <a@bank.com:25", null],
    ["From: nobody", null],
    ["From:", null],
    ["From: a@", null],
    [`From: ${"a@example.com, ".repeat(2_000)}b@bank.com`, null],
  ];
  for (const [from, domain] of authors) {
    it(`finds the author of ${from.slice(0, 60)}`, () =>
      assert.equal(findAuthor([Buffer.from(`${from}\r\n`)]).domain, domain));
  }

  it("finds no author where the domain is in another charset than UTF-8, which a reader may read otherwise", () => {
    assert.equal(findAuthor([Buffer.from("From: a@b\u00fccher.example\r\n", "latin1")]).domain, null);
    assert.equal(findAuthor([Buffer.from("From: J\u00f6rg <a@b.example>\r\n", "latin1")]).domain, "b.example");
    // A reader takes the whole field for Latin-1 when one octet is no UTF-8: another domain than the UTF-8 one.
    const mixed = Buffer.concat([
      Buffer.from("From: J\u00f6rg ", "latin1"),
      Buffer.from("<a@b\u00fccher.example>\r\n"),
    ]);
    assert.equal(findAuthor([mixed]).domain, null);
  });

  it("sees a From field behind a byte order mark, as readers do", async () => {
    const marked = (text: string) => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text), plainMail]);
    const two = await judge(marked("From: ceo@bank.example\r\n"), dnsOfExample, { remote_ip: "192.0.2.1" });
    assert.deepEqual([two.dmarc.result, two.dmarc.from_domain], ["fail", null]);
    assert.equal((await judge(marked("")))?.dmarc.from_domain, (await judge(plainMail)).dmarc.from_domain);
  });

  it("fails without an author, and with two From fields, whatever they hold", async () => {
    const without = Buffer.from(plainMail.toString().replace(/^From:.*\r\n/, ""));
    assert.deepEqual([(await judge(without)).dmarc.result, (await judge(without)).dmarc.from_domain], ["fail", null]);
    const twice = await judge(Buffer.concat([Buffer.from("From: alice@example.com\r\n"), plainMail]), dnsOfExample, {
      remote_ip: "192.0.2.1",
    });
    assert.deepEqual([twice.spf.result, twice.spf.from_aligned, twice.dmarc.result], ["pass", false, "fail"]);
    assert.deepEqual(twice.from_domains, ["example.com"]);
  });
});

// mailauth as the oracle, within the rules of RFC 9989 alone: a psd= tag in every record keeps our older rule out.
describe("DMARC beside mailauth", () => {
  const tags = fc.record({
    p: fc.constantFrom("none", "quarantine", "reject", "x"),
    sp: fc.constantFrom("", "none", "reject", "y"),
    np: fc.constantFrom("", "none", "reject"),
    aspf: fc.constantFrom("", "s", "r"),
    t: fc.constantFrom("", "y"),
    psd: fc.constantFrom("y", "n"),
    rua: fc.constantFrom("", "mailto:a@b.c"),
  });
  const record = tags.map((given) =>
    [
      "v=DMARC1",
      ...Object.entries(given)
        .filter(([, value]) => value)
        .map(([name, value]) => `${name}=${value}`),
    ].join("; "),
  );
  const names = ["example.com", "a.example.com", "b.a.example.com", "com", "c.example.com"];
  const zone = fc.dictionary(fc.constantFrom(...names), fc.array(record, { minLength: 1, maxLength: 1 }), {
    maxKeys: 3,
  });
  const name = fc.constantFrom("example.com", "a.example.com", "b.a.example.com", "c.example.com", "example.org");

  it("agrees on policies and alignment", async () => {
    await fc.assert(
      fc.asyncProperty(zone, name, name, async (zone, from, spfDomain) => {
        const dns = Object.fromEntries(
          Object.entries(zone).map(([owner, records]) => [`TXT _dmarc.${owner}`, records]),
        );
        if (Object.keys(zone).length === 0) return;
        const resolver = fixedResolver(dns);
        const theirs = await evaluateTheirs({
          headerFrom: [`x@${from}`],
          fromFields: 1,
          spfDomains: [spfDomain],
          dkimDomains: [],
          resolver,
        } as never);
        const lookUps = createLookUps(asAnswers(resolver));
        const author = findAuthor([Buffer.from(`From: x@${from}\r\n`)]);
        const spf = { result: "pass" as const, domain: spfDomain, identity: "mailfrom" as const, reason: "" };
        const { verdict } = await evaluateDmarc(
          { author, spf, signatures: [] },
          await discoverPolicies(author, lookUps),
          lookUps,
        );
        lookUps.end();
        const { status, policy } = (theirs as { response: { status: { result: string }; policy?: string } }).response;
        assert.equal(verdict.result, status.result);
        if (verdict.result === "fail") assert.equal(verdict.applied, policy);
      }),
      { numRuns: rounds(200, 1_000) },
    );
  });

  it("reads any text as a record or as none", () => {
    fc.assert(fc.property(fc.string(), (text) => void parseDmarcRecord(`v=DMARC1;${text}`)));
    assert.ok(rsaKey().record.length > 0);
  });
});
