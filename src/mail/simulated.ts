// Addresses of the simulator: `<kind>[+anything]@simulator.<service host>`. Mail to them is made, queued and signed as all
// mail is, and meets servers that exist in this process only (outbound/simulator). Which addresses they are, pure.

const SIMULATED_KINDS = ["delivered", "bounced", "soft-bounced", "deferred", "complained", "slow"] as const;
export type SimulatedKind = (typeof SIMULATED_KINDS)[number];

/** The provider that such mail is noted under; what stands under it counts in no statistics and suppresses nobody. */
export const SIMULATOR = "simulator";

/** The domain of the simulator's addresses. */
export function simulatorDomain({ hostname }: { hostname: string }): string {
  return `${SIMULATOR}.${hostname}`;
}

/** True for the address of a simulated recipient. The domain may be written in capitals. */
export function isSimulated(config: { hostname: string }, email: string): boolean {
  const at = email.lastIndexOf("@");
  return at !== -1 && email.slice(at + 1).toLowerCase() === simulatorDomain(config);
}

/** What an address asks for; null for one that the simulator does not know. */
export function simulatedKind(email: string): SimulatedKind | null {
  const local = email.slice(0, email.lastIndexOf("@")).toLowerCase();
  const plus = local.indexOf("+");
  const word = plus === -1 ? local : local.slice(0, plus);
  return SIMULATED_KINDS.find((kind) => kind === word) ?? null;
}
