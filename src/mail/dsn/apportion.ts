// Whom of a message's recipients a bounce is about. It came to the return path of one of them, which says whose copy came
// back; the addresses it names say more, or something else: forwarding names a mailbox that we never wrote to. Pure.
import { parseAddress } from "../address.ts";
import type { BounceRecipient } from "./types.ts";

export type Sent = { position: number; email: string };

export type Portion = {
  position: number;
  finding: BounceRecipient;
  /** The report is about this very address, at its own return path: only then may it end all mail to it. */
  is_sure: boolean;
};

/**
 * The recipients (of `sent`) that a bounce to the return path of `position` is about, each once, with what it says about
 * them. One that names none of them is about the one whose path it came to; one without any address surely is.
 */
export function apportion(findings: readonly BounceRecipient[], sent: readonly Sent[], position: number): Portion[] {
  const portions = sent.flatMap((one): Portion[] => {
    const own = findings.filter(({ email }) => isSame(email, one.email));
    // What is said of an address that ours was expanded to (RFC 3464 §2.3.1) has befallen ours, but it is not about
    // ours: an alias or a list with one dead member works for the others.
    const behind = findings.filter((finding) => !own.includes(finding) && isSame(finding.original, one.email));
    const finding = worst([...own, ...behind]);
    if (finding === null) return [];
    // Deliberate: another recipient of the message may have written the report, and knows this token only.
    const isOwn = finding.email === null || own.includes(finding);
    return [{ position: one.position, finding, is_sure: one.position === position && isOwn }];
  });
  if (portions.length > 0) return portions;
  const finding = worst(findings);
  if (finding === null || !sent.some((one) => one.position === position)) return [];
  const isUnnamed = findings.every(({ email, original }) => email === null && original === null);
  return [{ position, finding, is_sure: isUnnamed }];
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
