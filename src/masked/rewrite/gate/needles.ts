// Does a text hold what must not leave? For the leak gate; shares nothing with what writes replies. An address is found with
// any tag, and at Gmail with any dots; what is plainly a longer address of somebody else is let pass, unless the text is one
// in which letters stand side by side by chance.
import { parse } from "tldts";
import { isGlued } from "../public-providers.ts";
import { bareLetters, bareOctets } from "./bare-letters.ts";
import { GAP, isCoded } from "./disguises.ts";

/** `chance`: decoded from who knows where, or no text at all: what stands before an address belongs to nothing. */
export type Searched = { text: string; chance: boolean };

/** Secrets, and what stands in every text that holds one of them, in all its readings. */
export type Needles = { list: readonly string[]; literals: readonly string[] };

/** Makes the needles for a list of secrets, given in lower case. */
export function needlesOf(list: readonly string[]): Needles {
  return { list, literals: [...new Set(list.map(literalOf))] };
}

/**
 * For each secret the pieces whose letters stand side by side wherever it does, in all readings that join lines. At Gmail dots
 * may stand anywhere in a local part.
 */
export function piecesOf(list: readonly string[]): string[][] {
  return list.map((needle) => {
    const address = needle.replace(SHOWN_AT, "@");
    const isDotless = /@(?:gmail|googlemail)\.com/.test(address);
    const pieces = (isDotless ? address.slice(address.lastIndexOf("@")) : address).split(/[\s>|._@-]+/);
    return pieces.filter((piece) => piece !== "");
  });
}

/** As `mayHold` of a text without any code, by the pieces of `piecesOf`. */
export function mayHoldPieces(text: string, lists: readonly (readonly string[])[]): boolean {
  const bare = bareLetters(text, GAP);
  return lists.some((pieces) => pieces.every((piece) => bare.includes(piece))) || REVERSE_BARE.test(bare);
}

const REVERSE_BARE = /r\.[a-z2-7]{26}/;

/**
 * False: no reading of this text that only joins its lines can hold a secret or a reverse address. What such a reading takes
 * out is no letter of either, so without all of that the text must hold what every find holds. Far cheaper than the search.
 */
export function mayHold(text: string, { literals }: Needles): boolean {
  return holdsLiteral(bareLetters(text, GAP), literals);
}

/** The same of decoded octets as they are, for all readings: their codes are looked at closely, and their tags were taken out. */
export function octetsMayHold(text: string, { literals }: Needles): boolean {
  const bare = bareOctets(text);
  return (
    bare === null || isCoded(text.toLowerCase()) || bare.some((one) => isCoded(one) || holdsLiteral(one, literals))
  );
}

function holdsLiteral(bare: string, literals: readonly string[]): boolean {
  return literals.some((literal) => bare.includes(literal)) || REVERSE_BARE.test(bare);
}

/** A secret; an address also with a +tag, and one in words (`anna at home.example`) only so. */
export function holdsSecret({ text, chance }: Searched, { list, literals }: Needles): boolean {
  const plain = text.includes(GAP) ? text.replaceAll(GAP, "") : text;
  if (!literals.some((literal) => plain.includes(literal))) return false;
  const gaps = lazily(() => gapsOf(text));
  return list.some((given) => {
    const [needle, joint] = given.includes(SHOWN_AT) ? [given.replace(SHOWN_AT, "@"), SHOWN_JOINT] : [given, JOINT];
    if (!needle.includes("@") || REVERSE_ADDRESS.test(needle)) return holdsName(plain, needle);
    for (const { from, to, isPath } of placesOf(plain, needle, joint)) {
      if (chance) return true;
      const isLonger = isPath ? /[a-z0-9.?&]/.test(plain[from - 1] ?? " ") : continuesBefore(plain, from, gaps);
      const isPlain = !isPath && joint === JOINT;
      if (isLonger && !(isPlain && isGluedTo(plain.slice(Math.max(0, from - 2), from), needle))) continue;
      if (!continuesBehind(plain, to, needle, gaps)) return true;
    }
    return false;
  });
}

function isGluedTo(before: string, needle: string): boolean {
  const at = needle.lastIndexOf("@");
  return isGlued(before, needle.slice(0, at), needle.slice(at + 1));
}

/** Stands wherever the needle does: the longest piece of the domain or name, for its dots may be written as words. */
function literalOf(needle: string): string {
  const address = needle.replace(SHOWN_AT, "@");
  const pieces = address.slice(address.lastIndexOf("@") + 1).split(/[\s>|._-]+/);
  return pieces.reduce((one, other) => (other.length > one.length ? other : one), "");
}

const REVERSE_ADDRESS = /^r\.[a-z2-7]{26}@/;

/** A host, or a reverse address: random enough to be none by chance. */
function holdsName(text: string, needle: string): boolean {
  if (text.includes(needle)) return true;
  return needle.includes("@") && placesOf(text, needle).next().done === false;
}

const LOCAL_MAX = 200;

/** `isPath`: as return paths hold it (VERP), where more of the path may stand before. */
type FoundAt = { from: number; to: number; isPath: boolean };

/** What joins the parts of an address: blanks and quotes are allowed beside the `@`, people and list programs write others. */
const JOINT =
  /(?:"?[ \t\u00a0]{0,2}@[ \t\u00a0]{0,2}|[=%]|[-+]40|[-_]at[-_]|[ \t\u00a0]?[[({][ \t]?at[ \t]?[\])}][ \t]?)$/;
const JOINT_MAX = 20;
const SHOWN_AT = " at ";
/** Also where a line of a quote ends. */
const SHOWN_JOINT = /[\s>|]{1,8}at[\s>|]{1,8}$/;

/** Where the address stands, with a tag or without. */
function* placesOf(text: string, needle: string, pattern = JOINT): Generator<FoundAt> {
  const at = needle.lastIndexOf("@");
  const [local, domain] = [needle.slice(0, at), needle.slice(at + 1)];
  for (let next = text.indexOf(domain); next !== -1; next = text.indexOf(domain, next + 1)) {
    const [joint] = pattern.exec(text.slice(Math.max(0, next - JOINT_MAX), next)) ?? [];
    if (joint === undefined) continue;
    const end = next - joint.length;
    const head = text.slice(Math.max(0, end - LOCAL_MAX), end);
    const isPath = joint === "=" || joint === "%";
    for (const length of lengthsOf(head, local, domain)) yield { from: end - length, to: next + domain.length, isPath };
  }
}

/** How far before its end the local part may begin. */
function lengthsOf(head: string, local: string, domain: string): number[] {
  const isDotless = domain === "gmail.com" || domain === "googlemail.com";
  const lengths: number[] = [];
  for (const end of [head.length, ...plusesOf(head)]) {
    const start = isDotless ? startWithoutDots(head, end, local) : end - local.length;
    if (start >= 0 && (isDotless || head.startsWith(local, start))) lengths.push(head.length - start);
  }
  return lengths;
}

/** The places of plus signs with nothing but a tag behind. */
function plusesOf(head: string): number[] {
  const places: number[] = [];
  for (let at = head.length - 1; at >= 0 && !/[@\s<>]/.test(head[at] as string); at -= 1) {
    if (head[at] === "+") places.push(at);
  }
  return places;
}

/** Backwards letter by letter, past dots; -1 when it is not there. */
function startWithoutDots(head: string, end: number, given: string): number {
  const local = given.replaceAll(".", "");
  let left = local.length;
  let at = end;
  while (left > 0) {
    at -= 1;
    if (at < 0) return -1;
    if (head[at] === ".") continue;
    left -= 1;
    if (head[at] !== local[left]) return -1;
  }
  return at;
}

type Gaps = () => ReadonlySet<number>;

function lazily<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** The places in the text without marks before which one stood. */
function gapsOf(text: string): Set<number> {
  const gaps = new Set<number>();
  let marks = 0;
  for (let at = text.indexOf(GAP); at !== -1; at = text.indexOf(GAP, at + 1)) {
    gaps.add(at - marks);
    marks += 1;
  }
  return gaps;
}

/** Letters or digits before, or those with a dot or a hyphen: a longer local part, where nothing else can explain them. */
function continuesBefore(text: string, from: number, gaps: Gaps): boolean {
  let start = from;
  while (start > 0 && start > from - 70 && !gaps().has(start)) start -= 1;
  const head = text.slice(start, from);
  const last = head.at(-1) ?? " ";
  const touching = last === "." || last === "-" ? (head.at(-2) ?? " ") : last;
  if (!isPlain(touching)) return false;
  // A code whose letters these are: of a line end, of a blank, of anything.
  const word = head.search(/[a-z0-9]+[.-]?$/);
  const [two, sign] = [head.slice(Math.max(0, word - 2), word), head[word - 1] ?? ""];
  const length = head.length - word;
  if (sign === "%" && length <= 2) return false;
  if (sign === "=" && /^[0-9a-f]{2}$/.test(head.slice(word))) return false;
  if (sign === "\\" && (length === 1 || /^(?:x..|u....|[0-9a-f]{1,6})$/.test(head.slice(word)))) return false;
  if (sign === "&" || two === "&#" || head.endsWith("mailto")) return false;
  // A number before a dot counts lines or messages; what follows another address belongs to none.
  const before = head.search(/[^a-z0-9.+_-](?=[a-z0-9.+_-]*$)/);
  if (/^[0-9.-]*[.-]$/.test(head.slice(before + 1)) || head[before] === "@") return false;
  return before !== -1 || head.length < 64;
}

/** A label more where both are one public suffix (`co.uk`), letters more where they make another top level. */
function continuesBehind(text: string, to: number, needle: string, gaps: Gaps): boolean {
  const next = text[to] ?? " ";
  const touching = next === "." || next === "-" ? (text[to + 1] ?? " ") : next;
  if (!isPlain(touching) || gaps().has(to)) return false;
  let end = to + 1;
  while (end < to + 255 && !gaps().has(end)) end += 1;
  const [run = ""] = /^(?:[.-]?[a-z0-9]){1,255}/.exec(text.slice(to, end)) ?? [];
  const { publicSuffix, isIcann } = parse(needle.slice(needle.lastIndexOf("@") + 1) + run, {
    allowPrivateDomains: false,
  });
  if (isIcann !== true) return false;
  return next !== "." || (publicSuffix ?? "").length > run.length - 1;
}

function isPlain(char: string): boolean {
  return /^[a-z0-9]$/.test(char);
}
