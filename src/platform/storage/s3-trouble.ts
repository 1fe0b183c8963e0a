// What an S3-compatible store said when it failed, with its code: `NoSuchBucket`, `AccessDenied`, `SlowDown`, or the system's
// where nothing answered (`ECONNREFUSED`). The client library knows the code only of answers whose Content-Type is exactly
// application/xml, and of four of the system's.

type Thrown = { name?: string; message?: string; status?: number; serviceCode?: string; body?: string; code?: unknown };

const MESSAGE_LENGTH_MAX = 200;
const CAUSES_MAX = 4;

/** The store's own reason for refusing; null when it gave none, as to HEAD, whose answer has no body. */
export function reasonGiven(error: unknown): string | null {
  const { serviceCode, body = "" } = error as Thrown;
  if (serviceCode !== undefined && serviceCode !== "Unknown") return serviceCode;
  return elementOf(body, "Code");
}

/** True where the object is not there. A 404 may as well be the bucket's, the login's, or that of a server that is no store. */
export function isAbsent(error: unknown): boolean {
  const { status, body = "" } = error as Thrown;
  return status === 404 && tellsAbsence(body);
}

/** The body of an answer 404, of which some stores send none. */
export function tellsAbsence(body: string): boolean {
  return body.trim() === "" || elementOf(body, "Code") === "NoSuchKey";
}

/** The same failure as an error with `code` and a sentence. */
export function describeTrouble(error: unknown): Error & { code?: string } {
  const { status, body = "", name, message } = error as Thrown;
  if (status === undefined) {
    const code = name === "TimeoutError" ? name : systemCode(error);
    const says = name === "TimeoutError" ? "no answer in time" : withReason(message ?? "it failed", error);
    const known = code === undefined || says.includes(code) ? says : `${says} (${code})`;
    return Object.assign(new Error(known, { cause: error }), code === undefined ? {} : { code });
  }
  const code = reasonGiven(error) ?? undefined;
  const says = elementOf(body, "Message");
  const sentence = `it answered ${status}${code === undefined ? "" : ` ${code}`}${says === null ? "" : `: ${says}`}`;
  return Object.assign(new Error(sentence, { cause: error }), code === undefined ? {} : { code });
}

function elementOf(body: string, name: "Code" | "Message"): string | null {
  const written = new RegExp(`<${name}>([^<]{1,1000})</${name}>`).exec(body)?.[1] ?? "";
  const text = written.replace(/&(#\d{1,6}|\w{2,4});/g, (whole, entity: string) => character(entity) ?? whole);
  return (
    text
      .replace(/\p{Cc}/gu, " ")
      .trim()
      .slice(0, MESSAGE_LENGTH_MAX) || null
  );
}

const NAMED: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function character(entity: string): string | undefined {
  const code = entity.startsWith("#") ? Number(entity.slice(1)) : null;
  if (code === null) return NAMED[entity];
  return code <= 0x10ff_ff ? String.fromCodePoint(code) : undefined;
}

/** A redirect, for one, has no code, and `fetch failed` alone says nothing of it. */
function withReason(message: string, error: unknown): string {
  const cause = (error as { cause?: Thrown }).cause?.message;
  return message === "fetch failed" && cause ? `${message}: ${cause}` : message;
}

/** `fetch failed` has the system's error as its cause, or several of them where a name has several addresses. */
function systemCode(error: unknown): string | undefined {
  let found = error as { code?: unknown; cause?: unknown; errors?: unknown[] } | undefined;
  for (let depth = 0; depth < CAUSES_MAX && typeof found === "object" && found !== null; depth += 1) {
    if (typeof found.code === "string") return found.code;
    found = (found.cause ?? found.errors?.[0]) as typeof found;
  }
  return undefined;
}
