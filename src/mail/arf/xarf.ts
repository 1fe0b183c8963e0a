// X-ARF, the form of abuse desks such as Abusix and blocklist.de (https://xarf.org): 0.1 and 0.2 as lines of fields in a text part, 1
// to 4 as JSON. Such reports are of any abuse of an address (log-ins, scans, pages); a complaint about mail is only spam.
// Trusts no field's type; says nothing about whose mail it is.

import { partText } from "../dsn/body-text.ts";
import { firstHeader, type MailParts, type Part } from "../dsn/parts.ts";
import { type FieldGroup, fieldValue, readFieldGroups } from "../dsn/status-fields.ts";

export type XarfReport = {
  user_agent: string | null;
  source_ip: string;
  date: string | null;
  mail_from: string | null;
  rcpt_to: string | null;
  /** The mail, where the report holds it in its JSON; else it is a part of its own. */
  sample: string;
};

const jsonCharsMax = 1_024 * 1_024;
const samplesMax = 10;
const spamTypes = /^(?:spam|bulk[ _-]?messaging|unsolicited[ _-]?(?:mail|messaging))$/i;

/** The report of spam in a mail; null when it holds none. */
export function readXarf(mail: MailParts): XarfReport | null {
  const isAnnounced = ["x-xarf", "x-arf"].some((name) => firstHeader(mail.headers, name) !== "");
  for (const part of mail.parts) {
    const found = isJson(part) ? fromJson(partText(part)) : isFields(part) ? fromFields(part, isAnnounced) : null;
    if (found !== null) return found;
  }
  return null;
}

function isJson({ type, parameters }: Part): boolean {
  return type === "application/json" || /\bxarf\b.*\.json$/i.test(parameters.get("name") ?? "");
}

function isFields({ type }: Part): boolean {
  return /^(?:text\/(?:plain|x-?yaml|yaml)|application\/(?:x-)?yaml)$/.test(type);
}

function fromFields(part: Part, isAnnounced: boolean): XarfReport | null {
  const text = partText(part);
  if (!/^report-type[ \t]*:/im.test(text) || !(isAnnounced || /^schema-url[ \t]*:.*\bx-?arf\b/im.test(text)))
    return null;
  const fields: FieldGroup = new Map(readFieldGroups(text).flatMap((group) => [...group]));
  const value = (...names: string[]) => unquoted(fieldValue(fields, ...names));
  if (!spamTypes.test(value("report-type"))) return null;
  return {
    user_agent: value("user-agent") || value("reported-from") || null,
    source_ip: value("source"),
    date: value("date") || null,
    mail_from: value("mail-from", "original-mail-from") || null,
    rcpt_to: value("rcpt-to", "original-rcpt-to") || null,
    sample: "",
  };
}

function unquoted(value: string): string {
  return value.replace(/^(["'])(.*)\1$/, "$2").trim();
}

type Json = { [name: string]: unknown };

function fromJson(text: string): XarfReport | null {
  const root = parseObject(text);
  if (root === null) return null;
  const report = isObject(root.Report) ? root.Report : root;
  const reporter = [root.ReporterInfo, root.reporter].find(isObject) ?? {};
  const isVersioned = isObject(root.Report) || "xarf_version" in root;
  if (!isVersioned || !spamTypes.test(word(report, "ReportType", "type"))) return null;
  return {
    user_agent: word(reporter, "ReporterOrg", "org", "ReporterOrgDomain", "domain") || null,
    source_ip: word(report, "SourceIp", "Source", "source_identifier"),
    date: word(report, "Date", "timestamp") || null,
    mail_from: word(report, "SmtpMailFromAddress", "smtp_from") || null,
    rcpt_to: word(report, "SmtpRcptToAddress", "smtp_to") || null,
    sample: sampleIn([report.Samples, report.evidence].find(Array.isArray) ?? []),
  };
}

function sampleIn(samples: readonly unknown[]): string {
  for (const one of samples.slice(0, samplesMax).filter(isObject)) {
    if (!/^(?:message\/rfc822|text\/(?:plain|rfc822))/i.test(word(one, "ContentType", "content_type"))) continue;
    const payload = word(one, "Payload", "payload");
    const isPlain = one.Base64Encoded === false || /^[\w-]{1,60}:/.test(payload);
    return (isPlain ? payload : Buffer.from(payload, "base64").toString("latin1")).replaceAll("\r", "");
  }
  return "";
}

function parseObject(text: string): Json | null {
  if (text.length > jsonCharsMax) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    // Not JSON: then it is no report.
    return null;
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function word(from: Json, ...names: string[]): string {
  const value = names.map((name) => from[name]).find((one) => typeof one === "string" && one !== "");
  return typeof value === "string" ? value : "";
}
