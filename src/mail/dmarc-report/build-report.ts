// Makes a report out of its leaves (RFC 7489 Appendix C, RFC 9990 §3; drafts before them). A record whose numbers or
// address make no sense is left out and counted; a report without its identity is refused.
import { anyOf } from "../any-of.ts";
import type { AggregateReport, DkimAuth, PublishedPolicy, ReportRecord, SpfAuth } from "./types.ts";
import { DISPOSITIONS, POLICIES } from "./types.ts";
import * as values from "./values.ts";
import type { LeafHandler } from "./xml-leaves.ts";

/** A record with all that the schemas demand has 290 characters: this is more than 100 MiB of them. */
export const RECORDS_MAX = 400_000;
/** RFC 7489 knows days; some reporters collect weeks. Longer spans cannot be put on days. */
const SPAN_S_MAX = 32 * 86_400;
const REASONS_MAX = 10;
const DKIM_RESULTS_MAX = 20;
const SPF_RESULTS_MAX = 5;
const ERRORS_MAX = 20;
const TEXT_MAX = 255;
/** What a report's records are reckoned to take in memory; the densest that 100 MiB can hold stay below. */
const KEPT_BYTES_MAX = 256 * 1024 * 1024;
const RECORD_BYTES = 250;
const GROUP_BYTES = 100;
/** Distinct texts that are kept once for all records; the rest are kept as often as they come. */
const SHARED_MAX = 50_000;

type Leaves = Map<string, string>;
type Draft = {
  leaves: Leaves;
  errors: string[];
  record: RecordDraft | null;
  records: ReportRecord[];
  rejected: Map<string, number>;
  kept_bytes: number;
  shared: Map<string, string>;
};
type RecordDraft = { leaves: Leaves; reasons: Leaves[]; dkim: Leaves[]; spf: Leaves[] };

const RECORD = "record";
const GROUPS = new Map<string, "reasons" | "dkim" | "spf">([
  ["record/row/policy_evaluated/reason", "reasons"],
  ["record/auth_results/dkim", "dkim"],
  ["record/auth_results/spf", "spf"],
]);
const GROUP_MAX = { reasons: REASONS_MAX, dkim: DKIM_RESULTS_MAX, spf: SPF_RESULTS_MAX };
/** Everything a report is read for; other elements (extensions) are passed over. */
const KNOWN = new RegExp(
  `^(?:${anyOf([
    /version/,
    /report_metadata\/(?:org_name|email|extra_contact_info|report_id|generator|error|date_range\/(?:begin|end))/,
    /policy_published\/\w{1,20}/,
    /record\/row\/(?:source_ip|count|policy_evaluated\/(?:disposition|dkim|spf))/,
    /record\/(?:identifiers|identities)\/(?:header_from|envelope_from|envelope_to)/,
  ])})$`,
);

export type ReportBuilder = LeafHandler & {
  /** The report, or why it is none. */
  finish(seen: { namespace: string; defects: number }): AggregateReport | string;
};

/** A builder for one report. */
export function createReportBuilder(): ReportBuilder {
  const draft: Draft = {
    ...{ leaves: new Map(), errors: [], record: null },
    ...{ records: [], rejected: new Map(), kept_bytes: 0, shared: new Map() },
  };
  return {
    open: (path) => open(draft, path),
    close: (path, text) => close(draft, path, text),
    records: () => draft.records.length,
    finish: (seen) => finish(draft, seen),
  };
}

function open(draft: Draft, path: string): string | null {
  if (path === RECORD) {
    if (draft.records.length + total(draft.rejected) >= RECORDS_MAX)
      return `the report holds more than ${RECORDS_MAX} records`;
    draft.record = { leaves: new Map(), reasons: [], dkim: [], spf: [] };
  }
  const group = GROUPS.get(path);
  if (group && draft.record) {
    const list = draft.record[group];
    if (list.length < GROUP_MAX[group]) list.push(new Map());
    else draft.record[group] = [...list.slice(0, -1), new Map()];
  }
  return null;
}

function close(draft: Draft, path: string, text: string): string | null {
  if (path === RECORD) {
    takeRecord(draft);
    return draft.kept_bytes > KEPT_BYTES_MAX ? "the report holds too much" : null;
  }
  if (text === "") return null;
  const leaves = leavesFor(draft, path);
  if (!leaves) return null;
  if (path === "report_metadata/error") {
    if (draft.errors.length < ERRORS_MAX) draft.errors.push(values.readText(text, TEXT_MAX) ?? "");
  } else leaves.set(path.slice(path.lastIndexOf("/") + 1), text);
  return null;
}

/** Names repeat in different places (domain, result), so each group has leaves of its own. */
function leavesFor(draft: Draft, path: string): Leaves | null {
  const group = GROUPS.get(path.slice(0, path.lastIndexOf("/")));
  if (group) return draft.record?.[group].at(-1) ?? null;
  if (!KNOWN.test(path)) return null;
  if (!path.startsWith("record/")) return draft.leaves;
  return draft.record?.leaves ?? null;
}

function total(counts: Map<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

// --- records ------------------------------------------------------------------------------------------------------------

function takeRecord(draft: Draft): void {
  if (!draft.record) return;
  const { record } = draft;
  draft.record = null;
  const source_ip = values.readIp(record.leaves.get("source_ip") ?? "");
  const count = values.readCount(record.leaves.get("count") ?? "");
  if (source_ip === null) reject(draft, "has no valid source_ip");
  else if (count === null) reject(draft, "has no valid count");
  else draft.records.push(toRecord(draft, record, { source_ip, count }));
}

function reject(draft: Draft, why: string): void {
  draft.rejected.set(why, (draft.rejected.get(why) ?? 0) + 1);
}

type Numbers = Pick<ReportRecord, "source_ip" | "count">;

function toRecord(draft: Draft, { leaves, reasons, dkim, spf }: RecordDraft, numbers: Numbers): ReportRecord {
  const keep = <T extends string | null>(text: T) => share(draft, text);
  const kept = <T>(groups: T[]): T[] => {
    draft.kept_bytes += GROUP_BYTES * groups.length;
    return groups.length === 0 ? NONE : groups;
  };
  draft.kept_bytes += RECORD_BYTES;
  const passed = (name: string) => (leaves.get(name)?.toLowerCase() === "pass" ? "pass" : "fail");
  return {
    ...numbers,
    disposition: values.readWord(DISPOSITIONS, leaves.get("disposition")) ?? "none",
    dkim: passed("dkim"),
    spf: passed("spf"),
    reasons: kept(reasons.flatMap((reason) => toReason(reason, keep))),
    header_from: keep(values.readName(leaves.get("header_from"))),
    envelope_from: keep(values.readName(leaves.get("envelope_from"))),
    envelope_to: keep(values.readName(leaves.get("envelope_to"))),
    dkim_results: kept(dkim.flatMap((auth) => toDkimAuth(auth, keep))),
    spf_results: kept(spf.flatMap((auth) => toSpfAuth(auth, keep))),
  };
}

type Keep = <T extends string | null>(text: T) => T;

/** One text for all that say the same; a copy, because a piece of a string keeps all of it in memory. */
function share<T extends string | null>(draft: Draft, text: T): T {
  if (text === null) return text;
  const known = draft.shared.get(text);
  if (known !== undefined) return known as T;
  draft.kept_bytes += text.length * 2;
  const copy = Buffer.from(text).toString();
  if (draft.shared.size < SHARED_MAX) draft.shared.set(copy, copy);
  return copy as T;
}

const NONE: never[] = [];

function toReason(leaves: Leaves, keep: Keep): ReportRecord["reasons"] {
  const type = values.readText(leaves.get("type"));
  const comment = keep(values.readText(leaves.get("comment"), TEXT_MAX));
  return type || comment ? [{ type: keep((type ?? "other").toLowerCase()), comment }] : [];
}

function toDkimAuth(leaves: Leaves, keep: Keep): DkimAuth[] {
  const domain = keep(values.readName(leaves.get("domain")));
  if (domain === null) return [];
  const selector = keep(values.readName(leaves.get("selector")));
  const human_result = keep(values.readText(leaves.get("human_result"), TEXT_MAX));
  return [{ domain, selector, result: keep(values.readResult(leaves.get("result"))), human_result }];
}

function toSpfAuth(leaves: Leaves, keep: Keep): SpfAuth[] {
  const domain = keep(values.readName(leaves.get("domain")));
  if (domain === null) return [];
  const scope = values.readWord(["mfrom", "helo"], leaves.get("scope"));
  const human_result = keep(values.readText(leaves.get("human_result"), TEXT_MAX));
  return [{ domain, scope, result: keep(values.readResult(leaves.get("result"))), human_result }];
}

// --- the whole ----------------------------------------------------------------------------------------------------------

function finish(draft: Draft, seen: { namespace: string; defects: number }): AggregateReport | string {
  const { leaves } = draft;
  const domain = values.readDomain(leaves.get("domain") ?? "");
  if (domain === null) return "the report does not name the domain of the policy";
  const report_id = values.readText((leaves.get("report_id") ?? "").replace(/^<(.*)>$/, "$1"), TEXT_MAX);
  if (report_id === null) return "the report has no report_id";
  const begin_s = values.readTime(leaves.get("begin") ?? "");
  const end_s = values.readTime(leaves.get("end") ?? "");
  if (begin_s === null || end_s === null) return "the report's date_range cannot be read";
  if (end_s < begin_s || end_s - begin_s > SPAN_S_MAX) return "the report's date_range is not a span of up to 32 days";
  const email = values.readText(leaves.get("email"), TEXT_MAX);
  const policy = toPolicy(leaves, domain);
  return {
    schema: isNewSchema(leaves, policy, seen.namespace) ? "rfc9990" : "rfc7489",
    org_name: values.readText(leaves.get("org_name"), TEXT_MAX) ?? email?.split("@").at(-1) ?? "unknown",
    email,
    extra_contact_info: values.readText(leaves.get("extra_contact_info"), TEXT_MAX),
    report_id,
    generator: values.readText(leaves.get("generator"), TEXT_MAX),
    errors: draft.errors,
    begin_s,
    end_s,
    policy,
    records: draft.records,
    rejected_records: total(draft.rejected),
    defects: defectsOf(draft, seen.defects),
  };
}

function toPolicy(leaves: Leaves, domain: string): PublishedPolicy {
  const policy = (name: string) => values.readWord(POLICIES, leaves.get(name));
  const mode = (name: string) => values.readWord(["r", "s"], leaves.get(name));
  const testing = values.readWord(["y", "n"], leaves.get("testing"));
  return {
    domain,
    p: policy("p"),
    sp: policy("sp"),
    np: policy("np"),
    adkim: mode("adkim"),
    aspf: mode("aspf"),
    pct: values.readPercent(leaves.get("pct")),
    fo: values.readText(leaves.get("fo")),
    testing: testing === null ? null : testing === "y",
    discovery_method: values.readWord(["psl", "treewalk"], leaves.get("discovery_method")),
  };
}

/** RFC 9990 has a namespace of its own; the version element and the new fields tell where it was left out. */
function isNewSchema(leaves: Leaves, policy: PublishedPolicy, namespace: string): boolean {
  if (namespace.toLowerCase().includes("dmarc-2.0")) return true;
  if (/^2(?:\.|$)/.test(leaves.get("version") ?? "")) return true;
  return policy.discovery_method !== null || policy.testing !== null || leaves.has("generator");
}

function defectsOf(draft: Draft, badlyFormed: number): string[] {
  const defects = [...draft.rejected].map(([why, count]) => `left out ${count} of the records: each ${why}`);
  if (badlyFormed > 0) defects.push(`the XML is badly formed in ${badlyFormed} places`);
  return defects;
}
