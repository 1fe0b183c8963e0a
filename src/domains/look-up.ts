// Looks a domain's records up and says of each what was seen: there, not there, different, or could not be asked; with a
// hint for the classic mistakes of DNS panels. One check is bounded in time and in the number of questions.
import { getDomain } from "tldts";
import type { Config } from "../config.ts";
import { compareDkimRecord } from "../mail/dkim/key.ts";
import type { Answer, Mx } from "../platform/dns/resolver.ts";
import { isSeenByOthers, publicAddresses } from "../platform/net/public-addresses.ts";
import type { World } from "../platform/world.ts";
import { type Leaving, obstacleOfEnvelope, obstacleOfFrom, type SpfObstacle } from "./receiver-spf.ts";
import { judgeSpf, type Verdict } from "./spf.ts";
import type { ExpectedRecord, RecordCheck } from "./types.ts";

type Ask = {
  txt(name: string): Promise<Answer<string>>;
  mx(name: string): Promise<Answer<Mx>>;
  a(name: string): Promise<Answer<string>>;
  aaaa(name: string): Promise<Answer<string>>;
  cname(name: string): Promise<Answer<string>>;
  ptr(ip: string): Promise<Answer<string>>;
  /** Ends the look-ups that are under way, as those of one message end with it. */
  end(): void;
};
type Look = { ask: Ask; record: ExpectedRecord; domain: string; movesMx: boolean; leaving: Promise<Leaving> };

/** A domain whose records are looked up. `pool`: the addresses its mail leaves from, where it is set to an IP pool. */
export type Looked = { domain: string; inbound_mx_acknowledged: boolean; pool: string[] };
type Hosts = Pick<Config, "hostname" | "public_addresses">;

/** No question is begun after this long; the resolver ends each within 10 s. */
const BEGIN_WITHIN_MS = 8_000;
const QUESTIONS_MAX = 150;
const FOUND_MAX = 10;
const FOUND_LENGTH_MAX = 1_024;
const ALIASES_MAX = 5;
const NAME_LENGTH_MAX = 253;

const JUDGES: Record<ExpectedRecord["purpose"], (look: Look) => Promise<Verdict>> = {
  ownership: (look) => checkTxt(look, judgeOwnership),
  dkim: (look) => checkTxt(look, judgeDkim),
  dmarc: (look) => checkTxt(look, judgeDmarc),
  dmarc_authorization: checkAuthorization,
  spf: checkSpf,
  mx: checkMx,
  return_path: checkReturnPath,
};

/**
 * Looks all records of one domain up, in parallel. `fresh` asks the name servers even for what is in our cache. Never
 * throws for what DNS says; takes at most some 18 s, whatever the name servers do.
 */
export async function lookUpRecords(
  world: Pick<World, "resolver" | "clock"> & { config: Hosts },
  { domain, inbound_mx_acknowledged: movesMx, pool }: Looked,
  expected: ExpectedRecord[],
  how: { fresh: boolean },
): Promise<RecordCheck[]> {
  const ask = boundedAsk(world, how);
  const sends = expected.some(({ purpose }) => purpose === "spf" || purpose === "return_path");
  const leaving = leavingFrom(world.config, ask, sends ? pool : null);
  const checked_at = new Date(world.clock.now()).toISOString();
  return Promise.all(
    expected.map(async (record) => {
      const verdict = await JUDGES[record.purpose]({ ask, record, domain, movesMx, leaving });
      const { purpose, name } = record;
      const hint = verdict.hint === null ? null : storable(verdict.hint);
      return { purpose, name, status: verdict.status, found: clipAll(verdict.found), hint, checked_at };
    }),
  );
}

/** Mail of a domain that is set to a pool leaves from the pool's addresses, any other from the shared ones. */
async function leavingFrom(hosts: Hosts, ask: Ask, pool: string[] | null): Promise<Leaving> {
  const addresses = pool === null || pool.length > 0 ? pool : await publicAddresses(hosts, ask);
  return { addresses: (addresses ?? []).filter(isSeenByOthers), hostname: hosts.hostname };
}

/** The same question is asked once a check; after the time or the number allowed the answer is "could not ask". */
function boundedAsk({ resolver, clock }: Pick<World, "resolver" | "clock">, how: { fresh: boolean }): Ask {
  const begun = clock.monotonic();
  const asked = new Map<string, Promise<Answer<never>>>();
  const bounded = <T>(type: string, look: (name: string, how: { fresh: boolean }) => Promise<Answer<T>>) => {
    return (name: string): Promise<Answer<T>> => {
      const key = `${type} ${name}`;
      const known = asked.get(key);
      if (known) return known;
      if (asked.size >= QUESTIONS_MAX || clock.monotonic() - begun > BEGIN_WITHIN_MS) {
        return Promise.resolve({ kind: "failed", reason: "the check took too long" });
      }
      const answer = look(name, how);
      asked.set(key, answer as Promise<Answer<never>>);
      return answer;
    };
  };
  return {
    txt: bounded("TXT", resolver.txt),
    mx: bounded("MX", resolver.mx),
    a: bounded("A", resolver.a),
    aaaa: bounded("AAAA", resolver.aaaa),
    cname: bounded("CNAME", resolver.cname),
    ptr: bounded("PTR", resolver.ptr),
    end: () => undefined,
  };
}

/** Hostile zones may hold anything: what is kept is short and without control characters. */
function clipAll(found: string[]): string[] {
  return found.slice(0, FOUND_MAX).map((text) => storable(text.slice(0, FOUND_LENGTH_MAX)));
}

/** jsonb takes neither NUL nor half a character; hints quote what was found, and cut it. */
function storable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}]/gu, "\ufffd");
}

function unasked(reason: string): Verdict {
  return {
    status: "error",
    found: [],
    hint: `The name servers could not be asked (${reason}). This says nothing about the record; it is asked for again.`,
  };
}

// --- TXT under a name of our own ---------------------------------------------------------------------------------------

type JudgeTxt = (texts: string[], record: ExpectedRecord) => Verdict;

async function checkTxt(look: Look, judge: JudgeTxt): Promise<Verdict> {
  const { ask, record } = look;
  const answer = await ask.txt(record.name);
  if (answer.kind === "failed") return unasked(answer.reason);
  const verdict = judge(answer.kind === "found" ? answer.records : [], record);
  if (verdict.status !== "missing") return verdict;
  const isOurs = async (name: string) => {
    const other = await ask.txt(name);
    return other.kind === "found" && judge(other.records, record).status === "ok";
  };
  return { ...verdict, hint: (await misplacedHint(look, isOurs)) ?? verdict.hint };
}

/** The record under the name that a DNS panel makes of a full name (the zone's name twice), or at the root. */
async function misplacedHint(look: Look, isOurs: (name: string) => Promise<boolean>): Promise<string | null> {
  const { record, domain } = look;
  for (const zone of new Set([getDomain(domain, { allowPrivateDomains: true }) ?? domain, domain])) {
    const doubled = `${record.name}.${zone}`;
    if (doubled.length > NAME_LENGTH_MAX || !(await isOurs(doubled))) continue;
    const short = record.name === zone ? "@" : record.name.slice(0, -(zone.length + 1));
    return `The record stands at ${doubled}: your DNS panel adds ${zone} by itself. Enter only ${short} as its name.`;
  }
  if (record.name === domain || !(await isOurs(domain))) return null;
  return `The record stands at ${domain} itself; it must stand at ${record.name}.`;
}

function judgeOwnership(texts: string[], record: ExpectedRecord): Verdict {
  const found = texts;
  if (texts.some((text) => text.trim() === record.value)) return { status: "ok", found, hint: null };
  if (texts.length === 0)
    return { status: "missing", found, hint: "There is no TXT record at this name; publish the value shown." };
  const hints = texts.map((text) => ownershipHint(text, record.value));
  return {
    status: "mismatch",
    found,
    hint:
      hints.find((hint) => hint !== null) ??
      "The TXT record found is not ours (perhaps a wildcard record); add the value shown.",
  };
}

function ownershipHint(text: string, wanted: string): string | null {
  const [prefix, token] = [wanted.slice(0, wanted.indexOf("=") + 1), wanted.slice(wanted.indexOf("=") + 1)];
  if (text.replace(/["'\\\s\u2018-\u201f]/g, "") === wanted)
    return "The value contains quotation marks or spaces; enter it without them.";
  if (text.includes(wanted)) return "Something stands before or behind the value; publish exactly the value shown.";
  if (text.trim() === token) return `The value lacks its beginning ${prefix}; publish exactly the value shown.`;
  if (text.toLowerCase() === wanted.toLowerCase()) return "Upper and lower case differ; copy the value as it is.";
  if (wanted.startsWith(text.trim()) && text.trim() !== "")
    return "The value is cut off; publish all of the value shown.";
  if (!text.includes(prefix)) return null;
  return "The value holds another token, of an earlier registration or of another organization; add a record with ours.";
}

function judgeDkim(texts: string[], record: ExpectedRecord): Verdict {
  if (texts.length === 0)
    return { status: "missing", found: [], hint: "There is no TXT record at this name; publish the value shown." };
  const { status, hint } = compareDkimRecord(texts, record.value);
  return {
    status: status === "match" ? "ok" : "mismatch",
    found: texts,
    hint: hint ?? (status === "match" ? record.note : null),
  };
}

// RFC 7489 §6.3, §6.6.3: exactly one record that begins with v=DMARC1; ours is the rua entry, the policy is the customer's.
function judgeDmarc(texts: string[], record: ExpectedRecord): Verdict {
  const found = texts.filter((text) => /dmarc1/i.test(text));
  const uri = /rua=(\S+)/.exec(record.value)?.[1] ?? "";
  const wrong = (hint: string): Verdict => ({ status: "mismatch", found, hint });
  const valid = found.filter((text) => /^v\s*=\s*DMARC1\s*(?:;|$)/.test(text));
  if (found.length === 0)
    return { status: "missing", found, hint: "There is no DMARC record here; publish the value shown." };
  if (valid.length > 1)
    return wrong(`There are ${valid.length} DMARC records, which receivers take as none; keep one.`);
  const text = valid[0];
  if (text === undefined) {
    if (/["\u2018-\u201f]/.test(found[0] ?? ""))
      return wrong("The value contains quotation marks; enter it without them.");
    if ((found[0] ?? "").includes("\\"))
      return wrong("The value contains backslashes (such as \\;); enter the semicolons without them.");
    return wrong("The record must begin with v=DMARC1; (upper case, with a semicolon).");
  }
  return dmarcHint(text, uri) === null ? { status: "ok", found, hint: null } : wrong(dmarcHint(text, uri) ?? "");
}

// RFC 7489 §7.1: a record that begins with v=DMARC1 is a yes. It stands in the operator's zone, often as a wildcard.
async function checkAuthorization({ ask, record }: Look): Promise<Verdict> {
  const answer = await ask.txt(record.name);
  if (answer.kind === "failed") return unasked(answer.reason);
  const found = answer.kind === "found" ? answer.records : [];
  if (found.some((text) => /^v\s*=\s*DMARC1\s*(?:;|$)/i.test(text))) return { status: "ok", found, hint: null };
  const wildcard = record.name.slice(record.name.indexOf("._report._dmarc.") + 1);
  const hint = `The operator of this service publishes this record in its own zone; *.${wildcard} serves all domains. Without it most reporters send no reports here.`;
  return { status: found.length > 0 ? "mismatch" : "missing", found, hint };
}

function dmarcHint(text: string, uri: string): string | null {
  const tags = new Map<string, string>();
  for (const part of text.split(";")) {
    const equals = part.indexOf("=");
    if (equals > 0) tags.set(part.slice(0, equals).trim().toLowerCase(), part.slice(equals + 1).trim());
  }
  const policy = tags.get("p");
  if (policy !== undefined && !/^(?:none|quarantine|reject)$/i.test(policy)) {
    return `p=${policy.slice(0, 40)} is not a policy: it must be none, quarantine or reject.`;
  }
  const rua = tags.get("rua");
  if (rua === undefined) return `The record names nobody for reports; add ; rua=${uri}`;
  const entries = rua.split(",").map((entry) =>
    entry
      .trim()
      .replace(/!\d+[kmgt]?$/i, "")
      .toLowerCase(),
  );
  if (entries.includes(uri)) return null;
  if (entries.includes(uri.slice("mailto:".length))) return "The address in rua= lacks mailto: before it.";
  return `The reports do not come to us; add our address behind the others: rua=${rua.slice(0, 300)},${uri}`;
}

// --- SPF, MX, return path ------------------------------------------------------------------------------------------------

async function checkSpf(look: Look): Promise<Verdict> {
  const { ask, record, domain, leaving } = look;
  const answer = await ask.txt(domain);
  if (answer.kind === "failed") return unasked(answer.reason);
  const host = /include:(\S+)/.exec(record.value)?.[1] ?? "";
  const verdict = await judgeSpf(answer.kind === "found" ? answer.records : [], host, ask.txt);
  if (verdict.status === "ok") return withObstacle(verdict, await obstacleOfFrom(ask, await leaving, { domain, host }));
  if (verdict.status !== "missing") return verdict;
  const isOurs = async (name: string) => {
    const other = await ask.txt(name);
    return other.kind === "found" && other.records.some((text) => text.includes(`include:${host}`));
  };
  return { ...verdict, hint: (await misplacedHint(look, isOurs)) ?? verdict.hint };
}

/**
 * What receivers make of a record that is written as it should be. What the operator has to publish is not the owner's
 * fault: the record stays in place, with a hint.
 */
function withObstacle(verdict: Verdict, obstacle: SpfObstacle): Verdict {
  if (obstacle === null) return verdict;
  if (obstacle.whose === "nobody") return { ...unasked(obstacle.reason), found: verdict.found };
  if (obstacle.whose === "owner") return { ...verdict, status: "mismatch", hint: obstacle.says };
  const lead = verdict.hint === null ? "" : `${verdict.hint} `;
  return { ...verdict, hint: `${lead}${obstacle.says} Only the operator of this service can mend that.` };
}

// RFC 5321 §5.1: the lowest preference first; equal ones share the mail.
async function checkMx(look: Look): Promise<Verdict> {
  const { ask, record, domain } = look;
  const answer = await ask.mx(domain);
  if (answer.kind === "failed") return unasked(answer.reason);
  const records = answer.kind === "found" ? answer.records.toSorted((a, b) => a.preference - b.preference) : [];
  const found = records.map((mx) => `${mx.preference} ${mx.exchange}`);
  const ours = records.find((mx) => mx.exchange.toLowerCase() === record.value);
  if (ours) {
    const rivals = records.filter((mx) => mx !== ours && mx.exchange !== ours.exchange);
    return { ...judgePreference(ours, rivals), found };
  }
  if (records.length > 0) return { status: "mismatch", found, hint: foreignMxHint(look, records) };
  const isOurs = async (name: string) => {
    const other = await ask.mx(name);
    return other.kind === "found" && other.records.some((mx) => mx.exchange === record.value);
  };
  const hint = (await misplacedHint(look, isOurs)) ?? "There is no MX record; publish the one shown.";
  return { status: "missing", found, hint };
}

function judgePreference(ours: Mx, rivals: Mx[]): Omit<Verdict, "found"> {
  const before = rivals.find((mx) => mx.preference < ours.preference);
  if (before) {
    return {
      status: "mismatch",
      hint: `Mail goes to ${before.exchange} first, whose priority ${before.preference} is lower than ours (${ours.preference}); remove it or give ours the lowest.`,
    };
  }
  const beside = rivals.find((mx) => mx.preference === ours.preference);
  if (beside) {
    return {
      status: "mismatch",
      hint: `${beside.exchange} has the same priority (${ours.preference}) and gets a part of the mail; remove it or give ours a lower one.`,
    };
  }
  const later = rivals[0];
  return { status: "ok", hint: later ? `Mail goes to ${later.exchange} whenever we cannot be reached.` : null };
}

function foreignMxHint({ record, domain, movesMx }: Look, records: Mx[]): string {
  const first = records[0] as Mx;
  if (first.exchange === ".")
    return "The domain says that it takes no mail (null MX, RFC 7505); replace it by the record shown.";
  const { exchange } = first;
  if (/^[\d.]+$/.test(exchange))
    return `The MX record names an address (${exchange}); it must name the host ${record.value}.`;
  if (exchange.startsWith(`${record.value}.`)) return appendedHint(exchange, record.value);
  const what = `Mail for ${domain} goes to ${exchange}`;
  return movesMx
    ? `${what}; replace its MX records by ours.`
    : `${what}. Publishing our MX instead moves all mail of the domain here.`;
}

function appendedHint(target: string, wanted: string): string {
  return `The record points to ${target}: your DNS panel added the zone's name. Enter ${wanted}. with the final dot.`;
}

/**
 * Mail leaves under the return path once that is in place, until then under our own host: SPF is evaluated for the one
 * that counts.
 */
async function checkReturnPath(look: Look): Promise<Verdict> {
  const verdict = await checkAlias(look);
  if (verdict.status === "error") return verdict;
  const { ask, record, leaving } = look;
  const obstacle = await obstacleOfEnvelope(ask, await leaving, verdict.status === "ok" ? record.name : record.value);
  return withObstacle(verdict, obstacle);
}

async function checkAlias(look: Look): Promise<Verdict> {
  const { ask, record } = look;
  const found: string[] = [];
  let name = record.name;
  for (let aliases = 0; aliases < ALIASES_MAX; aliases += 1) {
    const answer = await ask.cname(name);
    if (answer.kind === "failed") return unasked(answer.reason);
    if (answer.kind === "absent") break;
    name = (answer.records[0] ?? "").toLowerCase();
    found.push(name);
    if (name === record.value) return { status: "ok", found, hint: null };
  }
  const target = found[0];
  if (target === undefined) return withoutCname(look);
  if (target.startsWith(`${record.value}.`))
    return { status: "mismatch", found, hint: appendedHint(target, record.value) };
  return { status: "mismatch", found, hint: `The record points to ${target}; it must point to ${record.value}.` };
}

/** No CNAME: perhaps a proxy or a flattened alias, which answers with addresses and loses the mail. */
async function withoutCname(look: Look): Promise<Verdict> {
  const { ask, record } = look;
  const answers = await Promise.all([ask.a(record.name), ask.aaaa(record.name)]);
  const found = answers.flatMap((answer) => (answer.kind === "found" ? answer.records : []));
  if (found.length > 0) {
    const hint = `There are addresses instead of the CNAME: the alias is proxied or flattened. Switch that off ("DNS only"), so that the name is a plain CNAME to ${record.value}.`;
    return { status: "mismatch", found, hint };
  }
  const isOurs = async (name: string) => {
    const other = await ask.cname(name);
    return other.kind === "found" && other.records[0]?.toLowerCase() === record.value;
  };
  const hint = (await misplacedHint(look, isOurs)) ?? "There is no CNAME record at this name; publish the one shown.";
  return { status: "missing", found, hint };
}
