// DNS look-ups as values, with a clear difference between "not there" (final) and "could not ask" (try later): a timeout
// must never bounce mail. A stub over recursive servers (RFC 1035, 2308, 6840) with a cache of its own. Not here: the
// validation of DNSSEC, which is the configured server's; SPF, MX order and the like, which are the features'.

import { getServers } from "node:dns";
import { domainToASCII } from "node:url";
import ipaddr from "ipaddr.js";
import { createFairPlaces } from "../fair/fair-gate.ts";
import { createLru } from "../fair/lru.ts";
import { askServer, type Outcome, parseServer, type Server } from "./dns-exchange.ts";
import { type DnsRecord, type DnsType, type Message, type Mx, type Question, type Tlsa, TYPES } from "./dns-message.ts";

export type { Mx } from "./dns-message.ts";

export type Answer<T> =
  | { kind: "found"; records: T[]; ttl_s: number; authenticated: boolean }
  | { kind: "absent"; reason: "nxdomain" | "nodata" }
  | { kind: "failed"; reason: string };

/**
 * `fresh` asks the server even if the answer is in our cache. `who` has a share of the questions under way of its own:
 * strangers' name servers choose how long one takes.
 */
export type AskHow = { fresh?: boolean; who?: string };

export type Resolver = {
  /** Each record as one text, its character strings joined. */
  txt(name: string, how?: AskHow): Promise<Answer<string>>;
  /** In the server's order; a null MX (RFC 7505) has the exchange ".". */
  mx(name: string, how?: AskHow): Promise<Answer<Mx>>;
  a(name: string, how?: AskHow): Promise<Answer<string>>;
  aaaa(name: string, how?: AskHow): Promise<Answer<string>>;
  /** The name's own alias, not followed further. */
  cname(name: string, how?: AskHow): Promise<Answer<string>>;
  /** The names of an IPv4 or IPv6 address. */
  ptr(ip: string, how?: AskHow): Promise<Answer<string>>;
  tlsa(name: string, how?: AskHow): Promise<Answer<Tlsa>>;
};

export type ResolverOptions = {
  /** `host:port` each; none means the system's. */
  servers: string[];
  timeout_ms: number;
  attempts: number;
  cache_max: number;
  /** The servers validate DNSSEC and we trust the path to them: only then is the AD bit believed (RFC 6840 §5.8). */
  validating: boolean;
  now: () => number;
};

const ALIASES_MAX = 8;
const TOTAL_MS_MAX = 10_000;
const TTL_POSITIVE_S_MAX = 300;
const TTL_NEGATIVE_S_MAX = 60;
const RECORDS_MAX = 256;
/** Larger answers are not cached: 10,000 names of one hostile zone must not fill the memory. */
const CACHED_ANSWER_BYTES_MAX = 4_096;
/**
 * Questions on their way, each with a socket: half of them for who is alone; and those of each that wait. One whose deadline
 * has passed when its turn comes is not asked.
 */
const PLACES = { places: 512, waiting_max: 10_000 };
/** Mail that leaves, and whoever names nobody. */
const NOBODY = "";
const SERVERS_TRIED_MAX = 4;

type Value = string | Mx | Tlsa;
/** An answer and how long it may be kept; 0 is not at all. */
type Looked = { answer: Answer<Value>; ttl_s: number };
type World = Pick<ResolverOptions, "timeout_ms" | "attempts" | "validating">;

const RCODES = new Map([
  [1, "formerr"],
  [2, "servfail"],
  [4, "notimp"],
  [5, "refused"],
]);
const NXDOMAIN = 3;

/** A resolver with its own cache. Every look-up ends within 10 s; none of them throws. */
export function createResolver(options: ResolverOptions): Resolver {
  const servers = (options.servers.length > 0 ? options.servers : systemServers()).map(parseServer);
  const places = createFairPlaces(PLACES);
  const ask = serverChoice(servers, options);
  const askInTurn =
    (who: string): Ask =>
    async (question, deadline) => {
      const leave = await places.enter(who);
      if (leave === null) return { kind: "failed", reason: "too many look-ups" };
      return ask(question, deadline).finally(leave);
    };
  const query = cached(options, (question, who) => lookUp(options, askInTurn(who), question));
  const look =
    <T extends Value>(type: DnsType) =>
    (name: string, how?: AskHow) =>
      query(wireName(name), type, how) as Promise<Answer<T>>;
  const ptr = look<string>("PTR");
  return {
    txt: look<string>("TXT"),
    mx: look<Mx>("MX"),
    a: look<string>("A"),
    aaaa: look<string>("AAAA"),
    cname: look<string>("CNAME"),
    ptr: (ip, how) => ptr(reverseName(ip) ?? "", how),
    tlsa: look<Tlsa>("TLSA"),
  };
}

/** The resolver with all questions asked for `who`. */
export function resolverFor(resolver: Resolver, who: string): Resolver {
  const asking =
    <T>(look: (name: string, how?: AskHow) => Promise<Answer<T>>) =>
    (name: string, how?: AskHow) =>
      look(name, { ...how, who });
  return {
    txt: asking(resolver.txt),
    mx: asking(resolver.mx),
    a: asking(resolver.a),
    aaaa: asking(resolver.aaaa),
    cname: asking(resolver.cname),
    ptr: asking(resolver.ptr),
    tlsa: asking(resolver.tlsa),
  };
}

function systemServers(): string[] {
  const servers = getServers();
  return servers.length > 0 ? servers : ["127.0.0.1:53"];
}

/**
 * The name as the DNS has it: lower case, IDN converted, no final dot. Null for what cannot be in the DNS (empty or long
 * labels, unprintable characters), which then simply is not there.
 */
function wireName(name: string): string | null {
  // A space may stand in a label (RFC 2181 §11); SPF macros make such names (RFC 7208 §7).
  const ascii = /^[ -~]*$/.test(name) ? name : internationalName(name);
  const bare = ascii.toLowerCase().replace(/\.$/, "");
  return bare.length <= 253 && /^[ -~]+$/.test(bare) && bare.split(".").every(isLabel) ? bare : null;
}

// domainToASCII reads a URL's host: it would drop line breaks and end at a slash.
function internationalName(name: string): string {
  return /[\x00-\x20\x7f/?#@:%[\]\\]/.test(name) ? "" : domainToASCII(name);
}

function isLabel(label: string): boolean {
  return label.length >= 1 && label.length <= 63 && !label.includes("\\");
}

function reverseName(ip: string): string | null {
  if (!ipaddr.isValid(ip)) return null;
  const address = ipaddr.process(ip);
  if (address.kind() === "ipv4") return `${address.toByteArray().reverse().join(".")}.in-addr.arpa`;
  const digits = Buffer.from(address.toByteArray()).toString("hex");
  return `${[...digits].reverse().join(".")}.ip6.arpa`;
}

// --- cache -----------------------------------------------------------------------------------------------------------

type Kept = { answer: Answer<Value>; expires: number; ttl_s: number };

function cached(
  options: Pick<ResolverOptions, "cache_max" | "now">,
  load: (question: Question, who: string) => Promise<Looked>,
): (name: string | null, type: DnsType, how?: AskHow) => Promise<Answer<Value>> {
  const kept = createLru<Kept>(Math.max(1, options.cache_max));
  const underWay = new Map<string, Promise<Answer<Value>>>();

  function recall(key: string): Answer<Value> | null {
    const entry = kept.get(key);
    if (!entry) return null;
    const leftS = (entry.expires - options.now()) / 1000;
    // More is left than it ever had: the clock was set back.
    if (leftS <= 0 || leftS > entry.ttl_s) return null;
    return entry.answer.kind === "found" ? { ...entry.answer, ttl_s: Math.ceil(leftS) } : entry.answer;
  }

  async function run(key: string, question: Question, who: string): Promise<Answer<Value>> {
    const { answer, ttl_s } = await load(question, who);
    if (ttl_s > 0 && options.cache_max > 0) kept.set(key, { answer, expires: options.now() + ttl_s * 1000, ttl_s });
    else kept.delete(key);
    return answer;
  }

  return (name, type, how) => {
    if (name === null) return Promise.resolve({ kind: "absent", reason: "nxdomain" });
    const key = `${type} ${name}`;
    const who = how?.who ?? NOBODY;
    // A fresh question joins no look-up that is under way: that one may have been answered before the caller's change.
    if (how?.fresh) return run(key, { name, type }, who);
    const known = recall(key);
    if (known) return Promise.resolve(known);
    // Nor does one of somebody else, which waits behind that one's own.
    const asked = `${key} ${who}`;
    const running = underWay.get(asked);
    if (running) return running;
    const started = run(key, { name, type }, who).finally(() => underWay.delete(asked));
    underWay.set(asked, started);
    return started;
  };
}

// --- one look-up: aliases and the meaning of answers -----------------------------------------------------------------

type Trail = { name: string; seen: Set<string>; ttl_s: number; authenticated: boolean };

// Servers that recurse send the whole chain of aliases in one answer; for others each step is a question of its own.
async function lookUp(world: World, ask: Ask, question: Question): Promise<Looked> {
  const deadline = performance.now() + Math.min(TOTAL_MS_MAX, world.timeout_ms * world.attempts);
  const trail: Trail = { name: question.name, seen: new Set(), ttl_s: TTL_POSITIVE_S_MAX, authenticated: true };
  for (let asked = 0; asked <= ALIASES_MAX; asked += 1) {
    const outcome = await ask({ name: trail.name, type: question.type }, deadline);
    if (outcome.kind === "failed") return failed(outcome.reason);
    trail.authenticated &&= world.validating && outcome.message.authenticated;
    const looked = readAnswer(outcome.message, question.type, trail);
    if (looked) return looked;
  }
  return failed("too many aliases");
}

function failed(reason: string): Looked {
  return { answer: { kind: "failed", reason }, ttl_s: 0 };
}

// Null: the answer ends at an alias whose target (now trail.name) must be asked for.
function readAnswer(message: Message, type: DnsType, trail: Trail): Looked | null {
  if (!isFinal(message)) return failed(RCODES.get(message.rcode) ?? `rcode ${message.rcode}`);
  const asked = trail.name;
  const found = followAliases(message, type, trail);
  if (typeof found === "string") return failed(found);
  if (found.length > 0) return foundAnswer(found, trail);
  // RFC 6604 §3: the code speaks of the last name of the chain.
  if (message.rcode === NXDOMAIN) return absentAnswer("nxdomain", message, trail);
  if (trail.name !== asked) return null;
  return isReferral(message) ? failed("referral") : absentAnswer("nodata", message, trail);
}

function isFinal(message: Message): boolean {
  return message.rcode === 0 || message.rcode === NXDOMAIN;
}

// The records of the wanted type at the end of the chain, or why the chain has none. A text is a failure.
function followAliases(message: Message, type: DnsType, trail: Trail): DnsRecord[] | string {
  for (;;) {
    const own = message.answers.filter((record) => record.name === trail.name);
    const wanted = own.filter((record) => record.type === TYPES[type]);
    const alias = own.find((record) => record.type === TYPES.CNAME);
    if (wanted.length > 0 || !alias) return wanted;
    if (trail.seen.has(trail.name)) return "the aliases run in a circle";
    if (trail.seen.size >= ALIASES_MAX) return "too many aliases";
    const target = wireName(String(alias.value));
    if (target === null) return "bad answer";
    trail.seen.add(trail.name);
    trail.ttl_s = Math.min(trail.ttl_s, alias.ttl_s);
    trail.name = target;
  }
}

// A server that does not recurse points elsewhere instead of answering: that says nothing about the name.
function isReferral(message: Message): boolean {
  const types = message.authorities.map((record) => record.type);
  return !message.authoritative && types.includes(TYPES.NS) && !types.includes(TYPES.SOA);
}

function foundAnswer(found: DnsRecord[], trail: Trail): Looked {
  const records = found.slice(0, RECORDS_MAX).map((record) => record.value as Value);
  const ttl_s = Math.min(trail.ttl_s, ...found.slice(0, RECORDS_MAX).map((record) => record.ttl_s));
  const bytes = records.reduce((sum, value) => sum + sizeOf(value), 0);
  const answer: Answer<Value> = { kind: "found", records, ttl_s, authenticated: trail.authenticated };
  return { answer, ttl_s: bytes > CACHED_ANSWER_BYTES_MAX ? 0 : ttl_s };
}

function sizeOf(value: Value): number {
  if (typeof value === "string") return value.length;
  return "exchange" in value ? value.exchange.length : value.data.length;
}

// RFC 2308 §5: for the SOA's minimum or its own TTL, whichever is less; not at all without a SOA.
function absentAnswer(reason: "nxdomain" | "nodata", message: Message, trail: Trail): Looked {
  const soa = message.authorities.find((record) => record.type === TYPES.SOA);
  const ttl_s = soa ? Math.min(trail.ttl_s, TTL_NEGATIVE_S_MAX, soa.ttl_s, Number(soa.value)) : 0;
  return { answer: { kind: "absent", reason }, ttl_s };
}

// --- which server, how often, how many at once -----------------------------------------------------------------------

type Ask = (question: Question, deadline: number) => Promise<Outcome>;

// Goes round the servers until one gives a final answer; the next look-up begins with a server that answered.
function serverChoice(servers: Server[], options: ResolverOptions): Ask {
  const triesMax = Math.max(options.attempts, Math.min(servers.length, SERVERS_TRIED_MAX));
  let preferred = 0;
  return async (question, deadline) => {
    const dnssec = options.validating && question.type === "TLSA";
    let outcome: Outcome = { kind: "failed", reason: "timeout" };
    let index = preferred;
    for (let tries = 0; tries < triesMax; tries += 1) {
      const timeout_ms = Math.min(options.timeout_ms, deadline - performance.now());
      if (timeout_ms <= 0) break;
      outcome = await askServer(servers[index]!, question, { timeout_ms, ad: options.validating, dnssec });
      if (outcome.kind === "answer" && isFinal(outcome.message)) return outcome;
      const next = (index + 1) % servers.length;
      if (preferred === index) preferred = next;
      index = next;
    }
    return outcome;
  };
}
