// MTA-STS (RFC 8461) as text: the DNS record that announces a policy, the policy itself, and which mail servers it names.
// Not here: asking for either, keeping them, and what follows from them (outbound/route/sts.ts, outbound/route/tls-policy.ts).

export const STS_MODES = ["enforce", "testing", "none"] as const;
export type StsMode = (typeof STS_MODES)[number];

/** `mx`: host names and `*.` patterns, lower case; none with mode `none`. */
export type StsPolicy = { mode: StsMode; mx: string[]; max_age_s: number };

/** `none`: the domain announces no policy. `invalid`: it tried to; RFC 8461 §3.1 takes that for none. */
export type StsRecord = { kind: "found"; id: string } | { kind: "none" } | { kind: "invalid"; reason: string };

export type StsPolicyRead = { policy: StsPolicy } | { defect: string };

export const STS_POLICY_BYTES_MAX = 64 * 1024;
/** RFC 8461 §3.2: a year; a longer time counts as a year. */
const MAX_AGE_S_MAX = 31_557_600;
const MX_MAX = 1_000;
const RECORD_LENGTH_MAX = 4_096;
const VERSION = /^v=STSv1(?=[ \t]*;)/;
const FIELD = /^([a-z0-9][a-z0-9_.-]{0,31})[ \t]*=[ \t]*([\x21-\x3a\x3c\x3e-\x7e]+)$/i;
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** Reads the TXT records of `_mta-sts.<domain>`; those of other versions do not count (RFC 8461 §3.1). */
export function readStsRecord(texts: string[]): StsRecord {
  const records = texts.filter((text) => text.length <= RECORD_LENGTH_MAX && VERSION.test(text));
  const [record] = records;
  if (record === undefined) return { kind: "none" };
  if (records.length > 1) return { kind: "invalid", reason: `${records.length} records instead of one` };
  const ids = record
    .split(";")
    .slice(1)
    .map((field) => FIELD.exec(field.trim()))
    .flatMap((match) => (match?.[1]?.toLowerCase() === "id" ? [match[2] ?? ""] : []));
  const [id = ""] = ids;
  if (!/^[a-z0-9]{1,32}$/i.test(id)) return { kind: "invalid", reason: "no id of 1 to 32 letters and digits" };
  return { kind: "found", id };
}

/**
 * Reads a policy. Unknown keys are ignored, of a key given twice the first counts (RFC 8461 §3.2), except `mx`, which
 * lists. A policy that cannot be applied as it stands is a defect as a whole.
 */
export function readStsPolicy(text: string): StsPolicyRead {
  if (text.length > STS_POLICY_BYTES_MAX) return { defect: "the policy is too long" };
  const { first, mx } = readLines(text);
  if (first.get("version") !== "STSv1") return { defect: "the policy has no 'version: STSv1'" };
  const mode = STS_MODES.find((word) => word === first.get("mode"));
  if (!mode) return { defect: "the policy's mode is not enforce, testing or none" };
  const age = first.get("max_age") ?? "";
  if (!/^[0-9]{1,10}$/.test(age)) return { defect: "the policy's max_age is not a number of seconds" };
  const max_age_s = Math.min(Number(age), MAX_AGE_S_MAX);
  if (mode === "none") return { policy: { mode, mx: [], max_age_s } };
  if (mx.length === 0) return { defect: "the policy names no mail server (mx)" };
  if (mx.length > MX_MAX) return { defect: `the policy names more than ${MX_MAX} mail servers` };
  const patterns = mx.map(readPattern);
  const bad = patterns.indexOf(null);
  if (bad >= 0) return { defect: `the policy's mx number ${bad + 1} is not a host name` };
  return { policy: { mode, mx: [...new Set(patterns as string[])], max_age_s } };
}

function readLines(text: string): { first: Map<string, string>; mx: string[] } {
  const first = new Map<string, string>();
  const mx: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon < 1) continue;
    const key = line.slice(0, colon).trim();
    const value = line.slice(colon + 1).trim();
    if (key === "mx") mx.push(value);
    else if (!first.has(key)) first.set(key, value);
  }
  return { first, mx };
}

/** A name or `*.` before a name; null for anything else. */
function readPattern(text: string): string | null {
  const pattern = text.toLowerCase().replace(/\.$/, "");
  const name = pattern.startsWith("*.") ? pattern.slice(2) : pattern;
  const isName = name.length <= 253 && name.split(".").every((label) => LABEL.test(label));
  return isName ? pattern : null;
}

/** True if the policy names this mail server. A `*` stands for exactly one label, the leftmost (RFC 8461 §4.1). */
export function stsNamesMx(policy: Pick<StsPolicy, "mx">, host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, "");
  const dot = name.indexOf(".");
  const wildcard = dot > 0 ? `*${name.slice(dot)}` : null;
  return policy.mx.some((pattern) => pattern === name || pattern === wildcard);
}
