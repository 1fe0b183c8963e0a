// What domains publish about their mail: SPF, DMARC, MTA-STS, TLSA, and the DNS messages in which all of it comes.
import assert from "node:assert/strict";
import { encode } from "dns-packet";
import mailauthDmarc from "mailauth/lib/dmarc/index.js";
import mailauth from "mailauth/lib/spf/index.js";
import { findAuthor } from "../../../src/mail/auth/author.ts";
import { discoverPolicies, evaluateDmarc } from "../../../src/mail/auth/dmarc.ts";
import { parseDmarcRecord } from "../../../src/mail/auth/dmarc-record.ts";
import { parseIp } from "../../../src/mail/auth/ip.ts";
import { asAnswers, fixedResolver } from "../../../src/mail/auth/look-ups.fixture.ts";
import { createLookUps } from "../../../src/mail/auth/look-ups.ts";
import { checkSpf } from "../../../src/mail/auth/spf.ts";
import { expandMacros, isQueryName, parseMacroString } from "../../../src/mail/auth/spf-macro.ts";
import { isSpfRecord, parseSpfRecord } from "../../../src/mail/auth/spf-record.ts";
import { type Zone, zoneResolver } from "../../../src/mail/auth/spf-suite.fixture.ts";
import { matchTlsa, publicKeyOf, readTlsaSet } from "../../../src/mail/dane.ts";
import { readStsPolicy, readStsRecord, STS_MODES, stsNamesMx } from "../../../src/mail/mta-sts.ts";
import { decodeMessage, encodeQuery, TYPES } from "../../../src/platform/dns/dns-message.ts";
import { type Draw, drawFrom, randomBytes } from "../draw.ts";
import { assertStorable } from "../invariants.ts";
import type { Target } from "../target.ts";

const SPF_WORDS = [
  ...[
    "v=spf1 ",
    "include:",
    "a:",
    "mx",
    "ptr:",
    "exists:",
    "ip4:192.0.2.0/24",
    "ip6:2001:db8::/32",
    "-all",
    "~all",
    "?all",
    "redirect=",
  ],
  ...["exp=", "%{i}", "%{d2r}", "%{l1-+}", "%%", "%_", "%{", "//64", "/33", " ", "example.com", "a/24//64", "+"],
];

const spfRecord: Target = {
  name: "spf-record",
  holds: "a record is refused or its networks and names are within bounds; case does not matter to its mechanisms",
  seeds: { lines: "spf-record.jsonl", shared: ["spf-rfc7208/*.json"] },
  words: SPF_WORDS,
  check(input) {
    const text = input.toString("latin1");
    if (!isSpfRecord(text)) return "none";
    const record = parseSpfRecord(text);
    if (record === null) return "refused";
    assert.ok(record.directives.length <= text.length);
    assert.equal(parseSpfRecord(`${text}  `) === null, false, "trailing spaces make a record bad");
    return [...new Set(record.directives.map(({ kind }) => kind))].sort().join(" ");
  },
};

const VALUES = {
  ...{ sender: "strong-bad@email.example.com", local: "strong-bad", sender_domain: "email.example.com" },
  ...{ domain: "email.example.com", helo: "mx.example.org", ip: parseIp("192.0.2.3")!, client_name: "unknown" },
};

const spfMacro: Target = {
  name: "spf-macro",
  holds: "macros expand to a name within bounds, and one longer than the DNS has is never asked for",
  seeds: { lines: "spf-macro.jsonl" },
  words: SPF_WORDS,
  bytes_max: 16_384,
  check(input) {
    const parts = parseMacroString(input.toString("latin1"));
    if (parts === null) return "refused";
    const name = expandMacros(parts, VALUES);
    assert.doesNotMatch(name, /[\x00-\x1f\x7f]/);
    if (isQueryName(name)) assert.ok(name.length <= 253, `asks for a name of ${name.length} octets`);
    else assert.ok(name.length <= input.length * 400 + 253, `${input.length} octets became ${name.length}`);
    return `${isQueryName(name)} ${parts.length > 1}`;
  },
};

const NAMES = ["example.com", "a.example.com", "b.example.com", "mx.example.com", "x.test"];
const IPS = ["192.0.2.1", "198.51.100.7", "2001:db8::1", "::ffff:192.0.2.1"];
const MACROS = [
  "%{s}",
  "%{l}",
  "%{o}",
  "%{d}",
  "%{i}",
  "%{ir}",
  "%{v}",
  "%{h}",
  "%{d2}",
  "%{L}",
  "%%",
  "%_",
  "%{x}",
  "%{d0}",
  "%",
];
const ODD_NAMES = ["com", "example.com.", "foo..com", "a.b-", "a.123", "", "a/b.example.com", "[1.2.3.4]"];
const BITS = ["", "", "", "/24", "/0", "/33", "//64", "/24//64", "//129", "/024", "/"];
const LONE = [
  "all",
  "a",
  "mx",
  "ptr",
  "A",
  "include",
  "ip4:",
  "foo",
  "exp=x.test",
  "foo=",
  "all:",
  "-",
  "-all",
  "~all",
];

function drawTarget(draw: Draw): string {
  switch (draw.between(0, 7)) {
    case 5:
      return `${draw.pick(MACROS)}.${draw.pick(NAMES)}`;
    case 6:
      return draw.pick(MACROS);
    case 7:
      return draw.pick(ODD_NAMES);
    default:
      return draw.pick(NAMES);
  }
}

function drawTerm(draw: Draw): string {
  const qualifier = draw.pick(["", "", "+", "-", "~", "?"]);
  switch (draw.between(0, 4)) {
    case 0:
      return `${qualifier}${draw.pick(["include", "exists", "ptr"])}:${drawTarget(draw)}`;
    case 1:
      return `${qualifier}${draw.pick(["a", "mx"])}:${drawTarget(draw)}${draw.pick(BITS)}`;
    case 2:
      return `${qualifier}${draw.pick(["ip4", "ip6"])}:${draw.pick(IPS)}${draw.pick(BITS)}`;
    case 3:
      return `${qualifier}redirect=${drawTarget(draw)}`;
    default:
      return `${qualifier}${draw.pick(LONE)}`;
  }
}

function drawZone(draw: Draw): Zone {
  const zone: Zone = {};
  for (const name of [...NAMES, "1.2.0.192.in-addr.arpa"]) {
    if (draw.oneIn(3)) continue;
    const records: Zone[string] = [];
    if (!draw.oneIn(4)) records.push({ TXT: ["v=spf1", ...draw.list(5, () => drawTerm(draw))].join(" ") });
    for (let more = draw.between(0, 2); more > 0; more -= 1) records.push(drawRecord(draw));
    zone[name] = records;
  }
  return zone;
}

function drawRecord(draw: Draw): Zone[string][number] {
  const address = draw.pick(IPS);
  return draw.pick<Zone[string][number]>([
    address.includes(":") ? { AAAA: address } : { A: address },
    { MX: [10, draw.pick(NAMES)] },
    { PTR: draw.pick(NAMES) },
    { TXT: "hello" },
    "TIMEOUT",
    { MX: [0, "."] },
  ]);
}

/**
 * The zone with a name that there is nothing at in place of each target that is none of the zone's. mailauth counts questions,
 * RFC 7208 §4.6.4 terms: one such as `exists:%%` leads to none, and is asked this way.
 */
function withNames(zone: Zone): Zone {
  const named = (record: Zone[string][number]) =>
    typeof record === "object" && "TXT" in record ? { TXT: nameTargets(String(record.TXT)) } : record;
  return Object.fromEntries(Object.entries(zone).map(([name, records]) => [name, records.map(named)]));
}

function nameTargets(text: string): string {
  return text.replace(/\b(include|exists|ptr|a|mx):([^ ]*)/g, (given, term, target) =>
    NAMES.includes(target) ? given : `${term}:nothing.example.com`,
  );
}

const TERMS = "more than 10 terms that need DNS";

const spfEval: Target = {
  name: "spf-eval",
  holds: "records and zones of every kind give mailauth's result, with at most 111 questions",
  seeds: {},
  bytes_max: 512,
  generate: (chance) => randomBytes(chance, 400),
  async check(input) {
    const draw = drawFrom(input);
    const sender = draw.pick(["user@example.com", "a-b+c@a.example.com", "@example.com", "", "josé@example.com"]);
    const helo = draw.pick(["mx.example.com", "[1.2.3.4]", "localhost"]);
    const ip = draw.pick(IPS);
    const zone = drawZone(draw);
    let asked = 0;
    const resolver: ReturnType<typeof zoneResolver> = (name, type) => {
      asked += 1;
      return zoneResolver(zone)(name, type);
    };
    const lookUps = createLookUps(asAnswers(resolver));
    const ours = await checkSpf({ remote_ip: ip, helo, mail_from: sender }, lookUps);
    lookUps.end();
    assert.ok(asked <= 111, `${asked} questions`);
    const given = { sender, ip, helo, mta: "mx.test", resolver: resolver as never, strict: true };
    let theirs = await mailauth.spf(given);
    if (ours.reason === TERMS && theirs.status.result !== ours.result)
      theirs = await mailauth.spf({ ...given, resolver: zoneResolver(withNames(zone)) as never });
    assert.equal(ours.result, theirs.status.result, ours.reason);
    return `${ours.result} ${ours.reason}`;
  },
};

const DMARC_WORDS = [
  "v=DMARC1;",
  "p=reject;",
  "sp=none;",
  "np=quarantine;",
  "pct=0;",
  "t=y;",
  "psd=y;",
  "adkim=s;",
  "aspf=s;",
  "rua=mailto:a@b.c;",
  "=",
  " ;",
];

const dmarcRecord: Target = {
  name: "dmarc-record",
  holds: "a record is none, or has a policy there is; parts that make no sense change nothing",
  seeds: { lines: "dmarc-record.jsonl", shared: ["dmarc-evaluation/*.json"] },
  words: DMARC_WORDS,
  bytes_max: 16_384,
  check(input) {
    const text = input.toString("utf8");
    const record = parseDmarcRecord(text);
    if (record === null) return "none";
    for (const policy of Object.values(record.policies ?? {})) {
      assert.ok(policy === null || ["none", "quarantine", "reject"].includes(policy));
    }
    // Parts beyond a hundred are not read.
    if (text.split(";").length < 90) assert.deepEqual(parseDmarcRecord(`${text}; unknown=1; =; x`), record);
    return `${record.policies?.p} ${record.testing} ${record.psd}`;
  },
};

function drawDmarc(draw: Draw): string {
  const tags: [string, readonly string[]][] = [
    ["p", ["none", "quarantine", "reject", "x"]],
    ["sp", ["", "none", "reject", "y"]],
    ["np", ["", "none", "reject"]],
    ["adkim", ["", "s", "r"]],
    ["aspf", ["", "s", "r"]],
    ["t", ["", "y"]],
    ["psd", ["y", "n"]],
    ["rua", ["", "mailto:a@b.c"]],
  ];
  const chosen = tags.map(([name, values]) => [name, draw.pick(values)]).filter(([, value]) => value !== "");
  return ["v=DMARC1", ...chosen.map(([name, value]) => `${name}=${value}`)].join("; ");
}

const dmarcEval: Target = {
  name: "dmarc-eval",
  holds: "policies and alignment come out as mailauth finds them (records with psd=, where the walk is the same)",
  seeds: {},
  bytes_max: 256,
  generate: (chance) => randomBytes(chance, 80),
  async check(input) {
    const draw = drawFrom(input);
    const names = ["example.com", "a.example.com", "b.a.example.com", "c.example.com", "example.org", "com"];
    const from = draw.pick(names.slice(0, 5));
    const spfDomain = draw.pick(names.slice(0, 5));
    const dns: Record<string, string[]> = {};
    for (const name of names) if (draw.oneIn(2)) dns[`TXT _dmarc.${name}`] = [drawDmarc(draw)];
    if (Object.keys(dns).length === 0) return "empty";
    const resolver = fixedResolver(dns);
    const theirs = await mailauthDmarc.evaluateDmarc({
      ...{ headerFrom: [`x@${from}`], fromFields: 1, spfDomains: [spfDomain], dkimDomains: [], resolver },
    } as never);
    const lookUps = createLookUps(asAnswers(resolver));
    const author = findAuthor([Buffer.from(`From: x@${from}\r\n`)]);
    const spf = { result: "pass" as const, domain: spfDomain, identity: "mailfrom" as const, reason: "" };
    const policies = await discoverPolicies(author, lookUps);
    const { verdict } = await evaluateDmarc({ author, spf, signatures: [] }, policies, lookUps);
    lookUps.end();
    const { status, policy: applied } = (theirs as { response: { status: { result: string }; policy?: string } })
      .response;
    assert.equal(verdict.result, status.result);
    if (verdict.result === "fail") assert.equal(verdict.applied, applied);
    return `${verdict.result} ${verdict.applied}`;
  },
};

const mtaSts: Target = {
  name: "mta-sts",
  holds: "a policy is refused or has a mode, hosts and an age within bounds, and names no host by a part of it",
  seeds: { lines: "mta-sts.jsonl" },
  words: [
    "version: STSv1\r\n",
    "mode: enforce\r\n",
    "mode: none\n",
    "mx: *.example.com\r\n",
    "mx: ",
    "max_age: 604800\r\n",
    "v=STSv1; id=",
    ";",
    "*.",
  ],
  bytes_max: 128 * 1_024,
  check(input) {
    const text = input.toString("utf8");
    const record = readStsRecord([text]);
    if (record.kind === "found") assert.match(record.id, /^[A-Za-z0-9]{1,32}$/);
    const read = readStsPolicy(text);
    if ("defect" in read) return read.defect.slice(0, 40);
    const { policy } = read;
    assert.ok(STS_MODES.includes(policy.mode) && policy.max_age_s >= 0 && policy.max_age_s <= 31_557_600);
    for (const mx of policy.mx) {
      assert.match(mx, /^(?:\*\.)?[a-z0-9_.-]+$/);
      assert.ok(!stsNamesMx({ mx: [mx] }, `evil-${mx.replace("*.", "")}`), "a host is named by the end of another");
      if (mx.startsWith("*.")) {
        assert.ok(stsNamesMx({ mx: [mx] }, `a.${mx.slice(2)}`));
        assert.ok(!stsNamesMx({ mx: [mx] }, `a.b.${mx.slice(2)}`) && !stsNamesMx({ mx: [mx] }, mx.slice(2)));
      } else assert.ok(stsNamesMx({ mx: [mx] }, mx.toUpperCase()));
    }
    return `${policy.mode} ${Math.min(policy.mx.length, 3)}`;
  },
};

const dane: Target = {
  name: "dane",
  holds: "no TLSA records and no octets called a certificate make a match or an exception",
  seeds: { lines: "dane.jsonl" },
  bytes_max: 8_192,
  check(input) {
    const [usage = 0, selector = 0, matching_type = 0, split = 0] = input;
    const data = input.subarray(4, 4 + split);
    const certificate = input.subarray(4 + split);
    const set = readTlsaSet([{ usage: usage % 5, selector: selector % 3, matching_type: matching_type % 4, data }]);
    const key = publicKeyOf(certificate);
    assert.ok(key === null || certificate.includes(key));
    const verdict = matchTlsa(set.usable, [certificate], { names: ["mx.example.com"], now_ms: 0 });
    if (verdict.matched) assert.ok(usage % 5 === 3 && data.length > 0, "random octets matched");
    return `${set.usable.length} ${verdict.matched} ${key === null}`;
  },
};

const LABELS = ["a", "example", "com", "_tcp", "mx", "x".repeat(63)];

const dnsMessage: Target = {
  name: "dns-message",
  holds: "no octets make the reader throw or hang; what dns-packet writes is read back, texts of TXT joined",
  seeds: { lines: "dns-message.jsonl" },
  words: ["\xc0\x0c", "\0\x10\0\x01", "\0\0\x29", "\x07example\x03com\0"],
  bytes_max: 4_096,
  generate: (chance) => randomBytes(chance, 200),
  check(input) {
    const message = decodeMessage(input);
    for (const { name, value } of message?.answers ?? []) {
      assert.ok(name.length <= 1_024);
      if (typeof value === "string") assert.ok(value.length <= 65_535);
    }
    const draw = drawFrom(input);
    const name = draw.list(3, () => draw.pick(LABELS)).join(".") || "a";
    const texts = draw.list(4, () =>
      draw
        .bytes(60)
        .toString("latin1")
        .replace(/[^ -~]/g, "-"),
    );
    const written = encode({
      ...{ id: 1, type: "response", questions: [{ name, type: "TXT" }] },
      answers: [{ name, type: "TXT", ttl: 60, data: texts.map((text) => Buffer.from(text)) }],
    } as never);
    const [record] = decodeMessage(written)?.answers ?? [];
    assert.equal(record?.value, texts.join(""));
    const query = encodeQuery(7, { name, type: "TXT" }, { edns: true, ad: true, dnssec: true });
    assert.ok(query === null || query.length <= 300);
    assertStorable("name", record?.name);
    return `${message === null} ${message?.answers.length ?? 0} ${TYPES.TXT}`;
  },
};

export const POLICY_TARGETS: readonly Target[] = [
  ...[spfRecord, spfMacro, spfEval, dmarcRecord, dmarcEval, mtaSts, dane, dnsMessage],
];
