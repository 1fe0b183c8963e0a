// SMTP TLS reports (RFC 8460 §4.4): the JSON as a value with known fields, or why it is none. Unknown fields are passed
// over; texts and lists are bounded. Unpacking is dmarc-report/unpack.ts; writing reports is write-report.ts.
import { readDomain, readIp, readText } from "../dmarc-report/values.ts";

export const TLS_REPORT_BYTES_MAX: number = 5 * 1024 * 1024;
const DEPTH_MAX = 16;
/** Brackets and commas: a failure has 10, so that is 5,000 failures. */
const VALUES_MAX = 50_000;
const POLICIES_MAX = 100;
const FAILURES_MAX = 500;
const STRINGS_MAX = 50;
const TEXT_MAX = 512;
const SESSIONS_MAX = 2 ** 40;
const SPAN_MS_MAX = 32 * 86_400_000;

export type TlsFailure = {
  result_type: string;
  sending_mta_ip: string | null;
  receiving_ip: string | null;
  receiving_mx_hostname: string | null;
  receiving_mx_helo: string | null;
  failed_session_count: number;
  additional_information: string | null;
  failure_reason_code: string | null;
};
export type TlsPolicy = {
  policy_type: string;
  policy_domain: string | null;
  policy_string: string[];
  mx_host: string[];
  total_successful_session_count: number;
  total_failure_session_count: number;
  failure_details: TlsFailure[];
};
export type TlsReport = {
  organization_name: string;
  contact_info: string | null;
  report_id: string;
  begin_ms: number;
  end_ms: number;
  policies: TlsPolicy[];
};

type Fields = Map<string, unknown>;

/** Reads the JSON of a report; a text says why it is none. */
export function parseTlsReport(text: string): TlsReport | string {
  if (isTooMuch(text)) return "the TLS report holds too much";
  const fields = parseObject(text);
  if (fields === null) return "this is not JSON";
  const policies = fields.get("policies");
  const report_id = readText(asText(fields.get("report-id")), TEXT_MAX);
  if (!Array.isArray(policies) || report_id === null) return "this JSON is no SMTP TLS report (RFC 8460)";
  const range = toFields(fields.get("date-range"));
  const begin_ms = readMoment(range.get("start-datetime"));
  const end_ms = readMoment(range.get("end-datetime"));
  if (begin_ms === null || end_ms === null || end_ms < begin_ms || end_ms - begin_ms > SPAN_MS_MAX) {
    return "the report's date-range is not a span of up to 32 days";
  }
  const contact_info = readText(asText(fields.get("contact-info")), TEXT_MAX);
  return {
    organization_name: readText(asText(fields.get("organization-name")), TEXT_MAX) ?? contact_info ?? "unknown",
    contact_info,
    report_id,
    begin_ms,
    end_ms,
    policies: policies.slice(0, POLICIES_MAX).map(toPolicy),
  };
}

function parseObject(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text.replace(/^\ufeff/, ""));
    return isObject(value) ? toFields(value) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/**
 * JSON.parse makes all of what it is given before anything can be said about it: 5 MiB of `{},` hold up the process for
 * seconds. Those in texts count as well: a report that holds that many of them is not ours either.
 */
function isTooMuch(text: string): boolean {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === "}" || char === "]") depth -= 1;
    else if (char === "{" || char === "[") depth += 1;
    else if (char !== ",") continue;
    values += 1;
    if (depth > DEPTH_MAX || values > VALUES_MAX) return true;
  }
  return false;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A stranger's names are keys of a Map, never properties. */
function toFields(value: unknown): Fields {
  return new Map(isObject(value) ? Object.entries(value) : []);
}

function toPolicy(value: unknown): TlsPolicy {
  const entry = toFields(value);
  const policy = toFields(entry.get("policy"));
  const summary = toFields(entry.get("summary"));
  const details = entry.get("failure-details");
  return {
    policy_type: readText(asText(policy.get("policy-type"))) ?? "unknown",
    policy_domain: readDomain(asText(policy.get("policy-domain"))),
    policy_string: toTexts(policy.get("policy-string")),
    mx_host: toTexts(policy.get("mx-host")),
    total_successful_session_count: readSessions(summary.get("total-successful-session-count")),
    total_failure_session_count: readSessions(summary.get("total-failure-session-count")),
    failure_details: Array.isArray(details) ? details.slice(0, FAILURES_MAX).map(toFailure) : [],
  };
}

function toFailure(value: unknown): TlsFailure {
  const fields = toFields(value);
  const text = (name: string) => readText(asText(fields.get(name)), TEXT_MAX);
  return {
    result_type: text("result-type") ?? "unknown",
    sending_mta_ip: readIp(asText(fields.get("sending-mta-ip"))),
    receiving_ip: readIp(asText(fields.get("receiving-ip"))),
    receiving_mx_hostname: text("receiving-mx-hostname"),
    receiving_mx_helo: text("receiving-mx-helo"),
    failed_session_count: readSessions(fields.get("failed-session-count")),
    additional_information: text("additional-information"),
    failure_reason_code: text("failure-reason-code"),
  };
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** RFC 8460 shows mx-host as a text and as a list. */
function toTexts(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list.slice(0, STRINGS_MAX).flatMap((item) => readText(asText(item), TEXT_MAX) ?? []);
}

/** Some reporters write their numbers as texts. */
function readSessions(given: unknown): number {
  const value = typeof given === "string" && /^\d{1,13}$/.test(given) ? Number(given) : given;
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= SESSIONS_MAX ? value : 0;
}

function readMoment(value: unknown): number | null {
  const ms = /^\d{4}-\d\d-\d\d[Tt ]/.test(asText(value)) ? Date.parse(asText(value)) : Number.NaN;
  return Number.isNaN(ms) || ms < 0 ? null : ms;
}
