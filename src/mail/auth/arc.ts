// ARC chains of received messages (RFC 8617 §5.2): read and verified, never trusted by themselves. The result "temperror"
// is ours, for keys that could not be asked for; the RFC knows only none, pass and fail. Seals nothing.
import { canonicalizeHeader, type HeaderField } from "../dkim/canonicalize.ts";
import { withoutLineEnd } from "./dkim.ts";
import type { LookUps } from "./look-ups.ts";
import { fieldText, type KeyType, readAlgorithm, readNames, readSignature, type Signature } from "./signature.ts";
import { findKeys } from "./signing-key.ts";
import { colonList, parseTagList, withoutFws, withoutSignature } from "./tag-list.ts";
import { isSigned, type Verification, verifySignature } from "./verify-signature.ts";

/**
 * `instances`: how many sets there are. `sealers`: their domains, the oldest first. `vouched_domain`: the author's domain for
 * which the oldest says that DMARC passed, of a chain that passes.
 */
export type ArcVerdict = {
  result: "none" | "pass" | "fail" | "temperror";
  reason: string;
  instances: number;
  sealers: string[];
  vouched_domain?: string;
};

type Seal = { domain: string; selector: string; key_type: KeyType; value: Buffer; cv: string };
type ArcSet = { results: Buffer; message: Buffer; seal: Buffer; parsed_seal: Seal };
/** A chain that may be verified: its sets in order, and the message signature of the newest in each way it may be meant. */
export type ArcChain = { sets: ArcSet[]; newest: Signature[] };

const instancesMax = 50;
const fieldsMax = 3 * instancesMax;
const kinds = new Map<string, "results" | "message" | "seal">([
  ["arc-authentication-results", "results"],
  ["arc-message-signature", "message"],
  ["arc-seal", "seal"],
]);
// §4.1.1: the instance comes first, comments may stand around.
const instanceOfResults =
  /^(?:\s|\([^()\\]*\))*i(?:\s|\([^()\\]*\))*=(?:\s|\([^()\\]*\))*(\d{1,2})(?:\s|\([^()\\]*\))*;/;

/** Steps 1 to 3: the chain, null when there is none, or why it fails. */
export function readArcChain(fields: HeaderField[]): ArcChain | ArcVerdict | null {
  const found = collect(fields);
  if (found === null) return null;
  if (typeof found === "string") return failed(found);
  const sets: ArcSet[] = [];
  for (let instance = 1; instance <= found.size; instance++) {
    const set = found.get(instance);
    if (!set?.results || !set.message || !set.seal) return failed(`instance ${instance} is not complete`);
    const seal = readSeal(set.seal);
    if (typeof seal === "string") return failed(`seal ${instance}: ${seal}`);
    // §5.2 steps 2 and 3
    if (seal.cv !== (instance === 1 ? "none" : "pass")) return failed(`seal ${instance}: cv=${seal.cv}`);
    sets.push({ results: set.results, message: set.message, seal: set.seal, parsed_seal: seal });
  }
  // Only the newest message signature has to hold: the older ones were broken by what later hosts did.
  const newest = readMessageSignature(sets.at(-1)!.message);
  return typeof newest === "string" ? failed(`message signature ${sets.length}: ${newest}`) : { sets, newest };
}

function failed(reason: string): ArcVerdict {
  return { result: "fail", reason, instances: 0, sealers: [] };
}

type Collected = Map<number, Partial<Record<"results" | "message" | "seal", Buffer>>>;

function collect(fields: HeaderField[]): Collected | string | null {
  const sets: Collected = new Map();
  let count = 0;
  for (const { name, bytes } of fields) {
    const kind = kinds.get(name.toLowerCase());
    if (!kind) continue;
    count += 1;
    if (count > fieldsMax) return `more than ${instancesMax} instances`;
    const field = withoutLineEnd(bytes);
    const instance = readInstance(kind, fieldText(field));
    if (instance === null || instance < 1 || instance > instancesMax) return `${name} without an instance`;
    const set = sets.get(instance) ?? {};
    if (set[kind]) return `instance ${instance} stands twice`;
    sets.set(instance, { ...set, [kind]: field });
  }
  return count === 0 ? null : sets;
}

function readInstance(kind: "results" | "message" | "seal", text: string): number | null {
  if (kind === "results") {
    const match = instanceOfResults.exec(text.slice(0, 1_000));
    return match && Number(match[1]);
  }
  const value = parseTagList(text)?.get("i") ?? "";
  return /^\d{1,2}$/.test(value) ? Number(value) : null;
}

// §4.1.3
function readSeal(field: Buffer): Seal | string {
  const tags = parseTagList(fieldText(field));
  if (tags === null) return "syntax error";
  if (tags.has("h")) return "h= is not allowed";
  const keyType = readAlgorithm(tags.get("a") ?? "");
  if (keyType === null || keyType === "sha1") return "unknown algorithm";
  const names = readNames(tags);
  if (names === null) return "d= or s= is not a domain name";
  const value = withoutFws(tags.get("b") ?? "");
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(value)) return "b= is not base64";
  if (tags.has("t") && !/^\d{1,12}$/.test(tags.get("t")!)) return "syntax error in t=";
  const cv = (tags.get("cv") ?? "").toLowerCase();
  return { ...names, key_type: keyType, value: Buffer.from(value, "base64"), cv };
}

// §4.1.2: as a DKIM signature, without v=, with the instance as i=; it must not sign seals. Deliberate: without c= it may
// also be meant as relaxed/relaxed, which the drafts of ARC and their signers took for the default, and the published suite.
function readMessageSignature(field: Buffer): Signature[] | string {
  const tags = parseTagList(fieldText(field));
  if (tags === null) return "syntax error";
  const signature = readSignature(field, tags);
  if ("defect" in signature) return signature.defect;
  if (colonList(tags.get("h")!).includes("arc-seal")) return "it signs a seal";
  return tags.has("c") ? [signature] : [signature, { ...signature, header_mode: "relaxed", body_mode: "relaxed" }];
}

/** Steps 4 to 6: verifies the newest message signature and every seal, the newest first. */
export async function verifyArc(chain: ArcChain, given: Verification): Promise<ArcVerdict> {
  const { sets } = chain;
  const about = { instances: sets.length, sealers: sets.map((set) => set.parsed_seal.domain) };
  const outcomes = await Promise.all(chain.newest.map((signature) => verifySignature(signature, given)));
  const ending = (wanted: string) => outcomes.find(({ result }) => result === wanted);
  const message = ending("pass") ?? ending("temperror") ?? outcomes[0]!;
  if (message.result !== "pass") {
    const result = message.result === "temperror" ? "temperror" : "fail";
    return { ...about, result, reason: `message signature ${sets.length}: ${message.reason}` };
  }
  // All keys at once: the look-ups remember the answers.
  await Promise.all(sets.map((set) => findKeys(set.parsed_seal, given.look_ups)));
  for (let instance = sets.length; instance >= 1; instance--) {
    const problem = await sealProblem(sets.slice(0, instance), given.look_ups);
    if (problem) return { ...about, result: problem.result, reason: `seal ${instance}: ${problem.reason}` };
  }
  const vouched = vouchedDomain(fieldText((sets[0] as ArcSet).results));
  return { ...about, result: "pass", reason: "", ...(vouched === null ? {} : { vouched_domain: vouched }) };
}

const vouchedCharsMax = 20_000;

/** What a field of results says of DMARC: the author's domain where it says once that it passed. */
export function vouchedDomain(text: string): string | null {
  const plain = text
    .slice(0, vouchedCharsMax)
    .replace(/"(?:[^"\\]|\\.)*"/g, "")
    .replace(/\([^()]*\)/g, " ");
  // What is left of a comment or a string that does not end: nobody knows where it would have ended.
  if (/[()"]/.test(plain)) return null;
  const said = plain.split(";").filter((one) => /^\s*dmarc\s*=/i.test(one));
  if (said.length !== 1 || /header\.from.*header\.from/is.test(said[0] as string)) return null;
  const [, domain] =
    /^\s*dmarc\s*=\s*pass\s(?:.*\s)?header\.from\s*=\s*([a-z0-9._-]{1,253})\s*$/is.exec(`${said[0]}`) ?? [];
  return domain?.toLowerCase() ?? null;
}

type SealProblem = { result: "fail" | "temperror"; reason: string };

// §5.1.1: a seal signs all sets up to its own, in order, and itself without its value; always relaxed.
async function sealProblem(sets: ArcSet[], lookUps: LookUps): Promise<SealProblem | null> {
  const own = sets.at(-1)!;
  const keys = await findKeys(own.parsed_seal, lookUps);
  if ("problem" in keys) return { result: keys.result === "temperror" ? "temperror" : "fail", reason: keys.problem };
  const parts = sets.flatMap((set) => [set.results, set.message, set === own ? withoutSignature(set.seal) : set.seal]);
  const bytes = Buffer.concat(parts.map((part) => canonicalizeHeader(part, "relaxed")));
  const { key_type, value } = own.parsed_seal;
  const input = bytes.subarray(0, -2);
  const isValid = keys.some(({ key }) => isSigned(key, key_type, { input, value }));
  return isValid ? null : { result: "fail", reason: "the signature did not verify" };
}
