// Who may write from an alias: one author, a confirmed destination of it, proven by our own verdict on this very message.
// Authentication-Results and ARC of others count for nothing. Pure.
import { parseWrittenAddress } from "../../mail/address.ts";

/** What our verdict must say; the shape of mail/auth's Verdicts. */
export type Proof = {
  spf: { result: string; from_aligned: boolean };
  dkim: { result: string; from_aligned: boolean };
  dmarc: { result: string };
};

export type Author = { from: readonly (string | null)[]; envelope_from: string; destinations: readonly string[] };

export type Permission =
  | { kind: "allowed"; email: string }
  | { kind: "refused"; reason: string }
  /** DNS did not answer: another time. */
  | { kind: "unknown" };

/** The same to everybody: another sentence for the owner's address would tell the forger that the guess was right. */
const REFUSED =
  "the message must have exactly one From address, that of a confirmed destination of this alias, and prove it: it is none, or neither an aligned DKIM signature nor SPF of that very address passed";

/** Decides by the author and the verdicts, by these first: what is answered to a forged address does not tell whose it is. */
export function mayReply({ from, envelope_from, destinations }: Author, proof: Proof): Permission {
  const refused: Permission = { kind: "refused", reason: REFUSED };
  const author = from[0];
  if (from.length !== 1 || !author) return refused;
  const email = canonicalAddress(author).toLowerCase();
  // SPF tells the domain only, and on a shared provider anybody has that: the envelope must name the same mailbox.
  const bySpf = proof.spf.from_aligned && isReturnPathOf(canonicalAddress(envelope_from).toLowerCase(), email);
  const { result } = proof.dmarc;
  const isProven = (result === "pass" || result === "none") && (proof.dkim.from_aligned || bySpf);
  if (!isProven) return result === "temperror" || proof.spf.result === "temperror" ? { kind: "unknown" } : refused;
  const isOwn = destinations.some((one) => untagged(one.toLowerCase()) === untagged(email));
  return isOwn ? { kind: "allowed", email: canonicalAddress(author) } : refused;
}

/** RFC 5233: what stands behind a plus tells the owner's own mail apart, not one mailbox from another. */
function untagged(email: string): string {
  return email.replace(/(?<=.)\+[^@]*(?=@)/, "");
}

/** BATV (draft-levine-smtp-batv) and what servers made of it: a mark before the very address. */
const BATV = /^(?:(?:prvs|msprvs1|btv1)=+[0-9a-z]{4,64}=+|prvs=(?=[^=@]+\/[0-9a-z]{6,64}@))/;

/**
 * True if bounces come back to the mailbox itself: to it as it is, under any tag, with the mark of BATV, or with the recipient
 * after it (VERP). Only the mailbox's owner, or its server on the owner's behalf, may write any of these.
 */
function isReturnPathOf(envelope: string, email: string): boolean {
  const unmarked = envelope
    .replace(BATV, "")
    .replace(/\/[0-9a-z]{6,64}(?=@)/, (mark) => (BATV.test(envelope) ? "" : mark));
  if (untagged(unmarked) === untagged(email)) return true;
  const [own, domain] = [untagged(email).split("@")[0] ?? "", email.slice(email.lastIndexOf("@"))];
  const verp = unmarked.endsWith(domain) ? unmarked.slice(0, -domain.length) : "";
  return verp.startsWith(`${own}-`) && /^-[^@\s]*[^=@\s]=[a-z0-9.-]+\.[a-z0-9-]+$/.test(verp.slice(own.length));
}

/** The address as people's are kept: an international domain in its ASCII form; what is no address as it is. */
export function canonicalAddress<T extends string | null>(email: T): T | string {
  const parsed = email === null ? null : parseWrittenAddress(email);
  return parsed?.ok ? parsed.address.email : email;
}

/** The verdicts as an entry of the activity shows them; a signature of another domain than the author's is none that passes. */
export function verdictsOf({ spf, dkim, dmarc }: Proof): { spf: string; dkim: string; dmarc: string } {
  const unaligned = dkim.result === "pass" ? "fail" : dkim.result;
  return { spf: spf.result, dkim: dkim.from_aligned ? "pass" : unaligned, dmarc: dmarc.result };
}
