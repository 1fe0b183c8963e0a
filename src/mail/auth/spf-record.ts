// An SPF record as a list of directives (RFC 7208 §3, §4.5, §4.6, §5, §6, §12). The whole record is read before any of
// it is used: one wrong term makes it a permerror. Does not ask DNS.
import { type Ip, parseIpv4, parseIpv6 } from "./ip.ts";
import { type MacroString, parseDomainSpec, parseMacroString } from "./spf-macro.ts";

export type Qualifier = "pass" | "fail" | "softfail" | "neutral";

export type Directive = { qualifier: Qualifier } & (
  | { kind: "all" }
  | { kind: "include" | "exists"; target: MacroString }
  | { kind: "ptr"; target: MacroString | null }
  | { kind: "a" | "mx"; target: MacroString | null; bits4: number; bits6: number }
  | { kind: "network"; network: Ip; bits: number }
);

export type SpfRecord = { directives: Directive[]; redirect: MacroString | null };

type Mechanism = Directive extends infer D ? (D extends Directive ? Omit<D, "qualifier"> : never) : never;

const qualifiers = new Map<string, Qualifier>([
  ["+", "pass"],
  ["-", "fail"],
  ["~", "softfail"],
  ["?", "neutral"],
]);

/** Whether a TXT record is an SPF record: §4.5, the version and then a space or the end. */
export function isSpfRecord(text: string): boolean {
  return /^v=spf1(?: |$)/i.test(text);
}

/** Reads a record that `isSpfRecord`; null when any term breaks the grammar. */
export function parseSpfRecord(text: string): SpfRecord | null {
  const record: SpfRecord = { directives: [], redirect: null };
  let explained = false;
  for (const term of text.slice("v=spf1".length).split(" ")) {
    if (term === "") continue;
    const modifier = /^([a-z][a-z0-9_.-]*)=(.*)$/is.exec(term);
    if (modifier === null) {
      const directive = parseDirective(term);
      if (directive === null) return null;
      record.directives.push(directive);
      continue;
    }
    const name = modifier[1]!.toLowerCase();
    const value = modifier[2]!;
    // §6: these two at most once; others may stand there and mean nothing to us.
    if (name === "redirect") {
      if (record.redirect !== null) return null;
      record.redirect = parseDomainSpec(value);
      if (record.redirect === null) return null;
    } else if (name === "exp") {
      if (explained || parseDomainSpec(value) === null) return null;
      explained = true;
    } else if (!isUnknownValue(value)) return null;
  }
  return record;
}

// Letters for explanations only are no reason to refuse a modifier nobody knows.
function isUnknownValue(value: string): boolean {
  return parseMacroString(value.replace(/%\{[crt]/gi, "%{s")) !== null;
}

function parseDirective(term: string): Directive | null {
  const qualifier = qualifiers.get(term[0]!);
  const [, name, rest] = /^([^:/]*)(.*)$/s.exec(qualifier ? term.slice(1) : term)!;
  const mechanism = parseMechanism(name!.toLowerCase(), rest!);
  return mechanism && { ...mechanism, qualifier: qualifier ?? "pass" };
}

function parseMechanism(name: string, rest: string): Mechanism | null {
  switch (name) {
    case "all":
      return rest === "" ? { kind: "all" } : null;
    case "include":
    case "exists": {
      const target = rest.startsWith(":") ? parseDomainSpec(rest.slice(1)) : null;
      return target && { kind: name, target };
    }
    case "ptr": {
      if (rest === "") return { kind: "ptr", target: null };
      const target = rest.startsWith(":") ? parseDomainSpec(rest.slice(1)) : null;
      return target && { kind: "ptr", target };
    }
    case "a":
    case "mx":
      return parseHosts(name, rest);
    case "ip4":
      return parseNetwork(/^:([\d.]+)(?:\/([^/]*))?$/.exec(rest), parseIpv4);
    case "ip6":
      return parseNetwork(/^:([0-9a-f:.]+)(?:\/([^/]*))?$/i.exec(rest), parseIpv6);
    default:
      return null;
  }
}

// §5.3, §5.4: an optional domain and `/bits4`, `//bits6` or `/bits4//bits6`. A slash may also belong to the domain.
function parseHosts(kind: "a" | "mx", rest: string): Mechanism | null {
  // Anchored at the end alone: with the domain in the same expression, one record of 64 KiB took minutes.
  const lengths = /(?:\/(\d+))?(?:\/\/(\d+))?$/.exec(rest)!;
  const domain = rest.slice(0, lengths.index);
  if (domain !== "" && !domain.startsWith(":")) return null;
  const target = domain === "" ? null : parseDomainSpec(domain.slice(1));
  const bits4 = readBits(lengths[1], 32);
  const bits6 = readBits(lengths[2], 128);
  if ((domain !== "" && target === null) || bits4 === null || bits6 === null) return null;
  return { kind, target, bits4, bits6 };
}

function parseNetwork(match: RegExpExecArray | null, parse: (text: string) => Ip | null): Mechanism | null {
  const network = match && parse(match[1]!);
  if (!network) return null;
  const bits = readBits(match[2], network.length * 8);
  return bits === null ? null : { kind: "network", network, bits };
}

// §12: no leading zeros; a missing length is the whole address.
function readBits(text: string | undefined, max: number): number | null {
  if (text === undefined) return max;
  return /^(?:0|[1-9]\d{0,2})$/.test(text) && Number(text) <= max ? Number(text) : null;
}
