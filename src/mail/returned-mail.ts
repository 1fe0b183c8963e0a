// A mail that came back to us because of one that we sent: a complaint (mail/arf), a bounce (mail/dsn), or neither. It
// decides only which of the two readers is right; what is read is not to be believed without our own token.
import { parseComplaint } from "./arf/arf.ts";
import type { ComplaintReport } from "./arf/types.ts";
import { parseBounce } from "./dsn/dsn.ts";
import type { BounceReport } from "./dsn/types.ts";

/** `reason` is a word for the log: which rule decided. */
export type ReturnedMail =
  | { kind: "complaint"; complaint: ComplaintReport }
  | { kind: "bounce"; bounce: BounceReport }
  | { kind: "auto_reply" | "receipt" | "other"; reason: string };

/** Reads a returned mail. Never throws; linear in the first 4 MiB. Complaints first: they hold a returned message too. */
export function readReturnedMail(bytes: Buffer): ReturnedMail {
  const complaint = parseComplaint(bytes);
  if (complaint !== null) return { kind: "complaint", complaint };
  const result = parseBounce(bytes);
  if (result.kind === "bounce") return { kind: "bounce", bounce: result };
  return { kind: result.kind === "complaint" ? "other" : result.kind, reason: result.reason };
}
