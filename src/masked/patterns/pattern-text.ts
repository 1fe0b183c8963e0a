// Pure: a pattern such as *.lena@own.example, what it takes, and which of several takes an address.
import { parseAddress } from "../../mail/address.ts";
import { REPLY_LOCAL } from "../addresses/addresses.ts";
import { isReservedLocal } from "../addresses/reserved.ts";

const LENGTH_MAX = 64; // RFC 5321 §4.5.3.1.1
const PIECE = /^[a-z0-9._-]*$/;
/** What aliases made by hand may be called, too. */
const LOCAL = /^[a-z0-9][a-z0-9._-]*$/;

export type PatternText = { local: string; domain: string };

/** Reads what a customer wrote; `problem` continues a sentence about the field. */
export function readPattern(given: string): { ok: true; pattern: PatternText } | { ok: false; problem: string } {
  const text = given.trim().toLowerCase();
  const at = text.lastIndexOf("@");
  const [local, domain] = [text.slice(0, at), text.slice(at + 1)];
  const refuse = (problem: string) => ({ ok: false as const, problem });
  if (at < 1 || domain === "") return refuse("is an address with one *, such as *.lena@own.example");
  const pieces = local.split("*");
  if (pieces.length !== 2) return refuse("needs exactly one * before the @");
  if (local.length > LENGTH_MAX) return refuse(`has more than ${LENGTH_MAX} characters before the @`);
  if (!pieces.every((piece) => PIECE.test(piece))) {
    return refuse("may hold letters, digits, dots, hyphens and underscores beside the *");
  }
  if (!isPossible(local.replace("*", "a"))) return refuse("matches nothing that can stand before the @ of an address");
  return { ok: true, pattern: { local, domain } };
}

/**
 * True if the pattern takes this local part. Reply addresses and names that services keep for themselves belong to no
 * pattern.
 */
export function isTakenBy(pattern: string, local: string): boolean {
  const [before = "", after = ""] = pattern.split("*");
  const matches = local.length > before.length + after.length && local.startsWith(before) && local.endsWith(after);
  return matches && isPossible(local);
}

/** How much of a pattern is fixed: what has more of it goes first. */
export function fixedLength(pattern: string): number {
  return pattern.replace(/[*?]/g, "").length;
}

/** The pattern that takes the local part: the one with most fixed characters, then the one that was there first. */
export function choosePattern<P extends { id: string; local_pattern: string }>(
  patterns: readonly P[],
  local: string,
): P | null {
  const taking = patterns.filter(({ local_pattern }) => isTakenBy(local_pattern, local));
  taking.sort((a, b) => fixedLength(b.local_pattern) - fixedLength(a.local_pattern) || (a.id < b.id ? -1 : 1));
  return taking[0] ?? null;
}

function isPossible(local: string): boolean {
  if (local.length > LENGTH_MAX || !LOCAL.test(local) || isReservedLocal(local)) return false;
  if (REPLY_LOCAL.test(local) || local.startsWith("r.")) return false;
  return parseAddress(`${local}@example.com`).ok;
}
