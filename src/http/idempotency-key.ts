// The header field Idempotency-Key: as it is described, and as it is read.
import { Type } from "typebox";
import { invalid } from "../platform/refusal.ts";

const KEY_LENGTH_MAX = 256;

export const IdempotencyHeader = Type.Object({
  "idempotency-key": Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: KEY_LENGTH_MAX,
      pattern: "^[ -~]+$",
      description:
        "Makes repeating safe: for 72 hours a request with the same key gets the stored answer, and nothing is done twice. 1–256 printable ASCII characters",
    }),
  ),
});
/** The header's key, or null when absent; 400 when it is empty, too long or not printable ASCII. */
export function readKey(header: string | string[] | undefined): string | null {
  if (header === undefined) return null;
  const key = Array.isArray(header) ? header.join(",") : header;
  if (key.length >= 1 && key.length <= KEY_LENGTH_MAX && /^[\x20-\x7e]+$/.test(key)) return key;
  throw invalid("Idempotency-Key", "the 'Idempotency-Key' header must have 1 to 256 printable ASCII characters");
}
