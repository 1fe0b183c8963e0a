// What a customer may put into a header: custom header fields, and the rule for every other text that becomes one.
// RFC 5322 §2.2 and §3.6.8 (names), RFC 5322 §2.1.1 (line length); the list of refused fields is the contract's.
// It does not encode or fold (encode-header.ts), and it does not know the fields a feature writes by itself.

export type HeaderField = { name: string; value: string };

/** `name` is the offending field's name as given, for the path in the answer. */
export type HeadersResult = { ok: true; headers: HeaderField[] } | { ok: false; name: string; reason: string };
export type TextResult = { ok: true } | { ok: false; reason: string };

export const customHeadersMax = 50;
const nameCharsMax = 76;
const valueOctetsMax = 4_096;
const totalOctetsMax = 16_384;
// An unbroken run cannot be folded: with the name in front it must stay below 998 octets (RFC 5322 §2.1.1).
const runCharsMax = 900;

// What Postern writes by itself, or what a receiver would take for the word of another server.
const refusedNames: ReadonlySet<string> = new Set([
  "from",
  "to",
  "cc",
  "bcc",
  "subject",
  "date",
  "message-id",
  "mime-version",
  "dkim-signature",
  "return-path",
  "received",
  "sender",
  "resent-from",
  "resent-sender",
  "resent-bcc",
  "authentication-results",
]);
// The last two are our own words to the receiver, and back to us: a bounce is matched by them.
const refusedPrefixes: readonly string[] = ["content-", "arc-", "x-postern-", "x-service-"];

// Read by machines, with a grammar of their own: encoded words would break them (RFC 2047 §5), so ASCII only.
const structuredNames: ReadonlySet<string> = new Set([
  "auto-submitted",
  "feedback-id",
  "importance",
  "in-reply-to",
  "list-archive",
  "list-help",
  "list-id",
  "list-owner",
  "list-post",
  "list-subscribe",
  "list-unsubscribe",
  "list-unsubscribe-post",
  "precedence",
  "priority",
  "references",
  "reply-to",
  "x-priority",
]);

const ftext = /^[\x21-\x39\x3b-\x7e]+$/;
const printable = /^[\x20-\x7e\t]*$/;
// C0 but for tab, DEL, C1 (which has NEL), line and paragraph separators.
const forbidden = /(?!\t)\p{Cc}|[\p{Zl}\p{Zp}]/u;

/**
 * Checks the custom header fields of a send request. On success they come back in order, values without blanks around.
 * A name given twice (case aside) is refused: an object's keys can repeat only that way, so it is a mistake. `written`
 * are names in lower case that the message has already, from a field of their own.
 */
export function validateHeaders(
  fields: Iterable<readonly [string, string]>,
  written: readonly string[] = [],
): HeadersResult {
  const headers: HeaderField[] = [];
  const seen = new Set<string>();
  let octets = 0;
  for (const [name, given] of fields) {
    if (headers.length === customHeadersMax) return refuse(name, `more than ${customHeadersMax} headers`);
    const value = given.trim();
    // Both: a line break at an end is refused, and what is left without a byte order mark may be one long run of ASCII.
    const reason =
      nameProblem(name) ?? valueProblem(name.toLowerCase(), given) ?? valueProblem(name.toLowerCase(), value);
    if (reason !== null) return refuse(name, reason);
    if (written.includes(name.toLowerCase())) return refuse(name, "it stands beside the field that writes it");
    if (seen.has(name.toLowerCase())) return refuse(name, "is given twice");
    seen.add(name.toLowerCase());
    octets += name.length + Buffer.byteLength(given);
    if (octets > totalOctetsMax) return refuse(name, `the headers together are longer than ${totalOctetsMax} octets`);
    headers.push({ name, value });
  }
  return { ok: true, headers };
}

/**
 * The rule for text that becomes a header's content, such as a subject: no controls but tab, no line separators, no
 * lone surrogates, at most `octetsMax` octets.
 */
export function validateHeaderText(text: string, octetsMax: number): TextResult {
  const reason = textProblem(text, octetsMax);
  return reason === null ? { ok: true } : { ok: false, reason };
}

function nameProblem(name: string): string | null {
  if (name === "") return "the name is empty";
  if (name.length > nameCharsMax) return `the name is longer than ${nameCharsMax} characters`;
  if (!ftext.test(name)) return "the name holds a character other than printable ASCII without space and colon";
  const lower = name.toLowerCase();
  const isRefused = refusedNames.has(lower) || refusedPrefixes.some((prefix) => lower.startsWith(prefix));
  return isRefused ? "this header cannot be set" : null;
}

function valueProblem(lowerName: string, value: string): string | null {
  const problem = textProblem(value, valueOctetsMax);
  if (problem !== null) return problem;
  if (!printable.test(value)) {
    return structuredNames.has(lowerName) ? "this header takes printable ASCII only" : null;
  }
  return hasLongRun(value) ? `the value holds ${runCharsMax} characters without a space, which cannot be folded` : null;
}

function textProblem(text: string, octetsMax: number): string | null {
  if (forbidden.test(text)) return "holds a line break or another control character";
  if (!text.isWellFormed()) return "holds half of a surrogate pair";
  return Buffer.byteLength(text) > octetsMax ? `is longer than ${octetsMax} octets` : null;
}

function hasLongRun(value: string): boolean {
  // Folded is before the last of several blanks: those before it belong to the line.
  return value.length >= runCharsMax && value.split(/[ \t](?=[^ \t])/).some((run) => run.length >= runCharsMax);
}

function refuse(name: string, reason: string): HeadersResult {
  return { ok: false, name, reason };
}
