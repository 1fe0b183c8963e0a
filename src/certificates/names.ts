// Which names the certificate is for: the host name, the MX's, the dashboard's, and those under which mail servers look for
// our policy (RFC 8461 §3.3). A name that is not in DNS yet would make the whole order fail, so it waits.
import { isIP } from "node:net";
import type { Config } from "../config.ts";
import type { Resolver } from "../platform/dns/resolver.ts";
import { type PolicyConfig, policyHosts } from "./policy.ts";

export type NamesConfig = PolicyConfig & Pick<Config, "base_url">;

/** `absent`: wanted, but without an address in DNS. */
export type WantedNames = { names: string[]; absent: string[] };

/** In the order of their importance; the first names the certificate. */
export async function wantedNames(config: NamesConfig, resolver: Pick<Resolver, "a" | "aaaa">): Promise<WantedNames> {
  const all = ownNames(config);
  const isThere = await Promise.all(all.map((name) => hasAddress(name, resolver)));
  return { names: all.filter((_, at) => isThere[at]), absent: all.filter((_, at) => !isThere[at]) };
}

/** All that the certificate should name, whether they are in DNS or not. */
function ownNames(config: NamesConfig): string[] {
  const { hostname } = new URL(config.base_url);
  const isName = isIP(hostname.replace(/^\[|\]$/g, "")) === 0 && hostname.includes(".");
  return [...new Set([config.hostname, config.mx_host, ...(isName ? [hostname] : []), ...policyHosts(config)])];
}

/** What could not be asked counts as there: the ACME server says it then. */
async function hasAddress(name: string, resolver: Pick<Resolver, "a" | "aaaa">): Promise<boolean> {
  const answers = await Promise.all([resolver.a(name), resolver.aaaa(name)]);
  return answers.some(({ kind }) => kind === "found" || kind === "failed");
}
