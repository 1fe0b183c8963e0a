// The one deny-table for everything we connect to on a stranger's word: webhooks, MTA-STS, mail exchangers. Judged are
// addresses after resolution, and hosts that are addresses already. Not here: resolving (resolver.ts), connecting
// (safe-fetch.ts). Ranges: IANA's special-purpose registries (RFC 6890) as ipaddr.js has them, and the rules below.
import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import ipaddr from "ipaddr.js";

/** Global unicast as IANA assigns it (RFC 4291 §2.4): all mapped, compatible, translated and local forms lie outside. */
const GLOBAL_UNICAST_V6 = ipaddr.IPv6.parseCIDR("2000::/3");
/** Public by its number, but answered by the host below a virtual machine: Azure's WireServer. */
const METADATA_V4 = new Set(["168.63.129.16"]);
const LOOPBACK_V4 = ipaddr.IPv4.parseCIDR("127.0.0.0/8");
const LOOPBACK_NAMES = /^(.+\.)?(localhost|localhost\.localdomain|localhost6|ip6-localhost|ip6-loopback)$/;
const HOSTNAME_LENGTH_MAX = 1_024;

/**
 * Whether a stranger may make us connect to this address: true only for a canonical IPv4 or IPv6 text of global unicast.
 * False for loopback, private, link-local, shared (RFC 6598), multicast, documentation, metadata, reserved ranges, every
 * IPv6 form that carries an IPv4 address, an address with a zone, and anything that is not an address.
 */
export function isPublicAddress(ip: string): boolean {
  const family = isIP(ip);
  if (family === 4) return isPublicV4(ipaddr.IPv4.parse(ip));
  if (family === 6 && !ip.includes("%")) return isPublicV6(ipaddr.IPv6.parse(ip));
  return false;
}

function isPublicV4(address: ipaddr.IPv4): boolean {
  return address.range() === "unicast" && !METADATA_V4.has(address.toString());
}

function isPublicV6(address: ipaddr.IPv6): boolean {
  if (!address.match(GLOBAL_UNICAST_V6) || address.range() !== "unicast") return false;
  // ISATAP (RFC 5214 §6.1): a tunnel to the IPv4 address in the last 32 bits, under any prefix.
  return !(((address.parts[4] ?? 0) & 0xfdff) === 0 && address.parts[5] === 0x5efe);
}

/** Whether the address is this machine: 127.0.0.0/8 or ::1, and nothing else. */
export function isLoopbackAddress(ip: string): boolean {
  const family = isIP(ip);
  if (family === 4) return ipaddr.IPv4.parse(ip).match(LOOPBACK_V4);
  return family === 6 && !ip.includes("%") && ipaddr.IPv6.parse(ip).range() === "loopback";
}

/** What a customer may name beside public addresses. */
export type Inside = {
  /** For development and tests: 127.0.0.0/8 and ::1. */
  loopback: boolean;
  /** Addresses and networks of the operator's own that the operator lets customers reach. */
  networks?: readonly string[];
};

/** The settings say it. */
export function insideOf(config: {
  testing: { allow_loopback: boolean };
  allowed_networks: readonly string[];
}): Inside {
  return { loopback: config.testing.allow_loopback, networks: config.allowed_networks };
}

/** Whether we connect to this address on a stranger's word: a public one, or one that `inside` lets through. */
export function mayConnect(ip: string, { loopback, networks = [] }: Inside): boolean {
  return isPublicAddress(ip) || (loopback && isLoopbackAddress(ip)) || isWithin(ip, networks);
}

/** Whether an address is in a list of addresses and networks (`10.0.0.7`, `10.0.0.0/24`); other entries hold nothing. */
export function isWithin(ip: string, networks: readonly string[]): boolean {
  if (networks.length === 0 || !ipaddr.isValid(ip)) return false;
  const address = ipaddr.process(ip);
  return networks.some((entry) => {
    const text = entry.includes("/") ? entry : `${entry}/${entry.includes(":") ? 128 : 32}`;
    if (!ipaddr.isValidCIDR(text)) return false;
    const [network, bits] = ipaddr.parseCIDR(text);
    return network.kind() === address.kind() && address.match(network, bits);
  });
}

/**
 * The address that a host is without asking any name server, in canonical form, or null for a name. Takes every form the
 * WHATWG URL standard does (`127.1`, `0x7f000001`, `2130706433`, full-width digits, percent-encoding, `[::ffff:7f00:1]`,
 * a trailing dot), bare IPv6, and the localhost names (RFC 6761 §6.3), which are 127.0.0.1.
 */
export function literalAddressHost(hostname: string): string | null {
  if (hostname.length > HOSTNAME_LENGTH_MAX) return null;
  const bare = hostname.startsWith("[") && hostname.endsWith("]") ? hostname.slice(1, -1) : hostname;
  if (isIP(bare) === 6) return bare.includes("%") ? bare : ipaddr.IPv6.parse(bare).toString();
  const ascii = domainToASCII(hostname).replace(/\.$/, "");
  if (isIP(ascii) === 4) return ascii;
  return LOOPBACK_NAMES.test(ascii) ? "127.0.0.1" : null;
}
