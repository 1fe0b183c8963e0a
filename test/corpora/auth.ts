// SPF, DKIM, DMARC and ARC suites through the verdicts that received mail gets. DNS comes from the cases.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { authenticate } from "../../src/mail/auth/authenticate.ts";
import { listedResolver, withCrlf } from "../../src/mail/auth/look-ups.fixture.ts";
import type { NodeResolver } from "../../src/mail/auth/look-ups.ts";
import { dnsError, readSpfSuite, zoneResolver } from "../../src/mail/auth/spf-suite.fixture.ts";
import { type Corpus, createTally, type Tally } from "./tally.ts";

const PLAIN = Buffer.from("From: a@example.com\r\nTo: b@example.org\r\nSubject: x\r\n\r\nx\r\n");
const SOME_TIME_MS = 1_790_000_000_000;

type Client = { remote_ip?: string; helo?: string; mail_from?: string; now_ms?: number };

function judge(bytes: Buffer, resolver: NodeResolver, client: Client = {}) {
  const nobody = { remote_ip: "203.0.113.250", helo: "client.invalid", mail_from: "", now_ms: SOME_TIME_MS };
  return authenticate({ bytes, resolver, host: "mx.postern.example", ...nobody, ...client });
}

export const spfRfc7208: Corpus = {
  name: "spf-rfc7208",
  async run(dir) {
    const tally = createTally();
    for (const one of readSpfSuite(join(dir, "rfc7208-tests.json"))) {
      const client = { remote_ip: one.host, helo: one.helo, mail_from: one.mailfrom };
      const { spf } = await judge(PLAIN, zoneResolver(one.zone), client);
      const expected = one.results.includes(spf.result) ? spf.result : one.results.join(" or ");
      tally.judge(`${one.scenario}: ${one.name}`, expected, spf.result);
    }
    return tally;
  },
};

type ArcScenario = {
  description: string;
  "txt-records": Record<string, string>;
  tests: Record<string, { message: string; cv: string }>;
};

export const arcValimail: Corpus = {
  name: "arc-valimail",
  async run(dir) {
    const tally = createTally();
    for (const { description, "txt-records": records, tests } of readJson<ArcScenario[]>(dir, "validation.json")) {
      const resolver = txtResolver(
        new Map(Object.entries(records).map(([name, text]) => [name.toLowerCase(), [text]])),
      );
      for (const [name, { message, cv }] of Object.entries(tests)) {
        const { arc } = await judge(withCrlf(message), resolver);
        const reason = ARC_REASONS.find(({ case: at }) => at === name)?.reason ?? null;
        tally.judge(`${description}: ${name}`, cv === "" ? arc.result : cv.toLowerCase(), arc.result, reason);
      }
    }
    return tally;
  },
};

const ARC_REASONS = readJson<{ case: string; reason: string }[]>(
  join(import.meta.dirname, "../../src/mail/auth"),
  "arc.differences.json",
);

type DkimCase = {
  file: string;
  dns?: string;
  dns_txt?: Record<string, string[]> | string;
  expect:
    | string[]
    | { last_signature?: string; signatures?: string[]; go_result?: { Results: { State: string }[] } | null };
  must_not_be?: string[];
  verify_at_unix?: number;
  rspamd_limit_specific?: boolean;
};

export const dkimMessages: Corpus = {
  name: "dkim-messages",
  async run(dir) {
    const tally = createTally();
    const cases = readJson<DkimCase[]>(dir, "cases.json");
    for (const one of cases) {
      const bytes = readFileSync(join(dir, one.file));
      const mail = one.file.startsWith("rspamd-") ? withCrlf(bytes) : bytes;
      const now_ms = one.verify_at_unix ? one.verify_at_unix * 1_000 : SOME_TIME_MS;
      const { dkim } = await judge(mail, dkimResolver(dir, one, cases), { now_ms });
      judgeDkim(
        tally,
        one,
        dkim.signatures.map(({ result }) => result),
      );
    }
    return tally;
  },
};

function dkimResolver(dir: string, one: DkimCase, cases: DkimCase[]): NodeResolver {
  if (one.dns) return listedResolver(join(dir, one.dns));
  const sameAs = typeof one.dns_txt === "string" ? /same as (\S+)/.exec(one.dns_txt)?.[1] : undefined;
  const txt = sameAs ? cases.find(({ file }) => file.startsWith(sameAs))?.dns_txt : one.dns_txt;
  return txtResolver(new Map(Object.entries((txt ?? {}) as Record<string, string[]>)));
}

function txtResolver(records: Map<string, string[]>): NodeResolver {
  return async (name, rrtype) => {
    const found = rrtype === "TXT" ? (records.get(name) ?? records.get(name.toLowerCase())) : undefined;
    if (found === undefined || found[0] === "NOTFOUND" || found[0] === "PERMERROR") throw dnsError("ENOTFOUND");
    if (found[0] === "TEMPERROR") throw dnsError("ESERVFAIL");
    return found.map((text) => [text]);
  };
}

const STATES: Record<string, string[]> = {
  SUCCESS: ["pass"],
  TEMPFAIL: ["temperror"],
  PERMFAIL: ["permerror", "fail", "neutral", "policy", "none"],
};

function judgeDkim(tally: Tally, one: DkimCase, got: string[]): void {
  const reason = one.rspamd_limit_specific ? "a limit of rspamd's own, not of the standard (the README says so)" : null;
  const isForbidden = got.some((result) => one.must_not_be?.includes(result));
  const wanted = isForbidden ? `none of ${one.must_not_be}` : one.expect;
  tally.judge(one.file, wanted, !isForbidden && agrees(one.expect, got) ? wanted : got, reason);
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

type DmarcCase = {
  case: string;
  file: string;
  ip: string | null;
  mail_from: string | null;
  helo: string | null;
  expect: { dmarc: string; policy?: string };
};

export const dmarcEvaluation: Corpus = {
  name: "dmarc-evaluation",
  async run(dir) {
    const tally = createTally();
    const resolver = listedResolver(join(dir, "dns.json"));
    for (const one of readJson<DmarcCase[]>(dir, "cases.json")) {
      const client = {
        remote_ip: one.ip ?? "203.0.113.250",
        helo: one.helo ?? "client.invalid",
        mail_from: one.mail_from ?? "",
      };
      const { dmarc } = await judge(withCrlf(readFileSync(join(dir, one.file))), resolver, client);
      const policy = one.expect.policy ? { policy: dmarc.policy } : {};
      tally.judge(one.case, one.expect, { dmarc: dmarc.result, ...policy });
    }
    return tally;
  },
};

function readJson<T>(dir: string, file: string): T {
  return JSON.parse(readFileSync(join(dir, file), "utf8")) as T;
}
