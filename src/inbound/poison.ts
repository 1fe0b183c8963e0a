// Mail whose processing fails again and again for a fault of ours: it is kept, listed as failed (that of masked addresses,
// which is listed nowhere else, in quarantine) and served raw, and the error is in the log. Nothing here looks into it.
import type { Found, Mail, Outcome } from "./types.ts";

const NOTHING_FOUND: Found = {
  message_id: null,
  from_address: null,
  subject: null,
  has_attachments: false,
  thread_id: null,
  matched_email_id: null,
  spam_score: null,
  authentication_results: null,
  findings: null,
};

/** Puts the mail aside. */
export async function putAside({ route }: Mail, error: unknown): Promise<Outcome> {
  const reason = `it could not be processed: ${(error as Error)?.name ?? "error"}`;
  const status = route.kind === "masked" || route.kind === "reverse" ? "quarantined" : "failed";
  return { status, reason, found: NOTHING_FOUND, events: [], forwards: [], rule_ids: [] };
}

/** For routes that nothing is plugged in for: the mail is kept and that is all. */
export async function keepOnly(_mail: Mail): Promise<Outcome> {
  return { status: "delivered", reason: null, found: NOTHING_FOUND, events: [], forwards: [], rule_ids: [] };
}
