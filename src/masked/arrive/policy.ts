// What the author's domain asks to do with a mail that it does not vouch for (DMARC), and when that is not done: where a list or
// a forwarder that the organization believes took the mail from its author, and says so in a chain of seals (RFC 8617).
import type { World } from "../../platform/world.ts";
import { maskedSettings } from "../settings.ts";
import type { Proof } from "./sender-proof.ts";

/** The shape of receiving's verdicts; `header` is the Authentication-Results field. */
export type Policed = Proof & {
  dmarc: { result: string; applied: string | null; policy?: string | null; from_domain?: string | null };
  arc?: { result: string; sealers: readonly string[]; vouched_domain?: string };
  header?: string;
};

/** `doubt`: one of them might be asked for, if only DNS answered. Anybody can sign with a name that it does not answer for. */
export type Asked = "reject" | "quarantine" | "doubt";

/** What is asked for; null where the mail is proven, or nothing is asked for, or who sealed it is believed. */
export async function policyFor({ db }: Pick<World, "db">, orgId: string, verdicts: Policed): Promise<Asked | null> {
  const asked = askedOf(verdicts.dmarc);
  if (asked === null || !isSealed(verdicts, verdicts.dmarc.from_domain)) return asked;
  const { arc_sealers } = await maskedSettings(db, orgId);
  return isBelieved(verdicts, arc_sealers) ? null : asked;
}

function askedOf({ result, applied, policy }: Policed["dmarc"]): Asked | null {
  if (result === "temperror") return policy === "reject" || policy === "quarantine" ? "doubt" : null;
  return result === "fail" && (applied === "reject" || applied === "quarantine") ? applied : null;
}

/** True if a forward must say that its author is not proven. `asked`: what policyFor found. */
export async function isToMark(
  { db }: Pick<World, "db">,
  orgId: string,
  verdicts: Policed,
  asked: Asked | null,
): Promise<boolean> {
  if (asked !== null) return true;
  const { spf, dkim, dmarc } = verdicts;
  const isOpen = dmarc.result === "none" && !spf.from_aligned && !dkim.from_aligned;
  if (dmarc.result !== "fail" && !isOpen) return false;
  const { mark_unproven, arc_sealers } = await maskedSettings(db, orgId);
  if (mark_unproven !== "always") return false;
  return !isSealed(verdicts, dmarc.from_domain) || !isBelieved(verdicts, arc_sealers);
}

/** True if a chain of seals says that DMARC passed for the author's domain. */
function isSealed({ arc }: Policed, domain: string | null | undefined): boolean {
  return arc?.result === "pass" && !!domain && arc.vouched_domain === domain.toLowerCase();
}

function isBelieved({ arc }: Policed, sealers: readonly string[]): boolean {
  return (arc?.sealers ?? [""]).every((sealer) => isOneOf(sealer, sealers));
}

function isOneOf(domain: string, list: readonly string[]): boolean {
  const lower = domain.toLowerCase();
  return list.some((one) => lower === one || lower.endsWith(`.${one}`));
}
