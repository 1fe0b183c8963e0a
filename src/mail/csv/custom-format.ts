// Lists of no known provider: our own export, lists with any heading, and lists without one. The address column is found
// by its name, else by what it holds; a reason by the words in it. Without a reason an entry is `manual`.
import type { Columns, Get } from "./columns.ts";
import { accept, decline, type Format, noteOf, type Provider, type Verdict, verdictOn } from "./formats.ts";
import { readTime } from "./read-time.ts";
import { isYes, type kindOfFile, type Meaning, readCodes, readReason } from "./reasons.ts";
import { readScope, SCOPE_TYPES, type ScopeType } from "./scope.ts";

type FileKind = ReturnType<typeof kindOfFile>;

const EMAIL_NAMES = [
  ...["email", "emailaddress", "address", "mail", "mailaddress", "recipient", "recipientemail", "recipientaddress"],
  ...[
    "emailrecipient",
    "contactemail",
    "useremail",
    "customeremail",
    "subscriberemail",
    "subscriber",
    "emailid",
    "to",
    "rcpt",
  ],
  ...[
    "rcptto",
    "suppressedemail",
    "user",
    "contact",
    "value",
    "emailadresse",
    "mailadresse",
    "emailadress",
    "adresseemail",
  ],
  ...[
    "adressemail",
    "courriel",
    "correo",
    "correoelectronico",
    "correoelectrónico",
    "emailadres",
    "indirizzoemail",
    "epost",
  ],
];
const REASON_NAMES = [
  ...[
    "reason",
    "suppressionreason",
    "suppressiontype",
    "bouncetype",
    "bouncecategory",
    "reasoncode",
    "type",
    "category",
  ],
  ...[
    "eventtype",
    "event",
    "status",
    "state",
    "list",
    "source",
    "cause",
    "grund",
    "motif",
    "motivo",
    "bounce",
    "description",
  ],
];
const FLAGS: ReadonlyArray<[string, Meaning]> = [
  ["complained", "complaint"],
  ["complaint", "complaint"],
  ["spam", "complaint"],
  ["hardbounced", "hard_bounce"],
  ["hardbounce", "hard_bounce"],
  ["bounced", "hard_bounce"],
  ["unsubscribed", "unsubscribe"],
  ["unsubscribe", "unsubscribe"],
  ["optedout", "unsubscribe"],
  ["optout", "unsubscribe"],
  ["suppressed", "manual"],
  ["blocked", "manual"],
  ["donotemail", "manual"],
  ["donotmail", "manual"],
  ["dnc", "manual"],
];
const FILE_MEANINGS = new Map<FileKind, Meaning>([
  ["bounce", "hard_bounce"],
  ["cleaned", "hard_bounce"],
  ["complaint", "complaint"],
  ["unsubscribe", "unsubscribe"],
]);
/** Providers whose reasons are a fixed vocabulary: an empty or unknown one is reported, not guessed. */
const STRICT = new Set<Provider>(["ses", "postmark", "resend", "mandrill", "brevo"]);

export type Looks = { provider: Provider; file: FileKind; holdsAddress: (text: string) => boolean };

/** The format of a list with these columns, null when no column holds addresses. */
export function customFormat(columns: Columns, looks: Looks): Format | null {
  const email = emailColumn(columns, looks);
  if (email === null) return null;
  if (columns.names.has("scopetype")) return { provider: looks.provider, email, judge: ownRow };
  const reason = reasonColumn(columns, email);
  const flags = reason === null ? FLAGS.filter(([name]) => columns.names.has(name) && name !== email) : [];
  const judge = (get: Get): Verdict => (flags.length > 0 ? flagRow(get, flags) : wordRow(get, reason, looks));
  return { provider: looks.provider, email, judge: withExpiry(judge) };
}

/**
 * The format of a list whose first row is data: its columns are named "1", "2", … Two columns with BOUNCE or COMPLAINT
 * in one of them are Amazon SES's.
 */
export function headerlessFormat(columns: Columns, looks: Looks, given: Provider | null): Format | null {
  const email = addressColumn(columns, looks);
  if (email === null) return null;
  const others = [...columns.names].filter((name) => name !== email);
  const isSes =
    columns.names.size <= 3 &&
    others.some((name) => columns.sample(name).some((word) => /^(bounce|complaint)$/i.test(word)));
  const provider = given ?? (isSes ? "ses" : looks.provider);
  const reason = others.find((name) => columns.sample(name).some((word) => readReason(word) !== null)) ?? null;
  return { provider, email, judge: (get) => wordRow(get, reason, { ...looks, provider }) };
}

// By name where the values agree, else by values, else (in a list without rows) by name alone.
function emailColumn(columns: Columns, looks: Looks): string | null {
  const named = EMAIL_NAMES.filter((name) => columns.names.has(name));
  const agreeing = named.find((name) => columns.sample(name).some(looks.holdsAddress));
  return agreeing ?? addressColumn(columns, looks) ?? named[0] ?? null;
}

// The column where most of the first values are addresses.
function addressColumn(columns: Columns, { holdsAddress }: Looks): string | null {
  let best: { name: string; count: number } | null = null;
  for (const name of columns.names) {
    const values = columns.sample(name).filter((value) => value !== "");
    const count = values.filter(holdsAddress).length;
    if (count * 2 >= values.length && count > (best?.count ?? 0)) best = { name, count };
  }
  return best?.name ?? null;
}

function reasonColumn(columns: Columns, email: string): string | null {
  const named = REASON_NAMES.filter((name) => columns.names.has(name) && name !== email);
  const telling = named.find((name) => columns.sample(name).some((word) => word !== "" && readReason(word) !== null));
  return telling ?? named.find((name) => name === "reason" || name === "suppressionreason") ?? null;
}

function wordRow(get: Get, column: string | null, { provider, file }: Looks): Verdict {
  const word = column === null ? "" : get(column);
  const text = `${word} ${get("diagnostic")} ${get("error")}`.trim();
  // A diagnostic (`550 5.1.1 …`) is worth keeping, a mere word (`bounce`) is not.
  const said = get("note") || get("description") || (/\s/.test(word) ? word : "");
  const details = { ...readCodes(get("status") || get("code"), text), note: noteOf(said) };
  if (column !== null && word === "" && STRICT.has(provider)) return decline(column, "gives no reason");
  if (word === "") return verdictOn(FILE_MEANINGS.get(file) ?? "manual", column ?? "", details);
  const meaning = readReason(word);
  if (meaning !== null) return verdictOn(meaning, column ?? "", details);
  if (STRICT.has(provider)) return decline(column ?? "", "is not a reason that we know");
  // Somebody's own words are still a wish not to mail the address.
  return accept("manual", { ...details, note: noteOf(word) });
}

function flagRow(get: Get, flags: ReadonlyArray<[string, Meaning]>): Verdict {
  const set = flags.find(([name]) => isYes(get(name)));
  const first = flags[0]?.[0] ?? "";
  return set ? verdictOn(set[1], set[0]) : verdictOn("none", first);
}

function withExpiry(judge: (get: Get) => Verdict): (get: Get) => Verdict {
  return (get) => {
    const verdict = judge(get);
    const text = get("expiresat");
    if (!verdict.ok || text === "" || verdict.expires_at !== null) return verdict;
    const expires_at = readTime(text);
    return expires_at === null ? decline("expiresat", "is not a time") : { ...verdict, expires_at };
  };
}

// Our own export: reason, scope_type, scope_id, bounce_code, diag_code, note, expires_at as in the API.
function ownRow(get: Get): Verdict {
  const meaning = get("reason") === "" ? "manual" : readReason(get("reason"));
  if (meaning === null) return decline("reason", "is not a reason that we know");
  const scopeType = (get("scopetype") || "org").toLowerCase() as ScopeType;
  if (!SCOPE_TYPES.includes(scopeType)) return decline("scopetype", `must be one of: ${SCOPE_TYPES.join(", ")}`);
  // Hard bounces and complaints are always org-wide.
  const wide = meaning === "hard_bounce" || meaning === "complaint";
  const scope = wide ? readScope("org", "") : readScope(scopeType, get("scopeid"));
  if (!scope.ok) return decline("scopeid", scope.problem);
  const codes = { bounce_code: code(get("bouncecode")), diag_code: code(get("diagcode")) };
  return withExpiry(() => verdictOn(meaning, "reason", { ...codes, scopes: [scope.scope], note: noteOf(get("note")) }))(
    get,
  );
}

function code(text: string): string | null {
  return /^[\d.]{1,12}$/.test(text) ? text : null;
}
