// Every DNS record that the service's own names need, as rows and as a zone file (RFC 1035 §5). Not here: the records of
// customers' domains (domains/records.ts), and whether these are published (names.ts).
import { isIPv4 } from "node:net";
import { type PolicyConfig, policyHosts, policyRecords } from "../certificates/policy.ts";
import type { Config } from "../config.ts";
import { maskedRecords } from "../masked/addresses/service-domain.ts";
import { isLocal } from "./local.ts";
import type { MaskedKey, PoolAddress } from "./sending-addresses.ts";

export type ZoneRecord = { name: string; type: "A" | "AAAA" | "MX" | "TXT"; value: string; priority: number | null };
export type Hosts = Pick<
  Config,
  "hostname" | "mx_host" | "bounce_host" | "report_domain" | "masked_domain" | "spf_host"
> &
  PolicyConfig;

const TTL_S = 3_600;
const MX_PRIORITY = 10;
/** RFC 1035 §3.3 */
const TEXT_PART_LENGTH_MAX = 255;

/** `addresses`: where mail leaves from, each with its name in EHLO. Each record is there once, whatever names coincide. */
export function serviceRecords(
  hosts: Hosts,
  { addresses, masked_key }: { addresses: readonly PoolAddress[]; masked_key: MaskedKey },
): ZoneRecord[] {
  const { hostname, mx_host, bounce_host, report_domain, spf_host } = hosts;
  const shared = addresses.filter(({ ehlo }) => ehlo === hostname);
  const ips = addresses.map(({ ip }) => ip);
  const records = [
    ...addresses.map(({ ip, ehlo }) => addressOf(ehlo, ip)),
    ...shared.map(({ ip }) => addressOf(mx_host, ip)),
    ...policyHosts(hosts).flatMap((name) => shared.map(({ ip }) => addressOf(name, ip))),
    ...policyRecords(hosts).map(({ name, value }) => text(name, value)),
    ...[hostname, ...addresses.map(({ ehlo }) => ehlo)].map((name) => text(name, envelopeSpf(hosts))),
    text(spf_host, spfOf(hosts, ips)),
    mailTo(bounce_host, mx_host),
    text(bounce_host, envelopeSpf(hosts)),
    mailTo(report_domain, mx_host),
    text(`*._report._dmarc.${report_domain}`, "v=DMARC1"),
    ...maskedRecords(hosts, masked_key).map(({ name, type, value, priority }) => ({ name, type, value, priority })),
  ];
  const keys = records.map(({ name, type, value }) => `${name} ${type} ${value}`);
  return records.filter((_, index) => keys.indexOf(keys[index] as string) === index);
}

/** What customers' SPF records include. Without known addresses it names the host, whose addresses then count. */
export function spfOf({ hostname }: Pick<Config, "hostname">, addresses: readonly string[]): string {
  const terms = addresses.map((ip) => `${isIPv4(ip) ? "ip4" : "ip6"}:${ip}`);
  return `v=spf1 ${terms.length > 0 ? terms.join(" ") : `a:${hostname}`} -all`;
}

/** What a name in an envelope or in EHLO says. */
export function envelopeSpf({ spf_host }: Pick<Config, "spf_host">): string {
  return `v=spf1 include:${spf_host} -all`;
}

function addressOf(name: string, ip: string): ZoneRecord {
  return { name, type: isIPv4(ip) ? "A" : "AAAA", value: ip, priority: null };
}

function mailTo(name: string, value: string): ZoneRecord {
  return { name, type: "MX", value, priority: MX_PRIORITY };
}

function text(name: string, value: string): ZoneRecord {
  return { name, type: "TXT", value, priority: null };
}

/** The records as a zone file, with what a zone file cannot say as comments. */
export function zoneFile(hosts: Hosts, records: readonly ZoneRecord[], addresses: readonly PoolAddress[]): string {
  const reverse = addresses.map(({ ip, ehlo }) => `;   ${ip} PTR ${ehlo}.`);
  return [
    `; The names of the Postern at ${hosts.hostname}. All names are complete: they end with a dot.`,
    `; A name may have one SPF record ("v=spf1"): where ${hosts.hostname} has one, add include:${hosts.spf_host} to it.`,
    ...(isLocal(hosts.hostname)
      ? ["; Set POSTERN_HOSTNAME first, and print this again: these names mean this machine to everybody."]
      : []),
    ...(addresses.length > 0
      ? []
      : [
          `; The addresses of ${hosts.hostname} are not known. Publish its A and AAAA records, or set`,
          "; POSTERN_PUBLIC_ADDRESSES, and print this again: address records are missing below.",
        ]),
    ...records.map(lineOf),
    ...(reverse.length > 0 ? ["; The provider of each address sets its reverse name:", ...reverse] : []),
  ].join("\n");
}

function lineOf({ name, type, value, priority }: ZoneRecord): string {
  const target = type === "TXT" ? quoted(value) : type === "MX" ? `${priority} ${value}.` : value;
  return `${name}. ${TTL_S} IN ${type} ${target}`;
}

function quoted(value: string): string {
  const parts: string[] = [];
  for (let at = 0; at < value.length; at += TEXT_PART_LENGTH_MAX)
    parts.push(value.slice(at, at + TEXT_PART_LENGTH_MAX));
  return parts.map((part) => `"${part.replace(/["\\]/g, "\\$&")}"`).join(" ");
}
