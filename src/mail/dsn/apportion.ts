// Which finding of a bounce is about the recipient whose return path it came to. Each copy has a return path of its own,
// so a report there is about that copy, whatever other recipients of the message it names: one recipient can write such
// a report and know all the others, and must not be able to mark them. Forwarding names a mailbox that we never wrote
// to. Pure.
import { parseAddress } from "../address.ts";
import type { BounceRecipient } from "./types.ts";

export type Portion = {
  finding: BounceRecipient;
  /** The report is about this very address: only then may it end all mail to it. */
  is_sure: boolean;
};

/**
 * What a bounce to the return path of `email` says about it; null when it says nothing. One that does not name it is
 * about the copy that came back all the same, as mail to it was forwarded; one without any address surely is.
 */
export function apportion(findings: readonly BounceRecipient[], email: string): Portion | null {
  const own = findings.filter((finding) => isSame(finding.email, email));
  // What is said of an address that ours was expanded to (RFC 3464 §2.3.1) has befallen ours, but it is not about
  // ours: an alias or a list with one dead member works for the others.
  const behind = findings.filter((finding) => !own.includes(finding) && isSame(finding.original, email));
  const named = worst([...own, ...behind]);
  if (named !== null) return { finding: named, is_sure: named.email === null || own.includes(named) };
  const finding = worst(findings);
  if (finding === null) return null;
  return { finding, is_sure: findings.every((one) => one.email === null && one.original === null) };
}

function isSame(named: string | null, email: string): boolean {
  return named !== null && comparable(named) === comparable(email);
}

// IDN in either form, any case.
function comparable(email: string): string {
  const parsed = parseAddress(email);
  return (parsed.ok ? parsed.address.email : email).toLowerCase();
}

// Of several things said about one recipient: what ended comes before what goes on.
const severity = (finding: BounceRecipient): number => {
  if (finding.action === "failed") return finding.bounce_type === "hard" ? 3 : 2;
  return finding.action === "delayed" ? 1 : 0;
};

function worst(findings: readonly BounceRecipient[]): BounceRecipient | null {
  return findings.reduce<BounceRecipient | null>(
    (found, finding) => (found !== null && severity(found) >= severity(finding) ? found : finding),
    null,
  );
}
