// Amazon SES tells of bounces and complaints by mails that hold one JSON object (SNS to an e-mail address): "Amazon SES
// notification contents". Reads both kinds into plain values; anything else is null. Trusts no field's type.

import type { DsnAction, Finding, ReturnedHeader } from "./types.ts";

export type SesNotification = {
  kind: "bounce" | "complaint" | "delivery";
  findings: Finding[];
  feedback_type: string | null;
  user_agent: string | null;
  arrival_date: string | null;
  reporting_mta: string | null;
  mail_from: string | null;
  headers: ReturnedHeader[];
};

const recipientsMax = 500;
const headersMax = 200;

type Json = { [name: string]: unknown };

/** The notification in a text, null when it holds none. SNS folds long lines: a line end and a space are no content. */
export function readSesNotification(text: string): SesNotification | null {
  const start = text.indexOf("{");
  if (start === -1 || !/"(?:notificationType|eventType)"\s*:/.test(text.slice(start, start + 200))) return null;
  const end = text.lastIndexOf("}");
  const root = parseObject(text.slice(start, end + 1)) ?? parseObject(text.slice(start, end + 1).replace(/\n ?/g, ""));
  const kind = word(root?.notificationType ?? root?.eventType)?.toLowerCase();
  if (root === null || (kind !== "bounce" && kind !== "complaint" && kind !== "delivery")) return null;
  const event = object(root[kind]);
  const mail = object(root.mail);
  return {
    kind,
    findings: recipientsOf(event, kind),
    feedback_type: word(event.complaintFeedbackType),
    user_agent: word(event.userAgent),
    arrival_date: word(mail.timestamp) ?? word(event.timestamp),
    reporting_mta: word(event.reportingMTA)?.replace(/^dns;\s*/i, "") ?? null,
    mail_from: word(mail.source),
    headers: headersOf(mail),
  };
}

function parseObject(text: string): Json | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    // Not JSON: then it is no notification.
    return null;
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function object(value: unknown): Json {
  return isObject(value) ? value : {};
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function word(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value.slice(0, 1_000) : null;
}

function recipientsOf(event: Json, kind: string): Finding[] {
  const bounced = [...list(event.bouncedRecipients), ...list(event.complainedRecipients), ...list(event.recipients)];
  return bounced.slice(0, recipientsMax).map((entry) => recipient(object(entry), word(entry), event, kind));
}

function recipient(entry: Json, address: string | null, event: Json, kind: string): Finding {
  const said = /^[245]\.\d{1,3}\.\d{1,3}$/.exec(word(entry.status) ?? "")?.[0] ?? null;
  // SES saw the whole dialogue: what it calls transient is no verdict on the address, whatever status stands beside it.
  const status = /^transient$/i.test(word(event.bounceType) ?? "") && said?.startsWith("5.1.") ? null : said;
  const reason = [word(event.bounceType), word(event.bounceSubType)].filter((text) => text !== null).join(" ");
  const diagnostic = (word(entry.diagnosticCode) ?? word(event.smtpResponse) ?? "").replace(
    /^\s*[a-z-]{1,30}\s*;\s*/i,
    "",
  );
  return {
    email: word(entry.emailAddress) ?? address,
    original: null,
    action: actionOf(word(entry.action), kind),
    status,
    diagnostic,
    isAboutAddress: false,
    isExpanded: false,
    text: reason,
  };
}

function actionOf(action: string | null, kind: string): DsnAction {
  if (kind === "delivery") return "delivered";
  return action?.toLowerCase() === "delayed" ? "delayed" : "failed";
}

function headersOf(mail: Json): ReturnedHeader[] {
  const headers: ReturnedHeader[] = [];
  for (const entry of list(mail.headers).slice(0, headersMax)) {
    const { name, value } = object(entry);
    if (typeof name === "string" && typeof value === "string") {
      headers.push({ name: name.slice(0, 200), value: value.slice(0, 4_000) });
    }
  }
  return headers;
}
