// The macro strings of SPF (RFC 7208 §7): strict reading and expansion. Names that need DNS come in ready (`p`).
// The letters c, r and t, which only explanations may use (§7.2), are refused: we do not fetch explanations.
import { dottedIp, type Ip } from "./ip.ts";

export type MacroPart =
  | { literal: string }
  | { letter: string; escape: boolean; keep: number; reverse: boolean; delimiters: string };

export type MacroString = MacroPart[];

export type MacroValues = {
  sender: string;
  local: string;
  sender_domain: string;
  domain: string;
  helo: string;
  ip: Ip;
  /** The validated name of the client (§5.5), "unknown" when there is none or nobody asked. */
  client_name: string;
};

const expansion = /^([slodiphv])(\d{0,3})(r?)([.\-+,/_=]*)$/i;
// §7.1 toplabel: not all digits, no hyphen at the ends. Linear: a record can be one label of 64 KiB.
const topLabel = /^(?!\d+$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/i;
const specials = new Map([
  ["%%", "%"],
  ["%_", " "],
  ["%-", "%20"],
]);

/** Reads a macro string; null when it breaks the grammar of §7.1. */
export function parseMacroString(text: string): MacroString | null {
  const parts: MacroString = [];
  const token = /[\x21-\x24\x26-\x7e]+|%[%_-]|%\{[^}]*\}/y;
  while (token.lastIndex < text.length) {
    const match = token.exec(text)?.[0];
    if (match === undefined) return null;
    if (match.startsWith("%{")) {
      const part = parseExpansion(match.slice(2, -1));
      if (part === null) return null;
      parts.push(part);
    } else parts.push({ literal: specials.get(match) ?? match });
  }
  return parts;
}

function parseExpansion(text: string): MacroPart | null {
  const match = expansion.exec(text);
  if (match === null) return null;
  const [, letter, digits, reverse, delimiters] = match;
  const keep = digits === "" ? 0 : Number(digits);
  // §7.1: the number of parts to keep must not be zero.
  if (digits !== "" && keep === 0) return null;
  const lower = letter!.toLowerCase();
  return { letter: lower, escape: letter !== lower, keep, reverse: reverse !== "", delimiters: delimiters || "." };
}

/** Reads a domain-spec: a macro string that ends in a macro or in a dot and a top label. Null when it does not. */
export function parseDomainSpec(text: string): MacroString | null {
  const parts = parseMacroString(text);
  if (parts === null || parts.length === 0) return null;
  if (/%(?:[%_-]|\{[^}]*\})$/.test(text)) return parts;
  const labels = text.replace(/\.$/, "").split(".");
  return labels.length > 1 && topLabel.test(labels.at(-1)!) ? parts : null;
}

/** True if the macro string uses one of these letters (RFC 7208 §7.2). */
export function usesMacro(parts: MacroString, letters: string): boolean {
  return parts.some((part) => "letter" in part && letters.includes(part.letter));
}

/**
 * The text of a macro string. A result longer than a domain name loses labels from the left (§7.3); a dot at the end
 * is dropped.
 */
export function expandMacros(parts: MacroString, values: MacroValues): string {
  const text = parts.map((part) => ("literal" in part ? part.literal : expandOne(part, values))).join("");
  return cutLeft(text.replace(/\.$/, ""));
}

type Expansion = Exclude<MacroPart, { literal: string }>;

function expandOne(part: Expansion, values: MacroValues): string {
  let value = macroValue(part.letter, values);
  if (part.reverse || part.keep > 0 || part.delimiters !== ".") {
    const pieces = splitAtAny(value, part.delimiters);
    if (part.reverse) pieces.reverse();
    value = (part.keep > 0 ? pieces.slice(-part.keep) : pieces).join(".");
  }
  return part.escape ? escapeForUrl(value) : value;
}

function macroValue(letter: string, values: MacroValues): string {
  switch (letter) {
    case "s":
      return values.sender;
    case "l":
      return values.local;
    case "o":
      return values.sender_domain;
    case "d":
      return values.domain;
    case "i":
      return dottedIp(values.ip);
    case "p":
      return values.client_name;
    case "v":
      return values.ip.length === 4 ? "in-addr" : "ip6";
    default:
      return values.helo;
  }
}

function splitAtAny(text: string, delimiters: string): string[] {
  const pieces: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (!delimiters.includes(text[at]!)) continue;
    pieces.push(text.slice(start, at));
    start = at + 1;
  }
  return [...pieces, text.slice(start)];
}

// §7.3: everything but RFC 3986's unreserved characters.
function escapeForUrl(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

const nameLengthMax = 253;

function cutLeft(name: string): string {
  if (name.length <= nameLengthMax) return name;
  const dot = name.indexOf(".", name.length - nameLengthMax - 1);
  return dot === -1 ? name : name.slice(dot + 1);
}

/** Whether a name may be asked for (§4.3, §4.8): two labels or more of 1 to 63 visible characters, a true top label. */
export function isQueryName(name: string): boolean {
  const labels = name.split(".");
  return (
    name.length <= nameLengthMax &&
    labels.length > 1 &&
    labels.every((label) => /^[\x20-\x7e]{1,63}$/.test(label)) &&
    topLabel.test(labels.at(-1)!)
  );
}
