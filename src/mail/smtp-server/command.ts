// One command line as a client sent it: verb, path, parameters (RFC 5321 §4.1.1, §4.1.2). Tolerant where real clients
// are sloppy and nothing can come of it (spaces after the colon, no angle brackets); strict about control characters and
// text that is not UTF-8. It does not decide anything about an address.
import { domainToASCII } from "node:url";
import { hasBadALabel, normalizeDomain, parseAddress } from "../address.ts";

export type Command = { verb: string; rest: string };

/** A mailbox of MAIL or RCPT. `domain` is ASCII and lower-case; null when there is none or it is an address literal. */
export type Path = {
  /** As it is to be shown and stored; '' is the null reverse-path. */
  text: string;
  local: string;
  domain: string | null;
  smtputf8: boolean;
};

export type PathCommand = { path: Path; params: Map<string, string | null> };

/** RFC 5321 §4.5.3.1.3: 256 with the angle brackets. */
const PATH_OCTETS_MAX = 254;
const PARAMS_MAX = 10;
const CONTROL = /[\x00-\x1f\x7f]/;
// Deliberate: spaces within. Machines are called that, Postfix takes it, and RFC 5321 §4.1.4 refuses no mail for a name.
const HELO = /^[^\s\x00-\x20\x7f](?:[^\s\x00-\x1f\x7f]| ){0,254}$/u;

const ADDRESS_LITERAL = /^\[[^[\]]+\]$/;
const NAME = /^[a-z0-9_.-]{1,253}$/;

/** Splits a line; null when it holds control characters (a tab counts as a space) or is not UTF-8. */
export function parseCommand(line: Buffer): Command | null {
  const text = line.toString("utf8").replaceAll("\t", " ");
  if (CONTROL.test(text) || text.includes("\ufffd")) return null;
  const space = text.indexOf(" ");
  if (space === -1) return { verb: text.toUpperCase(), rest: "" };
  return { verb: text.slice(0, space).toUpperCase(), rest: text.slice(space + 1).trim() };
}

/** The client's name from HELO or EHLO; null when it gave none that could be one. */
export function parseHelo(rest: string): string | null {
  return HELO.test(rest) ? rest : null;
}

/** Reads `FROM:<path> PARAM=value …` (`word` is FROM or TO); null for bad syntax. */
export function parsePathCommand(rest: string, word: "FROM" | "TO"): PathCommand | null {
  if (rest.slice(0, word.length + 1).toUpperCase() !== `${word}:`) return null;
  const cut = cutPath(rest.slice(word.length + 1).trimStart());
  if (!cut || !isPathLength(cut.path)) return null;
  const params = parseParams(cut.rest);
  const path = parsePath(cut.path);
  return params && path && isPathLength(path.text) ? { path, params } : null;
}

// Both as it is given and as it is stored: the ASCII form of a domain is longer.
function isPathLength(text: string): boolean {
  return Buffer.byteLength(text) <= PATH_OCTETS_MAX;
}

function cutPath(text: string): { path: string; rest: string } | null {
  if (!text.startsWith("<")) {
    const end = text.indexOf(" ");
    const path = end === -1 ? text : text.slice(0, end);
    if (path === "" || /[<>"]/.test(path)) return null;
    return { path, rest: end === -1 ? "" : text.slice(end + 1) };
  }
  const end = closingBracket(text);
  if (end === -1) return null;
  const rest = text.slice(end + 1);
  return rest === "" || rest.startsWith(" ") ? { path: text.slice(1, end), rest: rest.trim() } : null;
}

/** A `>` inside quotes does not close the path. */
function closingBracket(text: string): number {
  let quoted = false;
  for (let at = 1; at < text.length; at += 1) {
    const character = text[at];
    if (quoted && character === "\\") at += 1;
    else if (character === '"') quoted = !quoted;
    else if (character === ">" && !quoted) return at;
  }
  return -1;
}

function parseParams(text: string): Map<string, string | null> | null {
  const words = text.split(" ").filter((word) => word !== "");
  if (words.length > PARAMS_MAX) return null;
  const params = new Map<string, string | null>();
  for (const word of words) {
    const equals = word.indexOf("=");
    const key = (equals === -1 ? word : word.slice(0, equals)).toUpperCase();
    const value = equals === -1 ? null : word.slice(equals + 1);
    if (!/^[A-Z0-9][A-Z0-9-]*$/.test(key) || value === "" || params.has(key)) return null;
    params.set(key, value);
  }
  return params;
}

function parsePath(given: string): Path | null {
  // RFC 5321 appendix C: a source route is accepted and ignored, never followed.
  const text = given.replace(/^@[^\s:@]+(?:,@[^\s:@]+)*:/, "");
  if (text === "") return given === "" ? { text: "", local: "", domain: null, smtputf8: false } : null;
  const parsed = parseAddress(text);
  if (parsed.ok) {
    const { local, domain, email, smtputf8 } = parsed.address;
    return { text: email, local, domain, smtputf8 };
  }
  return parseOddPath(text);
}

/** What is no address by our rules may still be one by another server's: long local parts, dots in odd places. */
function parseOddPath(text: string): Path | null {
  if (/[\s<>\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(text)) return null;
  const at = text.lastIndexOf("@");
  const local = at === -1 ? text : text.slice(0, at);
  // Behind a source route there is no second one; kept, it would be taken for one the next time it is read.
  if (local === "" || local.startsWith("@")) return null;
  const domain = at === -1 ? null : normalizeDomain(text.slice(at + 1));
  const shown = domain === null ? text : `${local}@${domain}`;
  return { text: shown, local, domain, smtputf8: /[^\x00-\x7f]/.test(shown) };
}

/**
 * True for the null path, and for one whose domain could exist. Names of one label, names with underscores or hyphens in odd
 * places and address literals are what machines call themselves; a name with other characters or a false A-label is nobody's. Deliberate:
 * empty and over-long labels are left to SPF, which has a result for them (RFC 7208 §4.3: none).
 */
export function couldReturn({ text, domain }: Path): boolean {
  if (text === "" || domain !== null) return true;
  const given = text.slice(text.lastIndexOf("@") + 1);
  if (ADDRESS_LITERAL.test(given)) return true;
  const name = (/^[\x00-\x7f]*$/.test(given) ? given.toLowerCase() : domainToASCII(given)).replace(/\.$/, "");
  return NAME.test(name) && !hasBadALabel(name);
}
