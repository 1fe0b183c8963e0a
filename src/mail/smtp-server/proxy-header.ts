// The PROXY protocol, version 1 (haproxy's proxy-protocol.txt §2.1): a load balancer's first line tells whom it speaks
// for. Pure. Who may be believed is decided by the caller.
import { isIP } from "node:net";

export const PROXY_HEADER_OCTETS_MAX = 107;

/** `own`: the balancer speaks for itself (a health check), or does not know. */
export type ProxyHeader = { kind: "client"; ip: string; port: number } | { kind: "own" } | { kind: "bad" };

/** Reads the first line, without its CRLF. */
export function parseProxyHeader(line: string): ProxyHeader {
  if (line.length + 2 > PROXY_HEADER_OCTETS_MAX) return { kind: "bad" };
  if (/^PROXY UNKNOWN(?: |$)/.test(line)) return { kind: "own" };
  const match = /^PROXY TCP([46]) ([0-9A-Fa-f:.]+) ([0-9A-Fa-f:.]+) (\d{1,5}) (\d{1,5})$/.exec(line);
  if (!match) return { kind: "bad" };
  const [, family, source = "", target = "", sourcePort, targetPort] = match;
  const isRight = [source, target].every((ip) => isIP(ip) === Number(family));
  const ports = [Number(sourcePort), Number(targetPort)];
  if (!isRight || ports.some((port) => port > 65_535)) return { kind: "bad" };
  return { kind: "client", ip: source, port: ports[0] ?? 0 };
}
