// Webhooks: whether a call came from your Postern, and which event it brings. The signature is the field
// `X-Service-Signature: t=<unix seconds>,v1=<hex>`, an HMAC-SHA256 of `<t>.<body>` with the whole `whsec_…` secret; while
// a rotation lasts there are two `v1`. Verify the bytes as they came: JSON that was parsed and written again is another text.
import { createHmac, timingSafeEqual } from "node:crypto";
import { type SignatureFailure, WebhookSignatureError } from "./errors.ts";
import type { Event } from "./generated/models.ts";

export type { SignatureFailure } from "./errors.ts";
export { WebhookSignatureError } from "./errors.ts";

export type VerifyOptions = {
  /** Seconds that the signature may be old, or ahead. Default: 300. */
  tolerance?: number;
  /** Unix seconds. Default: now. */
  now?: number;
};

/** The name of the header that `verify` wants the value of. */
export const SIGNATURE_HEADER = "x-service-signature";

const TOLERANCE_S = 300;
const HEADER_LENGTH_MAX = 4_096;

/**
 * The event of a webhook call. `header` is the value of X-Service-Signature; several secrets may be given, and one that is
 * missing (an environment without it) is passed over.
 * Throws a WebhookSignatureError with its reason where the call cannot be trusted.
 */
export function verify(
  body: string | Uint8Array,
  header: string | readonly string[] | null | undefined,
  secrets: string | null | undefined | readonly (string | null | undefined)[],
  options: VerifyOptions = {},
): Event {
  const bytes = typeof body === "string" ? Buffer.from(body, "utf8") : body;
  const { t, signatures } = readHeader(header);
  const keys = [secrets].flat().filter((secret): secret is string => typeof secret === "string" && secret !== "");
  if (keys.length === 0) fail("missing_secret", "no secret was given to verify the webhook with");
  const age = (options.now ?? Math.floor(Date.now() / 1000)) - t;
  const tolerance = options.tolerance ?? TOLERANCE_S;
  if (age > tolerance) fail("timestamp_too_old", `the webhook was signed ${age} s ago`);
  if (-age > tolerance) fail("timestamp_in_future", `the webhook was signed ${-age} s ahead of this clock`);
  const isSigned = keys.some((key) => {
    const wanted = createHmac("sha256", key).update(`${t}.`).update(bytes).digest();
    return signatures.some((given) => given.length === wanted.length && timingSafeEqual(given, wanted));
  });
  if (!isSigned) fail("no_match", "no signature of the webhook matches a secret");
  return readEvent(bytes);
}

/** A header for a test of your own receiver. */
export function sign(body: string | Uint8Array, secret: string, t: number = Math.floor(Date.now() / 1000)): string {
  return `t=${t},v1=${createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex")}`;
}

function readHeader(header: string | readonly string[] | null | undefined): { t: number; signatures: Buffer[] } {
  const text = [header ?? []].flat().join(",");
  if (text === "") fail("missing_header", "the webhook has no X-Service-Signature");
  if (text.length > HEADER_LENGTH_MAX) fail("malformed_header", "X-Service-Signature is too long");
  const fields = text.split(",").map((field): [string, string] => {
    const [name = "", ...value] = field.trim().split("=");
    return [name, value.join("=")];
  });
  const times = fields.filter(([name]) => name === "t");
  const time = times[0]?.[1] ?? "";
  if (times.length !== 1 || !/^\d{1,12}$/.test(time)) fail("malformed_header", "X-Service-Signature has no one time");
  const signatures = fields
    .filter(([name, value]) => name === "v1" && /^[0-9a-f]{64}$/.test(value))
    .map(([, value]) => Buffer.from(value, "hex"));
  if (signatures.length === 0) fail("malformed_header", "X-Service-Signature has no v1 signature");
  return { t: Number(time), signatures };
}

function readEvent(bytes: Uint8Array): Event {
  let event: unknown;
  try {
    event = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    fail("malformed_body", "the webhook's body is not JSON");
  }
  const isEvent = typeof event === "object" && event !== null && typeof (event as Event).event === "string";
  return isEvent ? (event as Event) : fail("malformed_body", "the webhook's body is not an event");
}

function fail(reason: SignatureFailure, message: string): never {
  throw new WebhookSignatureError(reason, message);
}
