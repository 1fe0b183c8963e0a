// Content-Type and Content-Disposition as other people's software wrote them: RFC 2045 §5.1 (its comments are taken off, but
// not out of the names of files), RFC 2183, RFC 2231, RFC 2047 where it must not stand, missing semicolons and quotes. Never throws. The strict reading of what customers give us is
// in part-headers.ts.
import { withoutComments } from "./comments.ts";
import { decodeText } from "./decode-charset.ts";
import { decodeWords } from "./parse-head.ts";

/** `value`: lower case, "" when there is none. Parameters by lower-case name, decoded; of two the first. */
export type FieldWithParameters = { value: string; parameters: Map<string, string> };

const fieldCharsMax = 64 * 1_024;
const parametersMax = 100;
const sectionsMax = 200;
const valueCharsMax = 16_384;

type Section = { value: string; encoded: boolean };

/** Reads an unfolded field value. */
export function parseParameters(text: string): FieldWithParameters {
  const { value, rest } = splitValue(withoutComments(text.slice(0, fieldCharsMax)).trimStart());
  const plain = new Map<string, string>();
  const sections = new Map<string, Map<number, Section>>();
  for (const { name, raw } of rawParameters(rest)) {
    const match = /^([^*]+)\*(?:(\d{1,3})(\*?))?$/.exec(name);
    if (match === null) {
      if (!plain.has(name)) plain.set(name, decodeWords(raw));
      continue;
    }
    const [, base, index, star] = match;
    const known = sections.get(base!) ?? new Map<number, Section>();
    const at = Number(index ?? 0);
    if (!known.has(at) && known.size < sectionsMax)
      known.set(at, { value: raw, encoded: index === undefined || star === "*" });
    sections.set(base!, known);
  }
  // RFC 2231 forms win over plain ones of the same name: those are for readers that do not know RFC 2231.
  // Of a value whose beginning is missing the rest is better than nothing, and nothing else.
  for (const [name, known] of sections) {
    const joined = joinSections(known);
    if (!plain.has(name) || (known.has(0) && joined !== "")) plain.set(name, joined);
  }
  for (const [name, given] of plain) plain.set(name, given.slice(0, valueCharsMax).toWellFormed());
  return { value, parameters: plain };
}

// Also quoted, with blanks around its slash, with a colon behind it; and where there is none, a parameter comes first.
function splitValue(input: string): { value: string; rest: string } {
  const written = /^[;\s]*["']?([^;\s,"'/=]*(?:\s{0,4}\/\s{0,4}[^;\s,"'/]*)?)["']?/.exec(input)!;
  const rest = input.slice(written[0].length);
  if (!written[1]!.includes("/") && /^\s*=/.test(rest)) return { value: "", rest: ` ${input}` };
  return { value: written[1]!.replace(/\s/g, "").replace(/:$/, "").toLowerCase(), rest };
}

type RawParameter = { name: string; raw: string };

// A parameter begins behind a semicolon, or behind white space in fields that forgot it.
function* rawParameters(text: string): Generator<RawParameter> {
  const parameter = /[;\s]\s*([^\s;="'()<>,]{1,80})\s*=\s*/y;
  let count = 0;
  for (let at = 0; at < text.length && count < parametersMax; ) {
    parameter.lastIndex = at;
    const match = parameter.exec(text);
    if (match === null) {
      at = nextStart(text, at);
      continue;
    }
    const { raw, end } = readValue(text, parameter.lastIndex);
    yield { name: match[1]!.toLowerCase(), raw };
    count += 1;
    at = end;
  }
}

// Behind the white space at hand: a parameter that does not begin behind its first character begins behind none of it.
function nextStart(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && /\s/.test(text[at]!)) at++;
  while (at < text.length && !/[;\s]/.test(text[at]!)) at++;
  return at;
}

function readValue(text: string, start: number): { raw: string; end: number } {
  if (text[start] === '"') {
    const end = closingQuote(text, start + 1);
    if (end !== -1) return { raw: text.slice(start + 1, end).replace(/\\(["\\])/g, "$1"), end: end + 1 };
  }
  // Up to the semicolon: names of files have spaces, also without quotes. But another parameter may follow a space.
  const semicolon = text.indexOf(";", start);
  const whole = text.slice(start, semicolon === -1 ? text.length : semicolon);
  const next = /\s(?:charset|boundary|name|filename|format|type|size)\s*=/i.exec(whole);
  const raw = (next ? whole.slice(0, next.index) : whole).replace(/^"|"$/g, "").trim();
  return { raw, end: start + (next ? next.index : whole.length) };
}

function closingQuote(text: string, start: number): number {
  for (let at = start; at < text.length; at++) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at;
  }
  return -1;
}

// RFC 2231 §3, §4.1: sections in order, the charset in the first, percent signs only in those with a star. From the lowest
// that is there.
function joinSections(known: Map<number, Section>): string {
  const [, label, encodedRest] = /^([^']*)'[^']*'(.*)$/s.exec(known.get(0)?.value ?? "") ?? [];
  const chunks: Buffer[] = [];
  for (let index = Math.min(...known.keys()); known.has(index); index++) {
    const { value, encoded } = known.get(index)!;
    const text = index === 0 && encoded && encodedRest !== undefined ? encodedRest : value;
    chunks.push(encoded ? percentDecode(text) : Buffer.from(text));
  }
  const isEncoded = known.get(0)?.encoded === true;
  const joined = Buffer.concat(chunks);
  return isEncoded ? decodeText(joined, label || "utf-8").text : decodeWords(joined.toString("utf8"));
}

function percentDecode(text: string): Buffer {
  const binary = text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  // Characters that stand there unencoded are UTF-8.
  return /^[\x00-\xff]*$/.test(binary) ? Buffer.from(binary, "latin1") : Buffer.from(binary);
}
