// Reads the published SPF suite for tests: its scenarios, and their zones as a resolver in memory (see the README beside
// the data). Only tests import this.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { NodeResolver } from "./look-ups.fixture.ts";

type ZoneRecord = string | Record<string, unknown>;
export type Zone = Record<string, ZoneRecord[]>;
export type SpfCase = {
  scenario: string;
  name: string;
  helo: string;
  host: string;
  mailfrom: string;
  results: string[];
  zone: Zone;
};

const file = fileURLToPath(new URL("../../../../shared/data/spf-rfc7208/rfc7208-tests.json", import.meta.url));

/** False when the suite is there, else why its tests are skipped. */
export const spfSuiteMissing = existsSync(file) ? false : "third-party cases are not here (../shared/data/spf-rfc7208)";

type Scenario = { description: string; zonedata: Zone; tests: Record<string, Record<string, unknown>> };

/** Every case of the suite with the zone of its scenario; none when the suite is not there. */
export function readSpfSuite(path: string = file): SpfCase[] {
  if (!existsSync(path)) return [];
  const scenarios = JSON.parse(readFileSync(path, "utf8")) as Scenario[];
  return scenarios.flatMap(({ description, zonedata, tests }) =>
    Object.entries(tests).map(([name, given]) => ({
      scenario: description,
      name,
      helo: String(given.helo),
      host: String(given.host),
      mailfrom: String(given.mailfrom ?? ""),
      results: [given.result].flat().map(String),
      zone: zonedata,
    })),
  );
}

/** What a name answers for a type: its records, nothing, or null for silence. A name that is not there is undefined. */
export function zoneAnswer(zone: Zone, name: string, rrtype: string): unknown[] | null | undefined {
  const key = Object.keys(zone).find((owner) => owner.toLowerCase() === name.toLowerCase());
  if (key === undefined) return undefined;
  const found: unknown[] = [];
  const hasTxt = zone[key]!.some((record) => typeof record === "object" && "TXT" in record);
  for (const record of zone[key]!) {
    if (record === "TIMEOUT") return found.length > 0 ? found : null;
    const [given, value] = Object.entries(record)[0]!;
    // Records given as SPF are published as TXT too, unless the name has TXT records of its own.
    const type = given === "SPF" && !hasTxt ? "TXT" : given;
    if (type !== rrtype || value === "NONE") continue;
    if (value === "TIMEOUT") return null;
    found.push(value);
  }
  return found;
}

/** The zone in memory, in the shapes and with the errors of node:dns. */
export function zoneResolver(zone: Zone): NodeResolver {
  const ask = (name: string, rrtype: string, aliases: number): unknown[] => {
    const found = zoneAnswer(zone, name, rrtype);
    if (found === undefined) throw dnsError("ENOTFOUND");
    if (found === null) throw dnsError("ETIMEOUT");
    if (found.length > 0) return found.map((value) => nodeShape(rrtype, value));
    const alias = zoneAnswer(zone, name, "CNAME")?.[0];
    if (alias === undefined || aliases === 0) throw dnsError("ENODATA");
    return ask(String(alias), rrtype, aliases - 1);
  };
  return async (name, rrtype) => ask(name, rrtype, 8);
}

function nodeShape(rrtype: string, value: unknown): unknown {
  if (rrtype === "TXT") return [value].flat().map(String);
  if (rrtype !== "MX") return value;
  const [priority, exchange] = value as [number, string];
  return { priority, exchange };
}

/** An error as node:dns throws it. */
export function dnsError(code: string): Error {
  return Object.assign(new Error(`query ${code}`), { code });
}
