// What becomes of mail whatever is in it: kept, or put aside. Nothing here looks into the message.
import type { Mail, Outcome } from "../types.ts";

/** The mail is kept, and that is all. */
export const KEPT: Outcome = { status: "delivered", reason: null, events: [], forwards: [], rule_ids: [] };

/**
 * Mail whose processing fails again and again for our own fault: it is kept, listed as failed (that of masked addresses,
 * which is listed nowhere else, in quarantine) and served raw, with what was found out before; the error is in the log.
 */
export function putAside({ route }: Pick<Mail, "route">, error: unknown): Outcome {
  const reason = `it could not be processed: ${(error as Error)?.name ?? "error"}`;
  return { ...KEPT, status: route.kind === "masked" || route.kind === "reverse" ? "quarantined" : "failed", reason };
}
