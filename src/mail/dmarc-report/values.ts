// The values of a report's leaves: a stranger's text becomes a number, an address, a word of a list, or null.
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { normalizeDomain } from "../address.ts";

/** What one record can stand for: more messages than any source sends within a report's span. */
const COUNT_MAX = 2 ** 31 - 1;
/** 9999 would be a year; a report from after 2100 is a wrong number. */
const TIME_S_MAX = 4_102_444_800;
const WORD_CHARS_MAX = 64;

/** A count of messages, or null. */
export function readCount(text: string): number | null {
  if (!/^\d{1,10}$/.test(text)) return null;
  const count = Number(text);
  return count <= COUNT_MAX ? count : null;
}

/** Seconds since 1970, or null. Some reporters write `1337270400.0`, or RFC 3339. */
export function readTime(text: string): number | null {
  if (/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/.test(text)) {
    const ms = Date.parse(text.replace(" ", "T"));
    return Number.isNaN(ms) || ms < 0 || ms > TIME_S_MAX * 1_000 ? null : Math.floor(ms / 1_000);
  }
  if (!/^\d{1,10}(?:\.\d{1,9})?$/.test(text)) return null;
  const seconds = Math.floor(Number(text));
  return seconds <= TIME_S_MAX ? seconds : null;
}

/** The address in canonical form, IPv4 also when it came as IPv4-mapped IPv6, or null. */
export function readIp(text: string): string | null {
  if (isIP(text) === 0 || text.includes("%")) return null;
  return ipaddr.process(text).toString();
}

/** One of `words` in any case, or null. */
export function readWord<const T extends readonly string[]>(words: T, text: string | undefined): T[number] | null {
  const word = text?.toLowerCase();
  return words.find((known) => known === word) ?? null;
}

/** A result such as `pass`: lower case, letters and underscores; `unknown` for anything else. */
export function readResult(text: string | undefined): string {
  const word = text?.toLowerCase() ?? "";
  return /^[a-z_-]{1,20}$/.test(word) ? word : "unknown";
}

/** A policy's domain as a name of the DNS, or null. */
export function readDomain(text: string): string | null {
  return normalizeDomain(text.replace(/\.$/, ""));
}

/** A domain as a record has it: shown, never looked up. Null when empty. */
export function readName(text: string | undefined): string | null {
  const name = readText(text, 253)?.toLowerCase().replace(/\.$/, "") ?? "";
  return name === "" ? null : name;
}

/** Text for people, without control characters and at most `max` long; null when empty. */
export function readText(text: string | undefined, max = WORD_CHARS_MAX): string | null {
  const clean = (text ?? "").replace(/[\p{Cc}\p{Cf}\p{Cs}]+/gu, " ").trim();
  return clean === "" ? null : clean.slice(0, max).toWellFormed();
}

/** 0…100, or null. */
export function readPercent(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,3}$/.test(text) && Number(text) <= 100 ? Number(text) : null;
}
