// The addresses that Postern listens on, each with the variable that sets it: which of them clash, and why one cannot be had.
// Not here: holding them (held-places.ts, free-places.ts), failures of a start (../process/start-problem.ts).
import { isIPv4 } from "node:net";

export type HostPort = { host: string; port: number };
export type Place = HostPort & { variable: string };
/** What is wrong, and what to do. */
export type PortProblem = { says: string; remedy: string };

type Places = Record<"http" | "https" | "internal" | "mx" | "submission" | "submissions", HostPort | null> & {
  acme: { http: HostPort } | null;
};

/** Every address that is listened on, with the variable that sets it. */
export function placesOf(settings: Places): Place[] {
  const { http, https, acme, internal, mx, submission, submissions } = settings;
  const places: [string, HostPort | null][] = [
    ["POSTERN_HTTP", http],
    ["POSTERN_HTTPS", https],
    ["POSTERN_ACME_HTTP", acme?.http ?? null],
    ["POSTERN_INTERNAL", internal],
    ["POSTERN_MX", mx],
    ["POSTERN_SUBMISSION", submission],
    ["POSTERN_SUBMISSIONS", submissions],
  ];
  return places.flatMap(([variable, place]) => (place ? [{ variable, ...place }] : []));
}

/** What is wrong with settings that name one address, each two of them once. */
export function clashesOf(places: readonly Place[]): string[] {
  return places.flatMap((one, at) =>
    places
      .slice(0, at)
      .filter((other) => one.port !== 0 && one.port === other.port && (isWithin(one, other) || isWithin(other, one)))
      .map((other) => `${nameOf(other)} and ${nameOf(one)} are one address; give each its own.`),
  );
}

function isWithin({ host }: Place, other: Place): boolean {
  if (host.toLowerCase() === other.host.toLowerCase() || other.host === "::") return true;
  return other.host === "0.0.0.0" && isIPv4(host);
}

/** How a sentence names it. */
export function nameOf({ variable, host, port }: Place): string {
  return `${variable} (${addressOf({ host, port })})`;
}

/** What `addressOf` writes, read again: `host:port` with an IPv6 address in brackets; null for anything else. */
export function readAddress(text: string): HostPort | null {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  return match && port <= 65_535 ? { host: match[1] ?? match[2] ?? "", port } : null;
}

/** As it is written in a setting: `host:port`, an IPv6 address in brackets. */
export function addressOf({ host, port }: HostPort): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Why this place cannot be listened on, from the code that the system gave. */
export function portProblem({ variable, host, port }: Place, code: string): PortProblem {
  const where = `${addressOf({ host, port })} (${variable})`;
  if (code === "EADDRINUSE") {
    return {
      says: `${where} is in use by another program.`,
      remedy: `Stop that program (ss -ltnp shows it), or set ${variable} to another port.`,
    };
  }
  if (code === "EACCES") {
    return {
      says: `This user may not listen on ${where}.`,
      remedy: "Ports below 1024 need root, or: sysctl net.ipv4.ip_unprivileged_port_start=25",
    };
  }
  return { says: `${where} cannot be listened on: ${code}.`, remedy: `Set ${variable} to an address of this machine.` };
}
