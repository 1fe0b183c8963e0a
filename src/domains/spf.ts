// Does a domain's SPF record let our hosts send (RFC 7208)? Walks the record as a receiver does, up to our include, and
// says in plain words what stands in the way. Not here: evaluating SPF for an address (mail/auth does that).
import ipaddr from "ipaddr.js";
import type { Answer } from "../platform/dns/resolver.ts";

/** What was seen and what it means; the status `error` means that somebody's name server could not be asked. */
export type Verdict = { status: "ok" | "missing" | "mismatch" | "error"; found: string[]; hint: string | null };

type Ask = (name: string) => Promise<Answer<string>>;
/** Where the walk of one record ended. `end`: receivers go on behind it. */
type Step =
  | { kind: "reached" }
  | { kind: "end" }
  | { kind: "stopped" }
  | { kind: "fault"; hint: string }
  | { kind: "unknown"; hint: string };
type Walk = { host: string; ask: Ask; lookups: number };
type Term = { text: string; qualifier: string; name: string; value: string; modifier: boolean };

/** RFC 7208 §4.6.4 */
const LOOKUPS_MAX = 10;
const RECORD_LENGTH_MAX = 4_096;
const TERMS_MAX = 200;
const MECHANISMS = new Set(["all", "include", "a", "mx", "ptr", "ip4", "ip6", "exists"]);

/** Judges the TXT records at a domain's root. `host` is what the record must include; `ask` looks up TXT. */
export async function judgeSpf(texts: readonly string[], host: string, ask: Ask): Promise<Verdict> {
  const records = texts.filter(isSpf);
  if (records.length === 0) return noRecord(texts);
  const found = records.slice(0, 10);
  if (records.length > 1) return { status: "mismatch", found, hint: severalHint(records, host) };
  const record = records[0] as string;
  const split = texts.find((text) => /^(?:include:|ip[46]:|[-~?+]?all\b)/i.test(text.trim()));
  const walk: Walk = { host, ask, lookups: 0 };
  const step = await walkRecord(walk, record);
  switch (step.kind) {
    case "reached":
      return { status: "ok", found, hint: null };
    case "unknown":
      return { status: "error", found, hint: step.hint };
    case "fault":
      return { status: "mismatch", found, hint: step.hint };
    default:
      return { status: "mismatch", found, hint: split ? splitHint(split) : absentHint(record, host) };
  }
}

/** RFC 7208 §4.5: the version is followed by a space or the end; case does not matter. */
function isSpf(text: string): boolean {
  return /^v=spf1(?: |$)/i.test(text);
}

/** Ours to read, but a stranger's to write: a record may be 64 KB of what the pattern takes for blanks. */
const NEAR_CHARS_MAX = 100;

function isNearly(start: string): boolean {
  return /spf/i.test(start) && /^\W*(?:v\W*=\W*)?spf|^\s*v=spf/i.test(start);
}

function noRecord(texts: readonly string[]): Verdict {
  const near = texts.filter((text) => isNearly(text.slice(0, NEAR_CHARS_MAX))).slice(0, 10);
  const text = near[0];
  if (text === undefined)
    return { status: "missing", found: [], hint: "There is no SPF record here; publish the value shown." };
  let hint = "This is not a valid SPF record: it must begin with v=spf1 and a space.";
  if (/["'\u2018-\u201f]/.test(text)) hint = "The value contains quotation marks; enter it without them.";
  else if (/^v=spf1\S/i.test(text)) hint = "There is no space after v=spf1: receivers do not see an SPF record.";
  else if (/^\s/.test(text)) hint = "The value begins with a space; it must begin with v=spf1.";
  else if (/^spf2/i.test(text))
    hint = "This is a Sender ID record (spf2.0), which nobody reads; publish the value shown.";
  return { status: "mismatch", found: near, hint };
}

function severalHint(records: string[], host: string): string {
  const terms = records.flatMap((record) => record.trim().split(/ +/).slice(1));
  const kept = [...new Set(terms.filter((term) => !/^[-~?+]?all$/i.test(term)))];
  if (!kept.includes(`include:${host}`)) kept.push(`include:${host}`);
  const merged = `v=spf1 ${kept.join(" ")} ~all`;
  const lead = `There are ${records.length} SPF records, which receivers take as none (RFC 7208 §4.5)`;
  return merged.length <= 450 ? `${lead}; replace them by one: ${merged}` : `${lead}; merge them into one.`;
}

function splitHint(part: string): string {
  return `The value is split over several TXT records ("${part.slice(0, 60)}" is one); it must be one record.`;
}

function absentHint(record: string, host: string): string {
  const [head, ...rest] = record.trim().split(/ +/);
  const at = rest.findIndex((term) => /^[-~?+]?all$|^redirect=/i.test(term));
  const ours = rest.findIndex((term) => term.toLowerCase().includes(host));
  if (ours >= 0 && at >= 0 && ours > at) {
    return `"${rest[ours]}" stands behind "${rest[at]}", where receivers do not read on; move it to the front.`;
  }
  if (ours >= 0) return `"${rest[ours]}" does not let us send; write include:${host} instead.`;
  const merged = [head, ...rest.toSpliced(at < 0 ? rest.length : at, 0, `include:${host}`)].join(" ");
  const lead = `The SPF record does not include ${host}`;
  return merged.length <= 450 ? `${lead}; change it to: ${merged}` : `${lead}; add include:${host} before "all".`;
}

async function walkRecord(walk: Walk, record: string): Promise<Step> {
  const terms = readTerms(record);
  const wrong = terms.map((term) => termFault(term, walk.host)).find((hint) => hint !== null);
  if (wrong) return { kind: "fault", hint: wrong };
  for (const term of terms) {
    if (term.modifier) continue;
    if (term.name === "all") return { kind: "stopped" };
    const step = await walkMechanism(walk, term);
    if (step.kind !== "end") return step;
  }
  const redirect = terms.find((term) => term.modifier && term.name === "redirect");
  return redirect ? follow(walk, redirect) : { kind: "end" };
}

async function walkMechanism(walk: Walk, term: Term): Promise<Step> {
  if (term.name === "ip4" || term.name === "ip6") return { kind: "end" };
  if (term.name === "include") {
    const step = await follow(walk, term);
    if (step.kind === "reached" && term.qualifier !== "+") {
      return {
        kind: "fault",
        hint: `"${term.text}" does not let us send: write include: without "${term.qualifier}".`,
      };
    }
    // RFC 7208 §5.2: an "all" inside an include that does not pass is no match; the walk goes on outside.
    return step.kind === "stopped" ? { kind: "end" } : step;
  }
  return countLookup(walk, term) ?? { kind: "end" };
}

function countLookup(walk: Walk, term: Term): Step | null {
  walk.lookups += 1;
  if (walk.lookups <= LOOKUPS_MAX) return null;
  const hint = `The SPF record needs more than ${LOOKUPS_MAX} DNS look-ups ("${term.text}" is one too many), so receivers give up before ours (RFC 7208 §4.6.4); move include:${walk.host} to the front.`;
  return { kind: "fault", hint };
}

/** include: and redirect=, into the record they name. */
async function follow(walk: Walk, term: Term): Promise<Step> {
  const over = countLookup(walk, term);
  if (over) return over;
  const target = term.value.toLowerCase().replace(/\.$/, "");
  if (target === walk.host) return { kind: "reached" };
  // Macros (RFC 7208 §7) depend on the mail; such a record may match or not, and is taken as not.
  if (target.includes("%")) return { kind: "end" };
  const answer = await walk.ask(target);
  if (answer.kind === "failed") {
    return {
      kind: "unknown",
      hint: `"${term.text}" could not be looked up (${answer.reason}); it is asked for again.`,
    };
  }
  const records = answer.kind === "found" ? answer.records.filter(isSpf) : [];
  if (records.length === 1) return walkRecord(walk, records[0] as string);
  const what = records.length === 0 ? "has no SPF record" : `has ${records.length} SPF records`;
  const hint = `"${term.text}" breaks the record: ${target} ${what}, and receivers stop there (RFC 7208 §5.2). Remove it or put include:${walk.host} before it.`;
  return { kind: "fault", hint };
}

function readTerms(record: string): Term[] {
  const words = record
    .slice(0, RECORD_LENGTH_MAX)
    .split(/ +/)
    .slice(1, TERMS_MAX + 1);
  return words.filter((word) => word !== "").map(readTerm);
}

function readTerm(text: string): Term {
  const modifier = /^([a-z][a-z0-9_.-]*)=(.*)$/i.exec(text);
  if (modifier) {
    return {
      text,
      qualifier: "",
      name: (modifier[1] as string).toLowerCase(),
      value: modifier[2] ?? "",
      modifier: true,
    };
  }
  const match = /^([-+~?]?)([a-z0-9]*)(?:[:/](.*))?$/i.exec(text);
  const name = (match?.[2] ?? text).toLowerCase();
  return { text, qualifier: match?.[1] || "+", name, value: match?.[3] ?? "", modifier: false };
}

/** RFC 7208 §4.6: one syntax error anywhere makes the whole record a permanent error. */
function termFault(term: Term, host: string): string | null {
  const { text, name, value } = term;
  if (term.modifier) return name === "redirect" && value === "" ? `"${text}" names no domain.` : null;
  if (/["'\\\u2018-\u201f]|[^\x21-\x7e]/.test(text))
    return `"${text}" holds a quotation mark or a character that is not allowed.`;
  if (/include:.*include:|\.\w+(?:include|ip4|ip6|redirect)[:=]/i.test(text)) {
    return `"${text}" is two terms without a space: where a long value is cut into quoted parts, the space must be kept.`;
  }
  if (!MECHANISMS.has(name))
    return `"${text}" is not a term of SPF, which makes the whole record invalid; write include:${host}.`;
  if ((name === "include" || name === "exists") && value === "")
    return `"${text}" names no domain: no space may follow the colon.`;
  if (name === "ip4" && !isNetwork(value, "ipv4")) return `"${text}" is not an IPv4 address or network.`;
  if (name === "ip6" && !isNetwork(value, "ipv6")) return `"${text}" is not an IPv6 address or network.`;
  return name === "all" && value !== "" ? `"${text}" must be all alone.` : null;
}

function isNetwork(value: string, kind: "ipv4" | "ipv6"): boolean {
  const [address = "", bits, more] = value.split("/");
  const isAddress = kind === "ipv4" ? ipaddr.IPv4.isValidFourPartDecimal(address) : ipaddr.IPv6.isValid(address);
  if (!isAddress || more !== undefined) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (kind === "ipv4" ? 32 : 128));
}
