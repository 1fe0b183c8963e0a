// What the author's domain asks to do with a mail that it does not vouch for (DMARC), and when that is not done: where a list or
// a forwarder that the organization believes took the mail from its author, and says so in a chain of seals (RFC 8617).
import type { World } from "../../platform/world.ts";
import { maskedSettings } from "../settings.ts";
import type { Proof } from "./sender-proof.ts";

/** The shape of receiving's verdicts; `header` is the Authentication-Results field. */
export type Policed = Proof & {
  dmarc: { result: string; applied: string | null; from_domain?: string | null };
  arc?: { result: string; sealers: readonly string[]; vouched_domain?: string };
  header?: string;
};

/** What is asked for; null where the mail is proven, or nothing is asked for, or who sealed it is believed. */
export async function policyFor(
  { db }: Pick<World, "db">,
  orgId: string,
  verdicts: Policed,
): Promise<"reject" | "quarantine" | null> {
  const { result, applied, from_domain } = verdicts.dmarc;
  if (result !== "fail" || (applied !== "reject" && applied !== "quarantine")) return null;
  const { arc } = verdicts;
  if (arc?.result !== "pass" || !from_domain || arc.vouched_domain !== from_domain.toLowerCase()) return applied;
  const { arc_sealers } = await maskedSettings(db, orgId);
  return arc.sealers.every((sealer) => isOneOf(sealer, arc_sealers)) ? null : applied;
}

function isOneOf(domain: string, list: readonly string[]): boolean {
  const lower = domain.toLowerCase();
  return list.some((one) => lower === one || lower.endsWith(`.${one}`));
}
