// SPF, DKIM, DMARC and ARC suites over real SMTP: each case is mail from its own client, its DNS is answered by a name
// server on loopback, and the verdicts are read from the delivered event and from the Authentication-Results of the stored
// copy, which alone tells of ARC and of every signature.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { withCrlf } from "../../src/mail/auth/look-ups.fixture.ts";
import { readSpfSuite, type Zone, zoneAnswer } from "../../src/mail/auth/spf-suite.fixture.ts";
import type { DnsServer } from "../support/dns-server.ts";
import { caseFiles, noteAbsent, readSide } from "./case-files.ts";
import { type Arrival, type Delivery, type MxStage, mxStage, NOT_CARRIED } from "./mx-stage.ts";
import type { Corpus, Tally } from "./tally.ts";

const PLAIN = Buffer.from("From: a@example.com\r\nTo: b@example.org\r\nSubject: x\r\n\r\nx\r\n");
const AT_ONCE = 12;

type Results = { dkim: string[]; spf: string; arc: string; dmarc: string; policy: string | null };

type Case = {
  name: string;
  delivery: Delivery;
  /** What is expected and what came, to be compared. */
  read(results: Results, event: Arrival["event"]): { expected: unknown; got: unknown; reason?: string | null };
};

/** A run of cases that share their DNS (and, in DKIM, the time). */
type Scene = { serve(dns: DnsServer): void; at_ms?: number; cases: Case[] };

async function play(tally: Tally, scenes: readonly Scene[]): Promise<void> {
  if (scenes.every(({ cases }) => cases.length === 0)) return;
  const ways = new Map<string, number>();
  const stage = await mxStage();
  let time: number | null = null;
  for (const { serve, at_ms = null, cases } of scenes) {
    if (at_ms !== time) await stage.moveTime(at_ms);
    time = at_ms;
    stage.dns.clear();
    serve(stage.dns);
    for (let from = 0; from < cases.length; from += AT_ONCE) {
      const some = cases.slice(from, from + AT_ONCE);
      await Promise.all(some.map((one) => tally.attempt(one.name, () => playOne(stage, { tally, ways }, one))));
    }
  }
  if (time !== null) await stage.moveTime(null);
  for (const [way, count] of ways) tally.notes.push(`${count} ${way}`);
  await tally.attempt("the mail after all of them", async () => {
    const last = await stage.deliver({ bytes: PLAIN });
    tally.check("the mail after all of them", "arrived", last.kind === "arrived" ? "arrived" : last.answer);
  });
}

type Counts = { tally: Tally; ways: Map<string, number> };

async function playOne(stage: MxStage, { tally, ways }: Counts, { name, delivery, read }: Case): Promise<void> {
  const arrived = await stage.deliver(delivery);
  if (arrived.kind === "refused") {
    return tally.judge(name, "taken", arrived.answer, arrived.is_due ? NOT_CARRIED : null);
  }
  const way = arrived.refused === null ? "over SMTP" : `by HTTP, as SMTP must refuse them: ${arrived.refused}`;
  ways.set(way, (ways.get(way) ?? 0) + 1);
  const raw = await stage.download(`/v1/inbound-emails/${arrived.id}/raw`);
  const results = readResults(raw.toString("latin1"));
  if (results === null) return tally.judge(name, "Authentication-Results of this server", "none");
  const { expected, got, reason } = read(results, arrived.event);
  tally.judge(name, expected, got, reason ?? null);
}

/** Of our own field, which stands above all that came with the mail. */
function readResults(raw: string): Results | null {
  const field = /^Authentication-Results:((?:.*\r\n(?=[ \t]))*.*)\r\n/im.exec(raw)?.[1];
  if (field === undefined) return null;
  const words = field.replace(/"(?:[^"\\]|\\.)*"/g, '""');
  const of = (method: string) =>
    [...words.matchAll(new RegExp(`;\\s*${method}=(\\w+)`, "g"))].map(([, word = ""]) => word);
  const policy = /\bpolicy\.dmarc=(\w+)/.exec(words)?.[1] ?? null;
  return { dkim: of("dkim"), spf: of("spf")[0] ?? "", arc: of("arc")[0] ?? "", dmarc: of("dmarc")[0] ?? "", policy };
}

// --- SPF ------------------------------------------------------------------------------------------------------------------

/** RFC 7208's own suite. */
export const spfRfc7208: Corpus = {
  name: "spf-rfc7208",
  slow: true,
  run(dir, tally) {
    const suite = readSpfSuite(join(dir, "rfc7208-tests.json"));
    const scenes = [...Map.groupBy(suite, ({ scenario }) => scenario).values()].map((all): Scene => {
      const { zone = {} } = all[0] ?? {};
      return { serve: (dns) => serveZone(dns, zone), cases: all.map(toSpfCase) };
    });
    return play(tally, scenes);
  },
};

function toSpfCase({ scenario, name, helo, host, mailfrom, results }: ReturnType<typeof readSpfSuite>[number]): Case {
  return {
    name: `${scenario}: ${name}`,
    delivery: { bytes: PLAIN, remote_ip: host, helo, mail_from: mailfrom },
    read({ spf }, event) {
      const expected = results.includes(spf) ? spf : results.join(" or ");
      return { expected: [expected, expected, expected], got: [event.spf, event.auth_results.spf.result, spf] };
    },
  };
}

function serveZone(dns: DnsServer, zone: Zone): void {
  for (const name of Object.keys(zone)) {
    for (const type of ["TXT", "A", "AAAA", "MX", "PTR", "CNAME"]) {
      const found = zoneAnswer(zone, name, type);
      if (found === null) dns.fail(name, "timeout", type);
      else
        dns.set(
          name,
          type,
          (found ?? []).map((value) => toRecord(type, value)),
        );
    }
  }
}

function toRecord(type: string, value: unknown): unknown {
  if (type !== "MX") return value;
  const [preference, exchange] = value as [number, string];
  return { preference, exchange };
}

// --- ARC ------------------------------------------------------------------------------------------------------------------

type ArcScenario = {
  description: string;
  "txt-records": Record<string, string>;
  tests: Record<string, { message: string; cv: string }>;
};

/** The suite wants it to pass; the case comes from a draft. */
const EMPTY_H =
  'RFC 8617 §4.1.2 gives ARC-Message-Signature the syntax of DKIM-Signature, and RFC 6376 §3.5 says of h=: "This list MUST NOT be empty."';

function hasEmptyH(message: string): boolean {
  const fields = [...message.matchAll(/^ARC-Message-Signature:((?:.*\r?\n(?=[ \t]))*.*)/gim)];
  return fields.some(([, value = ""]) => /(?:^|;)\s*h\s*=\s*(?:;|$)/.test(value));
}

/** ValiMail's validation cases; an empty `cv` is open. */
export const arcValimail: Corpus = {
  name: "arc-valimail",
  slow: true,
  run(dir, tally) {
    const scenarios = readSide<ArcScenario[]>(tally, join(dir, "validation.json")) ?? [];
    const toCase = (description: string, [name, { message, cv }]: [string, { message: string; cv: string }]): Case => ({
      name: `${description}: ${name}`,
      delivery: { bytes: withCrlf(message) },
      read: ({ arc }) => ({
        expected: cv === "" && /^(?:pass|fail|none)$/.test(arc) ? arc : cv.toLowerCase(),
        got: arc,
        reason: arc === "fail" && hasEmptyH(message) ? EMPTY_H : null,
      }),
    });
    const scenes = scenarios.map(({ description, "txt-records": records = {}, tests }): Scene => {
      const texts = Object.entries(records).map(([name, text]): [string, string[]] => [name, [text]]);
      return {
        serve: (dns) => serveTexts(dns, texts),
        cases: Object.entries(tests).map((test) => toCase(description, test)),
      };
    });
    return play(tally, scenes);
  },
};

/** Values that mean a failure are those of chasquid's tests. */
function serveTexts(dns: DnsServer, texts: [name: string, values: string[]][]): void {
  for (const [name, values] of texts) {
    const [first] = values;
    if (first === "TEMPERROR") dns.fail(name, "servfail");
    else if (first !== "NOTFOUND" && first !== "PERMERROR") dns.set(name, "TXT", values);
  }
}

// --- DKIM -----------------------------------------------------------------------------------------------------------------

type DkimCase = {
  file: string;
  case?: string;
  dns?: string;
  dns_txt?: Record<string, string[]> | string;
  expect:
    | string[]
    | { last_signature?: string; signatures?: string[]; go_result?: { Results: { State: string }[] } | null };
  must_not_be?: string[];
  verify_at_unix?: number;
  rspamd_limit_specific?: boolean;
};

/** Signed mail of several verifiers' tests; each is judged at its time. */
export const dkimMessages: Corpus = {
  name: "dkim-messages",
  slow: true,
  run(dir, tally) {
    const files = caseFiles(dir);
    const all = readSide<DkimCase[]>(tally, join(dir, "cases.json")) ?? [];
    noteAbsent(tally, files, filesOf(all));
    const cases = all.filter((one) => files.includes(one.file) && hasKeys(dir, one, all));
    const scenes = cases.map((one): Scene => {
      const toCase = (): Case => ({
        name: one.case ? `${one.file} (${one.case})` : one.file,
        delivery: { bytes: asSent(readFileSync(join(dir, one.file))) },
        read({ dkim }, event) {
          const results = dkim.filter((word) => word !== "none");
          return compareDkim(one, results, event.dkim);
        },
      });
      return {
        serve: (dns) => serveKeys(dns, { dir, one, cases: all }),
        ...(one.verify_at_unix ? { at_ms: one.verify_at_unix * 1_000 } : {}),
        cases: [toCase()],
      };
    });
    const sorted = scenes.toSorted(
      (a, b) => (a.at_ms ?? Number.POSITIVE_INFINITY) - (b.at_ms ?? Number.POSITIVE_INFINITY),
    );
    const known = new Set(cases.map(({ file }) => file));
    const unnamed = files.filter((file) => !known.has(file)).map((file) => withoutOpinion(dir, file));
    return play(tally, [...sorted, { serve: () => undefined, cases: unnamed }]);
  },
};

const filesOf = (cases: readonly { file: string }[]) => cases.map(({ file }) => file);

/** Some files have LF for CRLF; one that has CRLF somewhere is meant as it is. */
function asSent(bytes: Buffer): Buffer {
  return bytes.includes("\r\n") ? bytes : withCrlf(bytes);
}

/** Nobody says what is in it: it is taken, and our own field tells some verdict. */
function withoutOpinion(dir: string, file: string): Case {
  return {
    name: file,
    delivery: { bytes: asSent(readFileSync(join(dir, file))) },
    read: ({ dmarc }) => ({ expected: true, got: dmarc !== "" }),
  };
}

type KeysOf = { dir: string; one: DkimCase; cases: readonly DkimCase[] };

/** Without the keys that a verdict was made with there is no verdict to expect. */
function hasKeys(dir: string, one: DkimCase, cases: readonly DkimCase[]): boolean {
  return (!one.dns || existsSync(join(dir, one.dns))) && textsOf({ dir, one, cases }) !== undefined;
}

/** A case's own keys, or those of the case that it names: "same as mail-auth-001". */
function textsOf({ one, cases }: KeysOf): Record<string, string[]> | undefined {
  if (typeof one.dns_txt !== "string") return one.dns_txt ?? {};
  const stem = /same as (.+)/.exec(one.dns_txt)?.[1]?.trim();
  const found = cases.find(({ file, dns_txt }) => stem && file.startsWith(stem) && typeof dns_txt === "object");
  return found?.dns_txt as Record<string, string[]> | undefined;
}

function serveKeys(dns: DnsServer, given: KeysOf): void {
  if (given.one.dns) serveList(dns, join(given.dir, given.one.dns));
  serveTexts(dns, Object.entries(textsOf(given) ?? {}));
}

const STATES: Record<string, string[]> = {
  SUCCESS: ["pass"],
  TEMPFAIL: ["temperror"],
  PERMFAIL: ["permerror", "fail", "neutral", "policy", "none"],
};

function compareDkim(one: DkimCase, got: string[], shown: string) {
  const isVerdict = /^(?:pass|fail)$/.test(got[0] ?? "") && got.includes(shown);
  const reason =
    one.rspamd_limit_specific && isVerdict ? "a limit of rspamd's own, not of the standard (the README says so)" : null;
  const isForbidden = got.some((result) => one.must_not_be?.includes(result));
  const expected = isForbidden ? `none of ${one.must_not_be}` : one.expect;
  const isRight = !isForbidden && agrees(one.expect, got) && (got.length === 0 || got.includes(shown));
  return { expected, got: isRight ? expected : { signatures: got, dkim: shown }, reason };
}

function agrees(expect: DkimCase["expect"], got: string[]): boolean {
  // "permerror (or neutral/fail; not pass)": the words before the semicolon are alternatives.
  if (Array.isArray(expect)) return expect.every((words) => words.split(";")[0]?.includes(got[0] ?? "none"));
  if (expect.last_signature) return got.at(-1) === expect.last_signature;
  // "pass (ed25519, s=brisbane)"
  if (expect.signatures) return expect.signatures.map((text) => text.split(" ")[0]).join() === got.join();
  const states = expect.go_result?.Results.map(({ State }) => State) ?? [];
  if (states.length === 0) return !got.includes("pass");
  // The source stops at five signatures, we at ten.
  return states.every((state, at) => STATES[state]?.includes(got[at] ?? ""));
}

// --- DMARC ----------------------------------------------------------------------------------------------------------------

type DmarcCase = {
  case: string;
  file: string;
  ip: string | null;
  mail_from: string | null;
  helo: string | null;
  expect: { dmarc: string; policy?: string };
};

/** rspamd's functional tests; what is aligned must explain the result. */
export const dmarcEvaluation: Corpus = {
  name: "dmarc-evaluation",
  run(dir, tally) {
    const files = caseFiles(dir);
    const all = readSide<DmarcCase[]>(tally, join(dir, "cases.json")) ?? [];
    noteAbsent(tally, files, filesOf(all));
    const list = join(dir, "dns.json");
    const known = all.filter(({ file }) => existsSync(list) && files.includes(file));
    const named = new Set(known.map(({ file }) => file));
    const unnamed = files.filter((file) => !named.has(file)).map((file) => withoutOpinion(dir, file));
    const cases = [...known.map((one) => toDmarcCase(dir, one)), ...unnamed];
    return play(tally, [{ serve: (dns) => serveList(dns, list), cases }]);
  },
};

function toDmarcCase(dir: string, { case: name, file, ip, mail_from, helo, expect }: DmarcCase): Case {
  return {
    name,
    delivery: {
      bytes: withCrlf(readFileSync(join(dir, file))),
      ...(ip === null ? {} : { remote_ip: ip }),
      ...(helo === null ? {} : { helo }),
      ...(mail_from === null ? {} : { mail_from }),
    },
    read({ dmarc: written, policy }, { auth_results: { dmarc } }) {
      const isAligned = dmarc.dkim_aligned || dmarc.spf_aligned;
      const explained = isAligned === (dmarc.result === "pass");
      const got = { dmarc: dmarc.result, ...(expect.policy ? { policy } : {}) };
      return {
        expected: { ...expect, written: expect.dmarc, explained: true },
        got: { ...got, written, explained },
      };
    },
  };
}

type Listed = { name: string; type: string; replies?: string[]; rcode?: "norec" | "nxdomain" | "timeout" };

/** The DNS of rspamd's functional tests. */
function serveList(dns: DnsServer, path: string): void {
  if (!existsSync(path)) return;
  for (const { name, type, replies = [], rcode } of JSON.parse(readFileSync(path, "utf8")) as Listed[]) {
    if (rcode === "timeout") dns.fail(name, "timeout", type);
    else if (rcode !== "nxdomain")
      dns.set(name, type, rcode === "norec" ? [] : replies.map((text) => listedRecord(type, text)));
  }
}

function listedRecord(type: string, text: string): unknown {
  if (type !== "MX") return text;
  const [preference, exchange] = text.split(" ");
  return { preference: Number(preference), exchange };
}
