// Resolvers for tests that answer from a few names, and the DNS files of the published suites.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Answer, DnsResolver } from "./look-ups.ts";
import { dnsError } from "./spf-suite.fixture.ts";

export const dataFolder = fileURLToPath(new URL("../../../../shared/data/", import.meta.url));

export function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}

/** `(name, type)` in the shapes and with the error codes of node:dns/promises `resolve`, as mailauth wants it. */
export type NodeResolver = (name: string, rrtype: string) => Promise<unknown[]>;

/** The same for us: its errors are values. One without a code is a bug, and thrown. */
export function asAnswers(resolver: NodeResolver): DnsResolver {
  const ask = async <T>(name: string, rrtype: string, shape: (record: never) => T): Promise<Answer<T>> => {
    try {
      const records = await resolver(name, rrtype);
      if (records.length === 0) return { kind: "absent", reason: "nodata" };
      return { kind: "found", records: records.map((record) => shape(record as never)) };
    } catch (error) {
      const { code } = error as { code?: string };
      if (!code?.startsWith("E")) throw error;
      if (code === "ENODATA") return { kind: "absent", reason: "nodata" };
      if (code === "ENOTFOUND") return { kind: "absent", reason: "nxdomain" };
      return { kind: "failed", reason: code.slice(1).toLowerCase() };
    }
  };
  const mx = ({ exchange, priority }: { exchange: string; priority: number }) => ({ exchange, preference: priority });
  return {
    txt: (name) => ask(name, "TXT", (strings: string[]) => strings.join("")),
    a: (name) => ask(name, "A", String),
    aaaa: (name) => ask(name, "AAAA", String),
    mx: (name) => ask(name, "MX", mx),
    ptr: (ip) => ask(reverseName(ip), "PTR", String),
    cname: (name) => ask(name, "CNAME", String),
  };
}

/** Of an IPv4 address, or of an IPv6 address with all its digits. */
function reverseName(ip: string): string {
  const [parts, suffix] = ip.includes(":") ? [[...ip.replaceAll(":", "")], "ip6"] : [ip.split("."), "in-addr"];
  return `${parts.reverse().join(".")}.${suffix}.arpa`;
}

/** Records by `TYPE name`; a text is an error code of node:dns. Every other name does not exist. */
export function fixedResolver(answers: Record<string, unknown[] | string>): NodeResolver {
  const known = new Map(Object.entries(answers));
  return async (name, rrtype) => {
    const answer = known.get(`${rrtype} ${name.toLowerCase()}`);
    if (answer === undefined) throw dnsError(known.has(name) ? "ENODATA" : "ENOTFOUND");
    if (typeof answer === "string") throw dnsError(answer);
    return rrtype === "TXT" ? answer.map((text) => [text]) : answer;
  };
}

type Listed = { name: string; type: string; replies?: string[]; rcode?: "norec" | "nxdomain" | "timeout" };
const codes = { norec: "ENODATA", nxdomain: "ENOTFOUND", timeout: "ETIMEOUT" } as const;

/** The DNS of rspamd's functional tests (`dns.json`, `rspamd-dns.json`). */
export function listedResolver(path: string): NodeResolver {
  const answers: Record<string, unknown[] | string> = Object.create(null);
  for (const { name, type, replies, rcode } of readJson(path) as Listed[]) {
    answers[name.toLowerCase()] = [];
    answers[`${type} ${name.toLowerCase()}`] = rcode ? codes[rcode] : type === "MX" ? replies!.map(toMx) : replies!;
  }
  return fixedResolver(answers);
}

function toMx(text: string): { priority: number; exchange: string } {
  const [priority, exchange] = text.split(" ");
  return { priority: Number(priority), exchange: exchange! };
}

export function withCrlf(text: string | Buffer): Buffer {
  return Buffer.from(text.toString("latin1").replace(/\r?\n/g, "\r\n"), "latin1");
}
