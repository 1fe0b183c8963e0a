// DMARC policy records (RFC 9989 §4.7, §4.10), those of RFC 7489 included: read, and found by the tree walk. At most eight
// questions for a name. Reporting addresses are read only as far as the choice of the policy needs them.
import type { Answer, LookUps } from "./look-ups.ts";

export type Policy = "none" | "quarantine" | "reject";

export type DmarcRecord = {
  /** Null: the record takes no part in DMARC (no valid policy, and nowhere to report to). */
  policies: { p: Policy; sp: Policy | null; np: Policy | null } | null;
  strict_dkim: boolean;
  strict_spf: boolean;
  psd: "y" | "n" | null;
  /** `t=y`: apply the next weaker policy. */
  testing: boolean;
};

export type FoundRecord = { domain: string; record: DmarcRecord };

/** Records from the longest name to the shortest; `failed` when a question had no answer, which ends the walk. */
export type Walk = { found: FoundRecord[]; failed: string | null };

const tagsMax = 100;
const labelsMax = 7;
// Exact, but for the white space that the grammar allows.
const version = /^[vV][ \t]*=[ \t]*DMARC1[ \t]*(?:;|$)/;
const reportingUri = /^[a-z][a-z0-9+.-]*:[^\s,!]*(?:![0-9]+[kmgt]?)?$/i;

/** Reads a TXT record; null when it is none of DMARC's. Parts with errors are passed over (§4.7). */
export function parseDmarcRecord(text: string): DmarcRecord | null {
  if (!version.test(text)) return null;
  const tags = new Map<string, string>();
  for (const part of text.split(";", tagsMax)) {
    const equals = part.indexOf("=");
    const name = part.slice(0, Math.max(equals, 0)).trim().toLowerCase();
    // Deliberate: of a tag that stands twice the first counts. By RFC 6376 §3.2 the whole record would be void, and a
    // domain that asks for rejection and lists two rua= would be left without protection.
    if (/^[a-z]+$/.test(name) && !tags.has(name)) tags.set(name, part.slice(equals + 1).trim());
  }
  const flag = (name: string) => (tags.get(name) ?? "").toLowerCase();
  const psd = flag("psd");
  return {
    policies: readPolicies(tags),
    strict_dkim: flag("adkim") === "s",
    strict_spf: flag("aspf") === "s",
    psd: psd === "y" || psd === "n" ? psd : null,
    // RFC 9989 has no pct=; RFC 7489's pct=0 asked for exactly what t=y asks for now (§A.6).
    testing: tags.has("t") ? flag("t") === "y" : /^0+$/.test(flag("pct")),
  };
}

// §4.10.1: without a valid p=, or with a wrong sp= or np=, a record that names a place for reports counts as p=none.
function readPolicies(tags: Map<string, string>): DmarcRecord["policies"] {
  const [p, sp, np] = ["p", "sp", "np"].map((name) => tags.get(name)?.toLowerCase());
  const isWrong = (value: string | undefined) => value !== undefined && !isPolicy(value);
  if (isPolicy(p) && !isWrong(sp) && !isWrong(np))
    return { p, sp: isPolicy(sp) ? sp : null, np: isPolicy(np) ? np : null };
  const reports = (tags.get("rua") ?? "").split(",").some((uri) => reportingUri.test(uri.trim()));
  return reports ? { p: "none", sp: null, np: null } : null;
}

function isPolicy(text: string | undefined): text is Policy {
  return text === "none" || text === "quarantine" || text === "reject";
}

/** The tree walk (§4.10) from a name to the root, ended by a record with psd=. */
export async function walkTree(domain: string, lookUps: LookUps): Promise<Walk> {
  const walk: Walk = { found: [], failed: null };
  let labels = domain.split(".");
  while (labels.length > 0) {
    const name = labels.join(".");
    const answer = await recordAt(name, lookUps);
    if (answer.kind === "failed") return { ...walk, failed: answer.reason };
    if (answer.kind === "found") {
      walk.found.push({ domain: name, record: answer.records[0]! });
      if (answer.records[0]!.psd !== null) return walk;
    }
    labels = labels.length > labelsMax ? labels.slice(-labelsMax) : labels.slice(1);
  }
  return walk;
}

// Several records are as good as none (§4.10 steps 2 and 6).
async function recordAt(name: string, lookUps: LookUps): Promise<Answer<DmarcRecord>> {
  if (name.length > 253 - "_dmarc.".length) return { kind: "absent", reason: "nxdomain" };
  const answer = await lookUps.txt(`_dmarc.${name}`);
  if (answer.kind !== "found") return answer;
  const records = answer.records.map(parseDmarcRecord).filter((record) => record !== null);
  return records.length === 1 ? { kind: "found", records } : { kind: "absent", reason: "nodata" };
}

/** The organizational domain (§4.10.2) that a walk from this name has shown. */
export function organizationalDomain(domain: string, found: FoundRecord[]): string {
  for (const { domain: owner, record } of found) {
    if (record.psd === "n") return owner;
    if (record.psd === "y" && owner !== domain) {
      const labels = owner.split(".").length + 1;
      return domain.split(".").slice(-labels).join(".");
    }
  }
  return found.at(-1)?.domain ?? domain;
}
