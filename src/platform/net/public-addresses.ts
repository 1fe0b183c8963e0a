// The addresses under which other servers know this installation: mail leaves from them, and its names lead to them.
// Not here: which of them a message leaves from (the sending engine's), and addresses of this machine's own interfaces.
import ipaddr from "ipaddr.js";
import type { Config } from "../../config.ts";
import type { Resolver } from "../dns/resolver.ts";

/** Behind a translating router the machine knows these only, and nobody else sees them. */
const SEEN_BY_NOBODY = new Set(["private", "linkLocal", "uniqueLocal", "carrierGradeNat", "unspecified"]);

/** Whether other servers may see this address as a client's. Documentation ranges count: they stand for real ones. */
export function isSeenByOthers(ip: string): boolean {
  return ipaddr.isValid(ip) && !SEEN_BY_NOBODY.has(ipaddr.process(ip).range());
}

/**
 * The addresses that others see: those of POSTERN_PUBLIC_ADDRESSES, else what the host name resolves to, in canonical
 * form. Empty when neither says any; never throws.
 */
export async function publicAddresses(
  { public_addresses, hostname }: Pick<Config, "public_addresses" | "hostname">,
  resolver: Pick<Resolver, "a" | "aaaa">,
): Promise<string[]> {
  if (public_addresses.length > 0) return canonical(public_addresses);
  const answers = await Promise.all([resolver.a(hostname), resolver.aaaa(hostname)]);
  return canonical(answers.flatMap((answer) => (answer.kind === "found" ? answer.records : [])));
}

function canonical(addresses: string[]): string[] {
  return [...new Set(addresses.filter(isSeenByOthers).map((ip) => ipaddr.process(ip).toString()))];
}
