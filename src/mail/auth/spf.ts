// SPF: whether a client may use a domain in MAIL FROM or HELO (RFC 7208 check_host, RFC 8616 for international names).
// Limits: 10 terms that ask DNS, 2 void look-ups, 10 MX and 10 PTR names (§4.6.4). Does not fetch explanations (exp=,
// §6.2), whose text is the sender's and of no use to us; their syntax is checked. Unit of trust: the domain alone.
import { domainToASCII } from "node:url";
import { type Ip, ipText, isInNetwork, parseIp } from "./ip.ts";
import type { Answer, LookUps, MxRecord } from "./look-ups.ts";
import { expandMacros, isQueryName, type MacroString, type MacroValues, usesMacro } from "./spf-macro.ts";
import { type Directive, isSpfRecord, parseSpfRecord, type SpfRecord } from "./spf-record.ts";

export type SpfResult = "none" | "neutral" | "pass" | "fail" | "softfail" | "temperror" | "permerror";

export type SpfCheck = { remote_ip: string; helo: string; mail_from: string };

/** `domain` is the one that was checked; `identity` says whose it is: a null sender is checked by its HELO (§2.4). */
export type SpfVerdict = { result: SpfResult; domain: string; identity: "mailfrom" | "helo"; reason: string };

const termsMax = 10;
const voidsMax = 2;
const namesMax = 10;

type State = {
  look_ups: LookUps;
  values: MacroValues;
  /** RFC 8616 §4: such a local part cannot stand in a name, so terms with it do not match. */
  local_is_ascii: boolean;
  terms: number;
  voids: number;
  reason: string;
};

type Match = boolean | "temperror" | "permerror";

/** Checks one sender. Ends within the limits of `lookUps` and never throws for what DNS holds. */
export async function checkSpf(check: SpfCheck, lookUps: LookUps): Promise<SpfVerdict> {
  const identity = check.mail_from === "" ? "helo" : "mailfrom";
  const whole = check.mail_from === "" ? `postmaster@${check.helo}` : check.mail_from;
  const at = whole.lastIndexOf("@");
  const local = unquoted(whole.slice(0, Math.max(at, 0))) || "postmaster";
  const domain = asciiName(whole.slice(at + 1));
  const ip = parseIp(check.remote_ip);
  const verdict = { domain, identity } as const;
  if (ip === null) return { ...verdict, result: "none", reason: "no client address" };
  if (!isQueryName(domain) || domain.includes(" ")) return { ...verdict, result: "none", reason: "not a domain name" };
  const sender = `${local}@${domain}`;
  const values: MacroValues = {
    ...{ sender, local, sender_domain: domain, domain, helo: check.helo, ip, client_name: "unknown" },
  };
  const asciiLocal = /^[\x00-\x7f]*$/.test(local);
  const state: State = { look_ups: lookUps, values, local_is_ascii: asciiLocal, terms: 0, voids: 0, reason: "" };
  const result = await checkHost(state, domain);
  return { ...verdict, result, reason: state.reason };
}

// RFC 5321 §4.1.2: the quotes are how a local part is written, and not part of it.
function unquoted(local: string): string {
  const [, inner] = /^"((?:[^"\\]|\\.)*)"$/s.exec(local) ?? [];
  return inner === undefined ? local : inner.replace(/\\(.)/gs, "$1");
}

function asciiName(domain: string): string {
  const ascii =
    /^[\x00-\x7f]*$/.test(domain) || /[\x00-\x20\x7f/?#@:%[\]\\]/.test(domain) ? domain : domainToASCII(domain);
  return ascii.toLowerCase().replace(/\.$/, "");
}

async function checkHost(state: State, domain: string): Promise<SpfResult> {
  const record = await findRecord(state, domain);
  if (typeof record === "string") return record;
  for (const directive of record.directives) {
    const match = await matches(state, domain, directive);
    if (match === true) return directive.qualifier;
    if (match !== false) return match;
  }
  // §6.1: only reached when no `all` stands in the record, which always matches.
  return record.redirect === null ? "neutral" : redirected(state, domain, record.redirect);
}

async function findRecord(state: State, domain: string): Promise<SpfRecord | SpfResult> {
  const answer = await state.look_ups.txt(domain);
  if (answer.kind === "failed") return because(state, "temperror", `${domain}: ${answer.reason}`);
  const texts = answer.kind === "found" ? answer.records.filter(isSpfRecord) : [];
  if (texts.length === 0) return because(state, "none", `${domain} has no SPF record`);
  if (texts.length > 1) return because(state, "permerror", `${domain} has more than one SPF record`);
  return parseSpfRecord(texts[0]!) ?? because(state, "permerror", `${domain}: the record has a syntax error`);
}

function because<R extends SpfResult>(state: State, result: R, reason: string): R {
  state.reason = reason;
  return result;
}

async function redirected(state: State, domain: string, target: MacroString): Promise<SpfResult> {
  const next = await nextTerm(state, domain, target);
  if (next.kind === "too_many") return "permerror";
  if (next.kind !== "name") return because(state, "permerror", `${domain}: redirect= names no domain`);
  const result = await checkHost(state, next.name);
  return result === "none" ? "permerror" : result;
}

function matches(state: State, domain: string, directive: Directive): Match | Promise<Match> {
  switch (directive.kind) {
    case "all":
      return true;
    case "network":
      return isInNetwork(state.values.ip, directive.network, directive.bits);
    default:
      return matchesByDns(state, domain, directive);
  }
}

type DnsDirective = Exclude<Directive, { kind: "all" } | { kind: "network" }>;

async function matchesByDns(state: State, domain: string, directive: DnsDirective): Promise<Match> {
  const next = await nextTerm(state, domain, directive.target);
  if (next.kind === "too_many") return "permerror";
  // §4.3, §5.2: check_host of a malformed name is none, and that makes an include a permerror.
  if (next.kind === "malformed" && directive.kind === "include") {
    return because(state, "permerror", `${domain}: include: names no domain`);
  }
  // §4.8: elsewhere a name that cannot be asked for does not match.
  if (next.kind !== "name") return false;
  return matchesName(state, directive, next.name);
}

async function matchesName(state: State, directive: DnsDirective, name: string): Promise<Match> {
  const { ip } = state.values;
  switch (directive.kind) {
    case "include":
      return matchesInclude(state, name);
    case "exists":
      return hasRecords(state, await state.look_ups.a(name));
    case "ptr":
      return matchesPtr(state, name);
    case "a":
      return matchesAddress(state, name, ip.length === 4 ? directive.bits4 : directive.bits6);
    case "mx":
      return matchesMx(state, name, ip.length === 4 ? directive.bits4 : directive.bits6);
  }
}

type Target = { kind: "name"; name: string } | { kind: "malformed" | "unmatched" | "too_many" };

/** Counts a term that asks DNS and expands its target. */
async function nextTerm(state: State, domain: string, target: MacroString | null): Promise<Target> {
  state.terms += 1;
  if (state.terms > termsMax) {
    because(state, "permerror", `more than ${termsMax} terms that need DNS`);
    return { kind: "too_many" };
  }
  if (target === null) return { kind: "name", name: domain };
  if (!state.local_is_ascii && usesMacro(target, "sl")) return { kind: "unmatched" };
  const clientName = usesMacro(target, "p") ? await clientNameFor(state, domain) : "unknown";
  const name = expandMacros(target, { ...state.values, domain, client_name: clientName });
  const ascii = /^[\x00-\x7f]*$/.test(name) ? name : asciiName(name);
  return isQueryName(ascii) ? { kind: "name", name: ascii } : { kind: "malformed" };
}

// §5.2
async function matchesInclude(state: State, name: string): Promise<Match> {
  const result = await checkHost(state, name);
  if (result === "none") return "permerror";
  return result === "temperror" || result === "permerror" ? result : result === "pass";
}

function hasRecords(state: State, answer: Answer<unknown>): Match {
  if (answer.kind === "found") return true;
  return answer.kind === "failed" ? because(state, "temperror", answer.reason) : countVoid(state);
}

// §4.6.4: terms that find nothing are limited too.
function countVoid(state: State): false | "permerror" {
  state.voids += 1;
  return state.voids > voidsMax
    ? because(state, "permerror", `more than ${voidsMax} look-ups without an answer`)
    : false;
}

/** The addresses of a name that are of the client's kind. */
function addressesOf({ look_ups, values }: State, name: string): Promise<Answer<string>> {
  return values.ip.length === 4 ? look_ups.a(name) : look_ups.aaaa(name);
}

async function matchesAddress(state: State, name: string, bits: number): Promise<Match> {
  const { ip } = state.values;
  const answer = await addressesOf(state, name);
  return answer.kind === "found" ? holds(answer.records, ip, bits) : hasRecords(state, answer);
}

function holds(addresses: string[], ip: Ip, bits: number): boolean {
  return addresses.some((address) => {
    const other = parseIp(address);
    return other !== null && isInNetwork(ip, other, bits);
  });
}

// §5.4; §4.6.4: an eleventh MX that had to be asked is a permerror.
async function matchesMx(state: State, name: string, bits: number): Promise<Match> {
  const answer = await state.look_ups.mx(name);
  if (answer.kind !== "found") return hasRecords(state, answer);
  const { ip } = state.values;
  const hosts = answer.records.toSorted((a: MxRecord, b: MxRecord) => a.preference - b.preference);
  for (const [index, { exchange }] of hosts.entries()) {
    if (index === namesMax) return because(state, "permerror", `${name} has more than ${namesMax} MX`);
    const host = exchange.replace(/\.$/, "");
    if (host === "") continue;
    const found = await addressesOf(state, host);
    if (found.kind === "failed") return because(state, "temperror", `${host}: ${found.reason}`);
    if (found.kind === "found" && holds(found.records, ip, bits)) return true;
  }
  return false;
}

// §5.5
async function matchesPtr(state: State, name: string): Promise<Match> {
  const answer = await state.look_ups.ptr(ipText(state.values.ip));
  if (answer.kind === "absent") return countVoid(state);
  const names = await validatedNames(state);
  return names.some((found) => isSameOrBelow(found, name.toLowerCase()));
}

/** The client's names that lead back to its address. A DNS error only means that there are none. */
async function validatedNames(state: State): Promise<string[]> {
  const { ip } = state.values;
  const answer = await state.look_ups.ptr(ipText(ip));
  if (answer.kind !== "found") return [];
  const names = answer.records.slice(0, namesMax).map((name) => name.toLowerCase().replace(/\.$/, ""));
  const checks = await Promise.all(names.map((name) => addressesOf(state, name)));
  return names.filter((_, index) => {
    const check = checks[index]!;
    return check.kind === "found" && holds(check.records, ip, ip.length * 8);
  });
}

// §7.3: the domain itself, else a name below it, else any.
async function clientNameFor(state: State, domain: string): Promise<string> {
  const names = await validatedNames(state);
  return (
    names.find((name) => name === domain) ?? names.find((name) => isSameOrBelow(name, domain)) ?? names[0] ?? "unknown"
  );
}

function isSameOrBelow(name: string, domain: string): boolean {
  return name === domain || name.endsWith(`.${domain}`);
}
