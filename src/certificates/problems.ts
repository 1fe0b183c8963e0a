// Why an ACME server gave no certificate, in plain words: its problem documents (RFC 8555 §6.7), the failed checks of single
// names (§7.1.4), and what kept it from being reached. Not here: asking it (order.ts).

type Problem = { type: string; detail: string; retry_after_ms: number | null; nonce: string | null };

/** An answer of the ACME server that says no. */
export class AcmeProblem extends Error {
  /** The last part of `urn:ietf:params:acme:error:…`, or "" without one. */
  readonly type: string;
  readonly detail: string;
  /** From Retry-After; null where the server does not say when to come again. */
  readonly retry_after_ms: number | null;
  /** For the next request (RFC 8555 §6.5). */
  readonly nonce: string | null;
  constructor({ type, detail, retry_after_ms, nonce }: Problem) {
    super(words(type, detail, retry_after_ms));
    this.type = type;
    this.detail = detail;
    this.retry_after_ms = retry_after_ms;
    this.nonce = nonce;
  }
}

/** Some names could not be shown to be ours. */
export class NamesRefused extends Error {
  constructor(refused: readonly { name: string; why: string }[]) {
    super(refused.map(({ name, why }) => `${name}: ${why}`).join("; "));
  }
}

const PREFIX = "urn:ietf:params:acme:error:";
const DETAIL_LENGTH_MAX = 400;
const MINUTE_MS = 60_000;

const SENTENCES = new Map([
  ["rateLimited", "the ACME server's rate limit is reached"],
  ["accountDoesNotExist", "the ACME server does not know our account"],
  ["externalAccountRequired", "this ACME server wants an account that was made on its site, which Postern cannot use"],
  ["rejectedIdentifier", "the ACME server gives no certificate for one of the names"],
  ["caa", "a CAA record in DNS forbids this authority to give a certificate"],
  ["invalidContact", "the ACME server does not take POSTERN_ACME_EMAIL"],
  ["unsupportedContact", "the ACME server does not take POSTERN_ACME_EMAIL"],
  ["invalidProfile", "the ACME server has no profile of the name in POSTERN_ACME_PROFILE"],
  ["userActionRequired", "the ACME server wants its new terms to be agreed to"],
  ["serverInternal", "the ACME server failed"],
]);

function words(type: string, detail: string, retryAfterMs: number | null): string {
  const what = SENTENCES.get(type) ?? "the ACME server refused";
  const when = retryAfterMs === null ? "" : `; it may be asked again in ${Math.ceil(retryAfterMs / MINUTE_MS)} min`;
  return `${what}${detail === "" ? "" : ` (${clean(detail)})`}${when}`;
}

/** What a server wrote, as one bounded line. */
function clean(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, " ").slice(0, DETAIL_LENGTH_MAX);
}

type Heads = { retry_after: string | null; date: string | null; nonce: string | null };

/** The problem in an HTTP answer with a problem document; null for any other answer. */
export function problemOf(status: number, body: unknown, heads: Heads): AcmeProblem | null {
  if (status < 400) return null;
  const { type, detail } = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const kind = typeof type === "string" && type.startsWith(PREFIX) ? type.slice(PREFIX.length) : "";
  const said = typeof detail === "string" ? detail : `HTTP ${status}`;
  return new AcmeProblem({ type: kind, detail: said, retry_after_ms: readRetryAfter(heads), nonce: heads.nonce });
}

/** RFC 9110 §10.2.3: seconds, or a date, which counts from the date of the answer. */
function readRetryAfter({ retry_after, date }: Heads): number | null {
  if (retry_after === null) return null;
  if (/^\d{1,9}$/.test(retry_after)) return Number(retry_after) * 1_000;
  const waitMs = Date.parse(retry_after) - Date.parse(date ?? "");
  return Number.isNaN(waitMs) ? null : Math.max(0, waitMs);
}

const CHECKS = new Map([
  ["dns", "its address was not found in DNS"],
  ["connection", "no connection to it on port 80"],
  ["unauthorized", "another server than this one answers there on port 80"],
  ["incorrectResponse", "another server than this one answers there on port 80"],
  ["caa", "a CAA record in DNS forbids this authority"],
  ["tls", "its TLS failed"],
  ["rateLimited", "the ACME server's rate limit is reached"],
]);

/** Why the authority did not believe that a name is ours: the error of the challenge that it tried. */
export function refusalOf(error: { type?: string; detail?: string } | null | undefined): string {
  const kind = error?.type?.startsWith(PREFIX) ? error.type.slice(PREFIX.length) : "";
  const said = error?.detail ? clean(error.detail) : "no reason was given";
  const what = CHECKS.get(kind);
  return what ? `${what} (the ACME server says: ${said})` : `the ACME server says: ${said}`;
}
