// The PROXY protocol, versions 1 (text) and 2 (binary) of haproxy's proxy-protocol.txt §2: what a load balancer says first
// tells whom it speaks for. Pure. Who may be believed is decided by the caller. Not here: the extra fields of version 2,
// which are skipped.
import { isIP } from "node:net";

/** §2.1: the longest line of version 1. */
const PROXY_LINE_OCTETS_MAX = 107;
/** Addresses and extra fields of version 2; real balancers stay below 1 KiB. */
export const PROXY_BINARY_OCTETS_MAX = 4_096;

/** `own`: the balancer speaks for itself (a health check), or does not know. */
export type ProxyHeader = { kind: "client"; ip: string; port: number } | { kind: "own" } | { kind: "bad" };

/** `more`: not all of it is there yet. `octets`: how much of the bytes was the header. */
export type ProxyProgress = { kind: "more" } | { kind: "read"; header: ProxyHeader; octets: number };

const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
const FIXED_OCTETS = 16;
const LF = 0x0a;
const BAD: ProxyProgress = { kind: "read", header: { kind: "bad" }, octets: 0 };

/** Reads the first bytes of a connection. */
export function readProxyHeader(bytes: Buffer): ProxyProgress {
  if (bytes.length === 0) return { kind: "more" };
  const seen = Math.min(bytes.length, SIGNATURE.length);
  const isBinary = bytes.subarray(0, seen).equals(SIGNATURE.subarray(0, seen));
  return isBinary ? readBinary(bytes) : readText(bytes);
}

function readText(bytes: Buffer): ProxyProgress {
  const end = bytes.subarray(0, PROXY_LINE_OCTETS_MAX).indexOf(LF);
  if (end === -1) return bytes.length < PROXY_LINE_OCTETS_MAX ? { kind: "more" } : BAD;
  return { kind: "read", header: parseLine(bytes.toString("latin1", 0, end + 1)), octets: end + 1 };
}

function parseLine(line: string): ProxyHeader {
  if (/^PROXY UNKNOWN(?: [^\r\n]*)?\r\n$/.test(line)) return { kind: "own" };
  const match = /^PROXY TCP([46]) ([0-9A-Fa-f:.]+) ([0-9A-Fa-f:.]+) (\d{1,5}) (\d{1,5})\r\n$/.exec(line);
  if (!match) return { kind: "bad" };
  const [, family, source = "", target = "", sourcePort, targetPort] = match;
  const isRight = [source, target].every((ip) => isIP(ip) === Number(family));
  const ports = [Number(sourcePort), Number(targetPort)];
  if (!isRight || ports.some((port) => port > 65_535)) return { kind: "bad" };
  return { kind: "client", ip: source, port: ports[0] ?? 0 };
}

function readBinary(bytes: Buffer): ProxyProgress {
  if (bytes.length < FIXED_OCTETS) return { kind: "more" };
  const length = bytes.readUInt16BE(14);
  if (length > PROXY_BINARY_OCTETS_MAX) return BAD;
  const octets = FIXED_OCTETS + length;
  if (bytes.length < octets) return { kind: "more" };
  return { kind: "read", header: parseBinary(bytes.subarray(0, octets)), octets };
}

const LOCAL = 0x20;
const PROXY = 0x21;
const UNSPECIFIED = 0x00;
const TCP4 = 0x11;
const TCP6 = 0x21;
/** §2.2: UDP over IPv4 and IPv6, Unix stream and datagram sockets, with the octets of both their addresses. */
const OTHERS: ReadonlyMap<number, number> = new Map([
  [0x12, 12],
  [0x22, 36],
  [0x31, 216],
  [0x32, 216],
]);

/**
 * Version and command, then family and transport, then both addresses and both ports. §2.2: what is valid and no TCP tells
 * nothing that we could use, and is taken as unspecified.
 */
function parseBinary(bytes: Buffer): ProxyHeader {
  const [command, family] = [bytes[12], bytes[13]];
  if (command === LOCAL) return { kind: "own" };
  if (command !== PROXY) return { kind: "bad" };
  const addresses = bytes.subarray(FIXED_OCTETS);
  if (family === UNSPECIFIED) return { kind: "own" };
  if (family === TCP4 && addresses.length >= 12) {
    return { kind: "client", ip: [...addresses.subarray(0, 4)].join("."), port: addresses.readUInt16BE(8) };
  }
  const octets = OTHERS.get(family ?? 0);
  if (octets !== undefined && addresses.length >= octets) return { kind: "own" };
  if (family !== TCP6 || addresses.length < 36) return { kind: "bad" };
  const groups = Array.from({ length: 8 }, (_, index) => addresses.readUInt16BE(index * 2).toString(16));
  return { kind: "client", ip: groups.join(":"), port: addresses.readUInt16BE(32) };
}
