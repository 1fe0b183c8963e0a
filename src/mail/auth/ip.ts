// IP addresses as bytes, for SPF: strict reading, networks, texts. No names and no DNS here.
import { isIPv4, isIPv6 } from "node:net";

/** Four or sixteen bytes. */
export type Ip = Buffer;

/** An IPv4 or IPv6 address, an IPv4-mapped one (RFC 4291 §2.5.5.2) as IPv4; null for anything else. Zones are dropped. */
export function parseIp(text: string): Ip | null {
  if (isIPv4(text)) return ipv4Bytes(text);
  const address = text.replace(/%.*$/, "");
  if (!isIPv6(address)) return null;
  const bytes = ipv6Bytes(address);
  return isMapped(bytes) ? bytes.subarray(12) : bytes;
}

/** An IPv6 address as it is written, mapped ones too: what an `ip6:` term of SPF names. */
export function parseIpv6(text: string): Ip | null {
  return isIPv6(text) && !text.includes("%") ? ipv6Bytes(text) : null;
}

/** An IPv4 address as it is written: what an `ip4:` term of SPF names. */
export function parseIpv4(text: string): Ip | null {
  return isIPv4(text) ? ipv4Bytes(text) : null;
}

function ipv4Bytes(text: string): Buffer {
  return Buffer.from(text.split(".").map(Number));
}

function ipv6Bytes(text: string): Buffer {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const hex = dotted
    ? dotted[1]! +
      ipv4Bytes(dotted[2]!)
        .toString("hex")
        .replace(/^(.{4})/, "$1:")
    : text;
  const [head, tail] = hex.split("::");
  const front = groups(head!);
  const back = groups(tail ?? "");
  const zeros = new Array<number>(8 - front.length - back.length).fill(0);
  return Buffer.from([...front, ...zeros, ...back].flatMap((group) => [group >> 8, group & 0xff]));
}

function groups(text: string): number[] {
  return text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
}

function isMapped(bytes: Buffer): boolean {
  return bytes.readUInt16BE(10) === 0xffff && bytes.subarray(0, 10).every((byte) => byte === 0);
}

/** Whether the first `bits` bits are the same; never across the two kinds of address. */
export function isInNetwork(ip: Ip, network: Ip, bits: number): boolean {
  if (ip.length !== network.length) return false;
  const whole = bits >> 3;
  if (ip.compare(network, 0, whole, 0, whole) !== 0) return false;
  const rest = bits & 7;
  return rest === 0 || (ip[whole]! ^ network[whole]!) >> (8 - rest) === 0;
}

/** `192.0.2.1`, or the 32 nibbles of an IPv6 address with dots between them (RFC 7208 §7.3). */
export function dottedIp(ip: Ip): string {
  return ip.length === 4 ? ip.join(".") : [...ip.toString("hex")].join(".");
}

/** The address as text, as whoever looks its names up wants it. */
export function ipText(ip: Ip): string {
  return ip.length === 4 ? ip.join(".") : ip.toString("hex").replace(/.{4}(?!$)/g, "$&:");
}
