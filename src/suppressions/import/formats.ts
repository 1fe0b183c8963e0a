// The lists that other providers export, recognized by their columns, and what each row of them means here. Sources: the
// providers' import and API documentation, and headings seen in public code that reads real exports. Reading bytes and
// splitting rows is elsewhere; lists of no known provider are in custom-format.ts.
import { addressColumn, type Columns, firstOf, type Get, hasAll, hasAny, hasOnly } from "./columns.ts";
import {
  blamesSender,
  diagnose,
  isYes,
  type kindOfFile,
  type Meaning,
  type Reason,
  readCodes,
  readReason,
} from "./reasons.ts";
import { ORG_SCOPE, SCOPE_ID_CHARS_MAX, type Scope } from "./scope.ts";

export const PROVIDERS = [
  "sendgrid",
  "mailgun",
  "postmark",
  "resend",
  "ses",
  "mailchimp",
  "mandrill",
  "brevo",
  "sparkpost",
  "custom",
] as const;
export type Provider = (typeof PROVIDERS)[number];

export type Accepted = {
  ok: true;
  reason: Reason;
  scopes: Scope[];
  bounce_code: string | null;
  diag_code: string | null;
  note: string | null;
  expires_at: string | null;
  /** What Postern's own export has besides, where it has something. */
  own?: OwnDetails;
};
/** `source_message_id` is a UUID, `created_at` ISO 8601 with Z. */
export type OwnDetails = { source_message_id: string | null; feedback_type: string | null; created_at: string | null };
/** `column` is the normalized name of the column at fault. */
export type Declined = { ok: false; column: string; message: string };
export type Verdict = Accepted | Declined;
export type Format = {
  provider: Provider;
  /** Normalized name of the column that holds the address. */
  email: string;
  /** Columns of yes and no whose meaning nobody knows: the one who sent the list is asked. */
  asks?: string[];
  judge(get: Get): Verdict;
};
type FileKind = ReturnType<typeof kindOfFile>;
type Recognizer = (columns: Columns, file: FileKind) => Format | null;

const NOTE_CHARS_MAX = 500;
const SCOPES_MAX = 20;
const ONE_LINE = /^[!-~]+(?: [!-~]+)*$/;

/** The format of a list with these columns, null when no provider's. `file` is what the file's name tells. */
export function recognizeFormat(columns: Columns, file: FileKind): Format | null {
  for (const recognize of RECOGNIZERS) {
    const format = recognize(columns, file);
    if (format !== null) return format;
  }
  return null;
}

// The order matters where columns are alike: the narrower description first.
const RECOGNIZERS: Recognizer[] = [
  mailchimp,
  sparkpost,
  mandrill,
  brevo,
  postmark,
  postmarkBounces,
  mailgun,
  mailgunAllowlist,
  sendgrid,
  ses,
  resendContacts,
  resend,
];

const ORG_ONLY: Scope[] = [ORG_SCOPE];

/** A row that suppresses. */
export function accept(reason: Reason, more: Partial<Omit<Accepted, "ok" | "reason">> = {}): Accepted {
  return {
    ok: true,
    reason,
    scopes: more.scopes ?? ORG_ONLY,
    bounce_code: more.bounce_code ?? null,
    diag_code: more.diag_code ?? null,
    note: more.note ?? null,
    expires_at: more.expires_at ?? null,
    ...(more.own === undefined ? {} : { own: more.own }),
  };
}

/** A row that does not, with the reason why for people. */
export function decline(column: string, message: string): Declined {
  return { ok: false, column, message };
}

/** Text for the note: one line, no controls, at most 500 characters, none of them cut in two. */
export function noteOf(text: string): string | null {
  const line = ONE_LINE.test(text) ? text : text.replace(/[\s\p{Cc}]+/gu, " ").trim();
  return line === "" ? null : line.slice(0, NOTE_CHARS_MAX).toWellFormed();
}

/** The verdict on a meaning: suppressing ones are accepted, the others declined in words. */
export function verdictOn(
  meaning: Meaning,
  column: string,
  more: Partial<Omit<Accepted, "ok" | "reason">> = {},
): Verdict {
  if (meaning === "temporary") return decline(column, "is a temporary failure, which does not suppress");
  if (meaning === "policy")
    return decline(column, "is about the sender or the content, which does not suppress the recipient");
  if (meaning === "none") return decline(column, "says that the address is not suppressed");
  return accept(meaning, more);
}

/** The verdict on a column with the provider's fixed vocabulary: an empty or unknown word is declined, not guessed. */
function byWord(get: Get, column: string, more: Partial<Omit<Accepted, "ok" | "reason">> = {}): Verdict {
  const word = get(column);
  if (word === "") return decline(column, "gives no reason");
  const meaning = readReason(word);
  return meaning === null ? decline(column, "is not a reason that we know") : verdictOn(meaning, column, more);
}

// SendGrid: Bounces and Blocks `status,reason,email,created`, Invalid Emails `reason,email,created`, Spam Reports
// `email,ip,created`, Unsubscribes `email,created`; the API has the same fields, and group_id, group_name for groups.
function sendgrid(columns: Columns, file: FileKind): Format | null {
  const fields = ["email", "created", "createdat", "status", "reason", "ip", "groupid", "groupname", "isglobal", "id"];
  const isGroup = hasAny(columns, "groupid", "groupname");
  if (!hasAll(columns, "email") || !(columns.names.has("created") || isGroup) || !hasOnly(columns, ...fields))
    return null;
  const kind = sendgridKind(columns, file);
  return { provider: "sendgrid", email: "email", judge: (get) => sendgridRow(kind, get) };
}

// Where the columns leave a doubt, the file's name decides (`suppression_blocks.csv` has the columns of bounces).
function sendgridKind(columns: Columns, file: FileKind): NonNullable<FileKind> | "group" {
  if (hasAny(columns, "groupid", "groupname")) return "group";
  if (columns.names.has("status")) return file === "block" ? file : "bounce";
  if (columns.names.has("reason")) return file === "block" || file === "bounce" ? file : "invalid";
  return columns.names.has("ip") || file === "complaint" ? "complaint" : "unsubscribe";
}

function sendgridRow(kind: NonNullable<FileKind> | "group", get: Get): Verdict {
  const text = get("reason");
  if (kind === "block") return decline("reason", "is a block, which SendGrid retries and does not suppress");
  if (kind === "complaint" || kind === "unsubscribe") return accept(kind);
  if (kind === "invalid") return accept("manual", { note: noteOf(text) });
  if (kind === "group") return accept("unsubscribe", { scopes: listScopes([get("groupname") || get("groupid")]) });
  const codes = readCodes(get("status"), text);
  // Bounces and blocks have the same columns. SendGrid's own list is trusted (5.2.2, 5.4.x), except for what is
  // plainly a block: a temporary status, 5.7.x, or words about the sender without a precise status.
  const vague = codes.diag_code === null || /^5\.[05]\.0$/.test(codes.diag_code);
  const policy = /^5\.7\./.test(codes.diag_code ?? "") || (vague && blamesSender(text));
  if (diagnose(codes.diag_code ?? codes.bounce_code ?? "") === "temporary") return verdictOn("temporary", "status");
  return policy ? verdictOn("policy", "status") : accept("hard_bounce", { ...codes, note: noteOf(text) });
}

function listScopes(names: string[]): Scope[] {
  const lists = [...new Set(names.map((name) => name.trim()).filter((name) => name !== ""))].slice(0, SCOPES_MAX);
  if (lists.length === 0 || lists.includes("*")) return [ORG_SCOPE];
  return lists.map((name) => ({
    scope_type: "list",
    scope_id: name
      .replace(/\p{Cc}/gu, " ")
      .slice(0, SCOPE_ID_CHARS_MAX)
      .toWellFormed(),
  }));
}

// Mailgun: bounces `address, code, error, created_at` (code 550 when empty), unsubscribes `address, tags, created_at`
// (`*` or empty: everything), complaints `address, created_at`.
function mailgun(columns: Columns, file: FileKind): Format | null {
  const fields = [
    "address",
    "code",
    "error",
    "createdat",
    "created",
    "tags",
    "tag",
    "messagehash",
    "domain",
    "count",
    "id",
  ];
  if (!columns.names.has("address") || !hasOnly(columns, ...fields)) return null;
  if (!hasAny(columns, "code", "error", "tags", "tag", "createdat", "created")) return null;
  const kind = mailgunKind(columns, file);
  return { provider: "mailgun", email: "address", judge: (get) => mailgunRow(kind, get) };
}

function mailgunKind(columns: Columns, file: FileKind): "bounce" | "unsubscribe" | "complaint" {
  if (hasAny(columns, "code", "error")) return "bounce";
  if (hasAny(columns, "tags", "tag")) return "unsubscribe";
  return file === "bounce" || file === "unsubscribe" ? file : "complaint";
}

function mailgunRow(kind: "bounce" | "unsubscribe" | "complaint", get: Get): Verdict {
  if (kind === "complaint") return accept("complaint");
  if (kind === "unsubscribe") return accept("unsubscribe", { scopes: listScopes(tagsOf(get("tags") || get("tag"))) });
  const code = get("code");
  const { diag_code } = readCodes("", get("error"));
  if (/^4\d\d$/.test(code)) return verdictOn("temporary", "code");
  const bounce_code = /^\d{3}$/.test(code) ? code : "550";
  return accept("hard_bounce", { bounce_code, diag_code, note: noteOf(get("error")) });
}

// As text (`a,b`, `a b`?), as a JSON or Go array: [a b], ["a","b"]. A blank may be part of a tag, so it does not split.
function tagsOf(text: string): string[] {
  return text
    .replace(/^\[|\]$/g, "")
    .split(/[,;|]/)
    .map((tag) => tag.trim().replace(/^["']|["']$/g, ""));
}

// Mailgun's allowlist export: the opposite of a suppression list, easily picked by mistake.
function mailgunAllowlist(columns: Columns): Format | null {
  if (!hasAll(columns, "value", "type", "createdat") || !hasOnly(columns, "value", "type", "reason", "createdat"))
    return null;
  return {
    provider: "mailgun",
    email: "value",
    judge: () => decline("type", "is an allowlist entry, which does not suppress"),
  };
}

// Postmark: EmailAddress, SuppressionReason, Origin, CreatedAt. ManualSuppression by the recipient is an unsubscribe.
function postmark(columns: Columns): Format | null {
  const email = firstOf(columns, ["emailaddress", "email", "recipient"]);
  const reason = firstOf(columns, ["suppressionreason", "reason"]);
  if (email === null || reason === null) return null;
  const own = columns.sample(reason).some((word) => /^(HardBounce|SpamComplaint|ManualSuppression)$/.test(word));
  if (!own && !(columns.names.has("origin") && reason === "suppressionreason")) return null;
  return { provider: "postmark", email, judge: (get) => postmarkRow(get, reason) };
}

function postmarkRow(get: Get, reason: string): Verdict {
  const isManual = /^manual/i.test(get(reason));
  if (isManual && /^recipient$/i.test(get("origin"))) return accept("unsubscribe");
  return byWord(get, reason);
}

// Postmark's bounces (API and activity export): Type, Email, BouncedAt, Inactive, Description.
function postmarkBounces(columns: Columns): Format | null {
  if (!hasAll(columns, "type", "email", "bouncedat")) return null;
  return {
    provider: "postmark",
    email: "email",
    judge(get) {
      const details = get("details") || get("description");
      // The receiving provider's block, for content or a list: not a wish of the recipient's.
      if (/^blocked$/i.test(get("type"))) return verdictOn("policy", "type");
      return byWord(get, "type", { ...readCodes("", details), note: noteOf(details) });
    },
  };
}

// Amazon SES: `address,BOUNCE` without heading (see headerless in custom-format.ts), {"emailAddress","reason"} a line,
// and the list API and tools over it: EmailAddress, Reason, LastUpdateTime.
function ses(columns: Columns): Format | null {
  const reason = firstOf(columns, ["reason", "suppressionreason"]);
  if (reason === null || !columns.names.has("emailaddress")) return null;
  const updated = hasAny(columns, "lastupdatetime", "lastupdatedtime", "lastupdated", "lastupdate");
  const pair =
    hasOnly(columns, "emailaddress", reason) &&
    columns.sample(reason).some((word) => /^(bounce|complaint)$/i.test(word));
  return updated || pair ? { provider: "ses", email: "emailaddress", judge: (get) => byWord(get, reason) } : null;
}

// Resend: suppressions {email, reason|origin: bounced, complained, …, created_at}.
function resend(columns: Columns): Format | null {
  const reason = firstOf(columns, ["reason", "origin", "type"]);
  const fields = ["id", "object", "email", "reason", "origin", "type", "createdat", "updatedat", "sourceid", "emailid"];
  if (reason === null || !columns.names.has("email") || !columns.names.has("createdat")) return null;
  if (!hasOnly(columns, ...fields) || !columns.sample(reason).some((word) => /^(bounced|complained)$/i.test(word)))
    return null;
  return { provider: "resend", email: "email", judge: (get) => byWord(get, reason) };
}

// Resend's contacts: id, email, first_name, last_name, created_at, unsubscribed (true, false).
function resendContacts(columns: Columns): Format | null {
  if (!hasAll(columns, "email", "unsubscribed", "createdat", "firstname")) return null;
  return {
    provider: "resend",
    email: "email",
    judge: (get) => (isYes(get("unsubscribed")) ? accept("unsubscribe") : verdictOn("none", "unsubscribed")),
  };
}

// Mailchimp's audience export: three files, of subscribed, unsubscribed (UNSUB_*) and cleaned (CLEAN_*) members, in which
// the heading of the address is the audience's own; and the members of its API, with `status`.
function mailchimp(columns: Columns, file: FileKind): Format | null {
  const own = [
    "memberrating",
    "leid",
    "euid",
    "optintime",
    "cleantime",
    "unsubtime",
    "cleancampaigntitle",
    "unsubcampaigntitle",
  ];
  const count = own.filter((name) => columns.names.has(name)).length;
  const named = firstOf(columns, ["emailaddress", "email"]);
  const email = named ?? (count < 2 ? null : addressColumn(columns, (text) => text.includes("@")));
  if (email === null || count === 0) return null;
  if (columns.names.has("status")) return { provider: "mailchimp", email, judge: mailchimpMember };
  const cleaned = hasAny(columns, "cleantime", "cleancampaigntitle", "cleancampaignid");
  const left = hasAny(columns, "unsubtime", "unsubcampaigntitle", "unsubcampaignid", "unsubreason");
  const kind = cleaned === left ? "mixed" : cleaned ? "cleaned" : "unsubscribe";
  return { provider: "mailchimp", email, judge: (get) => mailchimpRow(get, kind, file) };
}

function mailchimpMember(get: Get): Verdict {
  const status = get("status").toLowerCase();
  const isListed = status === "unsubscribed" || status === "cleaned";
  if (/^abuse/i.test(get("unsubscribereason"))) return accept("complaint");
  return isListed ? byWord(get, "status") : decline("status", "is not that of a suppressed member");
}

function mailchimpRow(get: Get, kind: "mixed" | "cleaned" | "unsubscribe", file: FileKind): Verdict {
  const reason = get("unsubreason");
  const gone = { note: noteOf(reason || get("cleancampaigntitle")) };
  const isCleaned = kind === "cleaned" || (kind === "mixed" && (get("cleantime") !== "" || file === "cleaned"));
  if (isCleaned) return accept("hard_bounce", gone);
  if (/^abuse/i.test(reason)) return accept("complaint", gone);
  const hasLeft = kind === "unsubscribe" || get("unsubtime") !== "" || reason !== "" || file === "unsubscribe";
  return hasLeft
    ? accept("unsubscribe", gone)
    : decline("unsubtime", "is missing: the member is subscribed, not suppressed");
}

// Mandrill's rejects.csv: email, reason (hard-bounce, soft-bounce, spam, unsub, custom), detail, created_at,
// last_event_at, expires_at, expired, subaccount. Its expiry is Mandrill's retry policy, not the address's cure: only
// what it calls expired itself is left out.
function mandrill(columns: Columns): Format | null {
  if (!hasAll(columns, "email", "reason") || columns.names.has("scopetype")) return null;
  const own =
    hasAny(columns, "lasteventat", "expired") ||
    hasAll(columns, "detail", "createdat") ||
    hasAll(columns, "detail", "expiresat");
  return own ? { provider: "mandrill", email: "email", judge: mandrillRow } : null;
}

function mandrillRow(get: Get): Verdict {
  if (isYes(get("expired"))) return decline("expired", "says that the entry has expired");
  const detail = get("detail");
  return byWord(get, "reason", { ...readCodes("", detail), note: noteOf(detail) });
}

// Brevo: blocked contacts {email, senderEmail, reason {code, message}, blockedAt}, the contacts export with its flag
// EMAIL_BLACKLISTED, and the log export (st_text, ts, sub, frm, email, …), whose other events are no suppressions.
const BREVO_CODE = /^(hardBounce|contactFlaggedAsSpam|adminBlocked|unsubscribedVia(MA|Email|Api))$/;

function brevo(columns: Columns): Format | null {
  const email = firstOf(columns, ["email", "emailaddress", "contact"]);
  if (email === null) return null;
  const flag = firstOf(columns, [
    "emailblacklisted",
    "emailblocklisted",
    "blacklisted",
    "blocklisted",
    "emailblacklist",
  ]);
  if (flag !== null) return { provider: "brevo", email, judge: (get) => brevoContact(get, flag) };
  if (columns.names.has("sttext")) return { provider: "brevo", email, judge: (get) => byWord(get, "sttext") };
  const reason = firstOf(columns, ["reasoncode", "reason", "reasonmessage", "status"]);
  if (reason === null) return null;
  const own = columns.sample(reason).some((word) => BREVO_CODE.test(word));
  if (!own && !hasAny(columns, "blockedat", "senderemail", "reasoncode", "blockedon")) return null;
  return { provider: "brevo", email, judge: (get) => byWord(get, reason, { note: noteOf(get("reasonmessage")) }) };
}

function brevoContact(get: Get, flag: string): Verdict {
  return isYes(get(flag)) ? accept("unsubscribe") : verdictOn("none", flag);
}

// SparkPost: `recipient,transactional,non_transactional,description,subaccount_id`, and list entries with type (the
// stream) and source. A suppression of one stream covers that stream only, except bounces and complaints.
function sparkpost(columns: Columns): Format | null {
  const email = firstOf(columns, ["recipient", "email"]);
  const flags = hasAny(columns, "transactional", "nontransactional");
  const typed =
    hasAll(columns, "recipient", "type") && columns.sample("type").some((type) => /transactional/i.test(type));
  if (email === null || !(flags || typed)) return null;
  return { provider: "sparkpost", email, judge: (get) => sparkpostRow(get, flags) };
}

function sparkpostRow(get: Get, flags: boolean): Verdict {
  const type = get("type")
    .toLowerCase()
    .replace(/[^a-z]/g, "");
  // `type` names the stream of this entry; the flags, on an entry that has both, are older.
  const transactional = type !== "" ? type === "transactional" : isYes(get("transactional"));
  const bulk = type !== "" ? type === "nontransactional" : isYes(get("nontransactional"));
  if (!transactional && !bulk) {
    return decline(flags ? "nontransactional" : "type", "sets neither transactional nor non_transactional");
  }
  const note = noteOf(get("description"));
  const meaning = get("source") === "" ? null : readReason(get("source"));
  if (meaning === "hard_bounce" || meaning === "complaint")
    return accept(meaning, { ...readCodes("", note ?? ""), note });
  if (transactional && bulk) return accept(meaning === "unsubscribe" ? meaning : "manual", { note });
  const scope: Scope = { scope_type: "stream", scope_id: bulk ? "bulk" : "transactional" };
  return accept(meaning === "manual" ? meaning : "unsubscribe", { note, scopes: [scope] });
}
