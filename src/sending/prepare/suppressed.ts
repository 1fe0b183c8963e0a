// Which recipients of an e-mail must not get it now, and the answer when that is all of them. For new mail and for mail
// that is sent again.
import { Refusal } from "../../platform/refusal.ts";
import { scopeOf } from "../../suppressions/suppressions.ts";
import type { SendingDeps, Suppressed } from "../types.ts";

/** Those of these addresses that are suppressed for such mail, as they were given, with the reason of each. */
export async function suppressedAmong(
  { findSuppressed }: Pick<SendingDeps, "findSuppressed">,
  orgId: string,
  emails: readonly string[],
  mail: Parameters<typeof scopeOf>[0],
): Promise<Suppressed[]> {
  const found = await findSuppressed(orgId, { emails: emails.map((email) => email.toLowerCase()), ...scopeOf(mail) });
  return emails.flatMap((email) => {
    const entry = found.get(email.toLowerCase());
    return entry ? [{ email, reason: entry.reason }] : [];
  });
}

/** 422: there is nobody left to send to. */
export function allSuppressed(suppressed: Suppressed[]): Refusal {
  return new Refusal("all_recipients_suppressed", "all recipients are suppressed; nothing was sent", {
    body: { suppressed },
  });
}
