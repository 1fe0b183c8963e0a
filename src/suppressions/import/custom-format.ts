// Lists of no known provider: our own export, lists with any heading, and lists without one. The address column is found
// by its name, else by what it holds; a reason by the words in it, a wish by flags (`unsubscribed_at`). A row of a log or of
// a list of contacts that says that the address is fine is declined; where nothing says anything an entry is `manual`. A column of
// yes and no whose name we do not know is asked about; its no never suppresses.
import { addressColumn, type Columns, type Get } from "./columns.ts";
import {
  accept,
  decline,
  type Format,
  noteOf,
  type OwnDetails,
  type Provider,
  type Verdict,
  verdictOn,
} from "./formats.ts";
import { readTime } from "./read-time.ts";
import { isNo, isYes, type kindOfFile, type Meaning, readCodes, readReason } from "./reasons.ts";
import { readScope, SCOPE_TYPES, type ScopeType, uuid } from "./scope.ts";

/** As of an entry by hand. */
const OWN_NOTE_CHARS_MAX = 1_000;
/** Columns that are read for what they say beside the reason. */
const SAID = new Set(["diagnostic", "error", "note", "description", "status", "code", "expiresat"]);

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
/** What became of a message: the word of a log, where an unknown one is no wish. */
const EVENT_NAMES = ["severity", "event", "eventtype", "lastevent", "recordtype", "notificationtype"];
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
  ...EVENT_NAMES,
  ...["status", "state", "list", "source", "cause", "grund", "motif", "motivo", "bounce", "description"],
];
/** Columns that say yes, or since when, by name; where several do, the first here counts. */
const FLAGS: ReadonlyArray<[RegExp, Meaning]> = [
  [/^(is|has|date)*(complained|complaint|spam|spamcomplaint|markedasspam|reportedspam)(at|date|on)?$/, "complaint"],
  [/^(is|has|date)*(email)?(hard)?bounced?(at|date|on)?$/, "hard_bounce"],
  [
    /^(is|has|date|user|contact|email|marketing|global|globally)*(unsub|unsubscribed?|optedout|optout)((of|from)?(all)?emails?)?(at|date|on|time)?$/,
    "unsubscribe",
  ],
  [/^(is)?(suppressed|suspended|blocked|donotemail|donotmail|donotcontact|dnc)(at|date|on)?$/, "manual"],
];
/** The other way round. To have been asked nothing, or to want no advertising, is no wish to get no mail. */
const SUBSCRIBED = /^(is)?subscribed$/;
const CONSENT = /^(is|has|email|marketing)*(optin|optedin|accepts(email)?marketing)$/;
const KNOWN_SWITCHES = [...FLAGS.map(([pattern]) => pattern), SUBSCRIBED, CONSENT];
const FILE_MEANINGS = new Map<FileKind, Meaning>([
  ["bounce", "hard_bounce"],
  ["cleaned", "hard_bounce"],
  ["complaint", "complaint"],
  ["unsubscribe", "unsubscribe"],
]);
/** Providers whose reasons are a fixed vocabulary: an empty or unknown one is reported, not guessed. */
const STRICT = new Set<Provider>(["ses", "postmark", "resend", "mandrill", "brevo"]);

/** `unknown`: columns of yes and no that nothing else is known of. */
export type Looks = {
  provider: Provider;
  file: FileKind;
  holdsAddress: (text: string) => boolean;
  unknown?: readonly string[];
};

/** The format of a list with these columns, null when no column holds addresses. */
export function customFormat(columns: Columns, looks: Looks): Format | null {
  const email = emailColumn(columns, looks);
  if (email === null) return null;
  if (columns.names.has("scopetype")) return { provider: looks.provider, email, judge: ownRow };
  const flags = flagColumns(columns, email, looks.file);
  const reasons = reasonColumns(columns, email, flags);
  const unknown = unknownSwitches(columns, [email, ...reasons, ...flags.map(({ name }) => name)]);
  const judge = withExpiry((get) => flaggedRow(get, reasons, flags, { ...looks, unknown }));
  return { provider: looks.provider, email, asks: asksAbout(columns, unknown), judge };
}

/**
 * The format of a list whose first row is data: its columns are named "1", "2", … Two columns with BOUNCE or COMPLAINT
 * in one of them are Amazon SES's.
 */
export function headerlessFormat(columns: Columns, looks: Looks, given: Provider | null): Format | null {
  const email = addressColumn(columns, looks.holdsAddress);
  if (email === null) return null;
  const others = [...columns.names].filter((name) => name !== email);
  const isSes =
    columns.names.size <= 3 &&
    others.some((name) => columns.sample(name).some((word) => /^(bounce|complaint)$/i.test(word)));
  const provider = given ?? (isSes ? "ses" : looks.provider);
  const reason = others.find((name) => isTelling(columns, name)) ?? null;
  const unknown = unknownSwitches(columns, [email, ...(reason === null ? [] : [reason])]);
  const judge = (get: Get) => wordRow(get, reason, { ...looks, provider, unknown });
  return { provider, email, asks: asksAbout(columns, unknown), judge };
}

// Those that hold nothing else, as far as was seen; one that is still empty may be one.
function unknownSwitches(columns: Columns, known: readonly string[]): string[] {
  const isKnown = (name: string) =>
    known.includes(name) || SAID.has(name) || KNOWN_SWITCHES.some((one) => one.test(name));
  const others = [...columns.names].filter((name) => name !== "" && !isKnown(name));
  return others.filter((name) => columns.sample(name).every((text) => text === "" || isYes(text) || isNo(text)));
}

function asksAbout(columns: Columns, unknown: readonly string[]): string[] {
  return unknown.filter((name) => columns.sample(name).some((text) => text !== ""));
}

// By name where the values agree, else by values, else (in a list without rows) by name alone.
function emailColumn(columns: Columns, looks: Looks): string | null {
  const named = EMAIL_NAMES.filter((name) => columns.names.has(name));
  const agreeing = named.find((name) => columns.sample(name).some(looks.holdsAddress));
  return agreeing ?? addressColumn(columns, looks.holdsAddress) ?? named[0] ?? null;
}

// Those whose words we know, by name; else one that is kept for a reason; else one that holds nothing but such words.
function reasonColumns(columns: Columns, email: string, flags: readonly Flag[]): string[] {
  const named = REASON_NAMES.filter((name) => columns.names.has(name) && name !== email);
  const telling = named.filter((name) => isTelling(columns, name));
  if (telling.length > 0) return telling;
  const kept = named.find((name) => name === "reason" || name === "suppressionreason");
  if (kept !== undefined) return [kept];
  const flagged = new Set([email, ...flags.map(({ name }) => name)]);
  const guessed = [...columns.names].find((name) => name !== "" && !flagged.has(name) && holdsReasons(columns, name));
  return guessed === undefined ? [] : [guessed];
}

function isTelling(columns: Columns, name: string): boolean {
  return columns.sample(name).some((word) => word !== "" && readReason(word) !== null);
}

const PLAIN_REASONS: ReadonlySet<Meaning | null> = new Set(["hard_bounce", "complaint", "unsubscribe"]);

// `customer` and `import` are words for a suppression too, and say nothing alone.
function holdsReasons(columns: Columns, name: string): boolean {
  const words = columns.sample(name).filter((word) => word !== "");
  const meanings = new Set(words.map(readReason));
  return !meanings.has(null) && [...meanings].some((meaning) => PLAIN_REASONS.has(meaning));
}

type Flag = { name: string; meaning: Meaning; isSet: (text: string) => boolean };

function flagColumns(columns: Columns, email: string, file: FileKind): Flag[] {
  const names = [...columns.names].filter((name) => name !== email && !REASON_NAMES.includes(name));
  const flags = FLAGS.flatMap(([pattern, meaning]) =>
    names.filter((name) => pattern.test(name)).map((name): Flag => ({ name, meaning, isSet })),
  );
  const says = (name: string) => columns.sample(name).some((text) => isYes(text) || isNo(text));
  const subscribed = names.filter((name) => SUBSCRIBED.test(name) && says(name));
  const consents = file === null ? names.filter((name) => CONSENT.test(name) && says(name)) : [];
  return [
    ...flags,
    ...subscribed.map((name): Flag => ({ name, meaning: "unsubscribe", isSet: isNo })),
    ...consents.map((name): Flag => ({ name, meaning: "none", isSet: isYes })),
  ];
}

// Yes, or a time since when: 2024-01-01, 1/2/24, seconds of Unix. `0000-00-00` is how MySQL writes never.
function isSet(text: string): boolean {
  return isYes(text) || (/^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|^\d{9,13}$/.test(text) && !/^0+[-/.]/.test(text));
}

// A word that suppresses comes before a flag, and a flag before a word that does not.
function flaggedRow(get: Get, reasons: readonly string[], flags: readonly Flag[], looks: Looks): Verdict {
  const flag = flags.find(({ name, isSet }) => isSet(get(name)));
  const column = sayingColumn(get, reasons);
  if (flag !== undefined && !(column !== null && suppresses(readReason(get(column))))) {
    return verdictOn(flag.meaning, flag.name);
  }
  const [first] = flags;
  if (first !== undefined && column === null) return verdictOn("none", first.name);
  return wordRow(get, column ?? reasons[0] ?? null, looks);
}

function suppresses(meaning: Meaning | null): boolean {
  return meaning !== null && meaning !== "none" && meaning !== "temporary" && meaning !== "policy";
}

// The column to go by in this row. Where the first is empty, another may know; where somebody has written other words,
// only what became of the message weighs more.
function sayingColumn(get: Get, reasons: readonly string[]): string | null {
  const [first] = reasons;
  const written = reasons.find((name) => get(name) !== "") ?? null;
  if (first === undefined || written === null || readReason(get(written)) !== null) return written;
  const others = get(first) === "" ? reasons : reasons.filter((name) => EVENT_NAMES.includes(name));
  return others.find((name) => readReason(get(name)) !== null) ?? written;
}

function wordRow(get: Get, column: string | null, { provider, file, unknown = [] }: Looks): Verdict {
  const word = column === null ? "" : get(column);
  const text = `${word} ${get("diagnostic")} ${get("error")}`.trim();
  // A diagnostic (`550 5.1.1 …`) is worth keeping, a mere word (`bounce`) is not.
  const said = get("note") || get("description") || (/\s/.test(word) ? word : "");
  const details = { ...readCodes(get("status") || get("code"), text), note: noteOf(said) };
  if (column !== null && word === "" && STRICT.has(provider)) return decline(column, "gives no reason");
  const no = unknown.find((name) => isNo(get(name)));
  if (word === "" && no !== undefined) return decline(no, "says no, and its meaning is not known");
  if (word === "") return verdictOn(FILE_MEANINGS.get(file) ?? "manual", column ?? "", details);
  const meaning = isNo(word) ? "none" : readReason(word);
  if (meaning !== null) return verdictOn(meaning, column ?? "", details);
  const isFixed = STRICT.has(provider) || EVENT_NAMES.includes(column ?? "");
  if (isFixed) return decline(column ?? "", "is not a reason that we know");
  // Somebody's own words are still a wish not to mail the address.
  return accept("manual", { ...details, note: noteOf(word) });
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

// Our own export: all that the API shows of an entry, but its id and its source, which are those of the import.
function ownRow(get: Get): Verdict {
  const meaning = get("reason") === "" ? "manual" : readReason(get("reason"));
  if (meaning === null) return decline("reason", "is not a reason that we know");
  const scopeType = (get("scopetype") || "org").toLowerCase() as ScopeType;
  if (!SCOPE_TYPES.includes(scopeType)) return decline("scopetype", `must be one of: ${SCOPE_TYPES.join(", ")}`);
  // Hard bounces and complaints are always org-wide.
  const wide = meaning === "hard_bounce" || meaning === "complaint";
  const scope = wide ? readScope("org", "") : readScope(scopeType, unguarded(get("scopeid")));
  if (!scope.ok) return decline("scopeid", scope.problem);
  const codes = { bounce_code: code(get("bouncecode")), diag_code: code(get("diagcode")) };
  const note = unguarded(get("note")).slice(0, OWN_NOTE_CHARS_MAX).toWellFormed() || null;
  return withExpiry(() =>
    verdictOn(meaning, "reason", { ...codes, scopes: [scope.scope], note, own: ownDetails(get) }),
  )(get);
}

// A time that a spreadsheet wrote its own way, or a wrong id, is no reason to mail an address again.
function ownDetails(get: Get): OwnDetails {
  const messageId = get("sourcemessageid").toLowerCase();
  const createdAt = readTime(get("createdat"));
  return {
    source_message_id: uuid.test(messageId) ? messageId : null,
    feedback_type: noteOf(unguarded(get("feedbacktype"))),
    // Ids begin with the time since 1970.
    created_at: createdAt !== null && createdAt >= "1970" ? createdAt : null,
  };
}

function code(text: string): string | null {
  return /^[\d.]{1,12}$/.test(text) ? text : null;
}

// What the export puts before a cell that a spreadsheet would run as a formula.
function unguarded(text: string): string {
  return text.replace(/^'(?='*[=+\-@\t\r])/, "");
}
