// Which names may be added as a domain: a host name, not a public suffix, not one of the service's own hosts.
import { getPublicSuffix } from "tldts";
import type { Config } from "../config.ts";
import { normalizeDomain } from "../mail/address.ts";
import { simulatorDomain } from "../mail/simulated.ts";
import { invalid } from "../platform/refusal.ts";

/** Below it `postern99._domainkey.` and the other names we ask customers to publish still fit into 253 octets. */
const DOMAIN_LENGTH_MAX = 230;

type Hosts = Pick<
  Config,
  "hostname" | "mx_host" | "bounce_host" | "report_domain" | "masked_domain" | "spf_host" | "base_url"
>;

/** The name in ASCII and lower case, or a 400 on `domain` that says what is wrong. One final dot is taken away. */
export function readDomainName(hosts: Hosts, text: string): string {
  const name = normalizeDomain(text.trim().replace(/\.$/, ""));
  if (name === null) {
    throw invalid("domain", "the 'domain' field must be a domain name such as example.com, without scheme, path or @");
  }
  if (name.length > DOMAIN_LENGTH_MAX) {
    throw invalid("domain", `the 'domain' field must have at most ${DOMAIN_LENGTH_MAX} characters`);
  }
  // Private suffixes too (github.io, duckdns.org): their customers can often publish any name below them.
  if (getPublicSuffix(name, { allowPrivateDomains: true }) === name) {
    throw invalid("domain", `the 'domain' field is ${name}, a public suffix; add the domain below it that is yours`);
  }
  if (isOwnHost(hosts, name)) {
    throw invalid("domain", `the 'domain' field is ${name}, a host of this service itself`);
  }
  return name;
}

/**
 * Deliberate: a domain below the hostname is allowed unless it lies below a host that receives mail for the service; an
 * operator may call the machine example.com and send as news.example.com.
 */
function isOwnHost(hosts: Hosts, name: string): boolean {
  if (name === hosts.hostname || name === new URL(hosts.base_url).hostname) return true;
  const simulator = simulatorDomain(hosts);
  const closed = [
    simulator,
    hosts.mx_host,
    hosts.bounce_host,
    hosts.report_domain,
    hosts.masked_domain,
    hosts.spf_host,
  ];
  return closed.some((host) => name === host || name.endsWith(`.${host}`));
}
