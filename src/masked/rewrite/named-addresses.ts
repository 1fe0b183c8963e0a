// Which addresses a text names. Two things hang on it: a contact's mail with many of them is a warning sign, and among them
// the owner's other aliases are looked up (carry/siblings.ts). For the first, plain addresses are counted in the texts as the
// hider reads them. For the second, every reading of a text counts, as the leak gate reads it, and in mail and reply alike:
// what were found in one of them only would tell a contact that it guessed right.
import { domainToASCII } from "node:url";
import { GAP, undisguised } from "./gate/disguises.ts";
import { base64Readings } from "./gate/encoded-readings.ts";
import { isGlued } from "./public-providers.ts";
import type { ContentHider } from "./sent/sent-content.ts";

/** Beyond that it is a list, whatever else it holds. */
export const NAMED_MAX = 10_000;
const SIDE_CHARS_MAX = 64;
/** How much of one text has its disguises undone. */
const DISGUISED_CHARS_MAX = 500_000;

/** The hider, which looks along; `count` and `named` say what it found. */
export function noticingAddresses(hider: ContentHider) {
  const [counted, named] = [new Set<string>(), new Set<string>()];
  const seen = new Set<string>();
  const along = <T>(read: (source: string) => T) => {
    return (source: string): T => {
      if (!seen.has(source)) {
        seen.add(source);
        collect(source, counted);
        collectNamed(source, named);
      }
      return read(source);
    };
  };
  const { text, html, id, field, file, name } = hider;
  return {
    hider: {
      ...hider,
      text: along(text),
      html: along(html),
      id: along(id),
      field: along(field),
      file: along(file),
      name: along(name),
    },
    count: () => counted.size,
    named: () => [...named],
  };
}

/** Adds the addresses that any reading of the text names, in lower case, at most NAMED_MAX in all. */
export function collectNamed(source: string, named: Set<string>): void {
  collect(source, named);
  if (MAY_NAME.test(source)) collectDisguised(source.slice(0, DISGUISED_CHARS_MAX), named);
  // Links that track their reader hold who that is.
  for (const octets of base64Readings(source.slice(0, DISGUISED_CHARS_MAX)))
    collect(octets.replaceAll("\0", ""), named);
}

/**
 * Where nothing of this stands, no reading names an address: nothing beyond printable ASCII, no sign that codes or tags are made
 * of, and no word for the sign, over two lines or in quotes either.
 */
const MAY_NAME = /[^\t\r\n\x20-\x7e]|[@<&%\\=]|[\s_([{>|-]a[\s>|]*t[\s_)\]}>|-]|arroba|urldefense/i;

function collectDisguised(source: string, named: Set<string>): void {
  const isJoint = (text: string) => text.includes("@") || SPOKEN.test(text);
  for (const one of undisguised(source, true, isJoint)) {
    const text = one.replaceAll(GAP, "");
    collect(text, named);
    collectSpoken(text, named);
  }
}

const LOCAL = /([\p{L}\p{N}._%+-]+)"?[ \t\u00a0]{0,2}$/u;
const DOMAIN = /^[ \t\u00a0]{0,2}((?:[\p{L}\p{N}-]+\.)+[\p{L}\p{N}-]{2,})/u;

function collect(source: string, found: Set<string>): void {
  for (let at = source.indexOf("@"); at !== -1 && found.size < NAMED_MAX; at = source.indexOf("@", at + 1)) {
    addAround(source, { from: at, to: at + 1 }, found);
  }
}

/** `at` in place of the sign: as we show addresses in names, and as people and list programs write them. */
const SPOKEN = /(?<=[\s_([{>|-])at(?=[\s_)\]}>|-])/i;
const SPOKEN_ALL = new RegExp(SPOKEN, "gi");

function collectSpoken(source: string, found: Set<string>): void {
  for (const { index } of source.matchAll(SPOKEN_ALL)) {
    if (found.size >= NAMED_MAX) return;
    const before = source.slice(Math.max(0, index - SIDE_CHARS_MAX), index);
    const from = before.replace(/[\s_([{>|-]{1,8}$/, "").length + Math.max(0, index - SIDE_CHARS_MAX);
    const [gap = ""] = /^[\s_)\]}>|-]{1,8}/.exec(source.slice(index + 2, index + 10)) ?? [];
    addAround(source, { from, to: index + 2 + gap.length }, found);
  }
}

function addAround(source: string, { from, to }: { from: number; to: number }, found: Set<string>): void {
  // Behind most words `at` no domain stands, and that is seen at once: to look for a local part takes 30 times as long.
  const domain = DOMAIN.exec(source.slice(to, to + SIDE_CHARS_MAX))?.[1];
  if (!domain) return;
  const local = LOCAL.exec(source.slice(Math.max(0, from - SIDE_CHARS_MAX), from))?.[1];
  if (local) found.add(`${local}@${domain}`.toLowerCase());
}

/** The ways to read one that stands behind other words and signs: `to-anna@…` is `anna@…`, too; domains in codes. */
export function readingsOf(address: string): string[] {
  const at = address.lastIndexOf("@");
  const domain = domainToASCII(address.slice(at + 1)) || address.slice(at + 1);
  const local = address.slice(0, at);
  const starts = [...local.matchAll(/[^\p{L}\p{N}]+(?=.)/gu)].map(({ 0: sign, index }) => index + sign.length);
  return [0, ...starts.slice(0, READINGS_MAX)].map((start) => `${local.slice(start)}@${domain}`);
}

const READINGS_MAX = 4;

/** All that may stand behind what is glued to the named addresses, at most so many; null for more. */
export function endsOf(named: Iterable<string>, max: number): Set<string> | null {
  const ends = new Set<string>();
  for (const address of named) {
    const at = address.lastIndexOf("@");
    for (let start = 1; start < at; start += 1) ends.add(address.slice(start));
    if (ends.size > max) return null;
  }
  return ends;
}

/** Those of `emails` that one of the named addresses ends with, behind what is glued to them: `toanna@…` is `anna@…`, too. */
export function gluedAmong(named: Iterable<string>, emails: ReadonlySet<string>): string[] {
  const found = new Set<string>();
  for (const address of named) {
    const at = address.lastIndexOf("@");
    const domain = address.slice(at + 1);
    for (let start = 1; start < at; start += 1) {
      const email = address.slice(start);
      if (!emails.has(email) || found.has(email)) continue;
      if (isGlued(address.slice(Math.max(0, start - 2), start), address.slice(start, at), domain)) found.add(email);
    }
  }
  return [...found];
}
