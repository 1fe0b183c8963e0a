// Resolvers for tests that answer from a few names, and the DNS files of the published suites.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { NodeResolver } from "./look-ups.ts";
import { dnsError } from "./spf-suite.fixture.ts";

export const dataFolder = fileURLToPath(new URL("../../../../shared/data/", import.meta.url));

export function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
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
