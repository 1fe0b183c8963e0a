// The left side of an alias: exact, or a glob (`*` any run, `?` one character). Which of several takes an address: the
// exact one, then the longest glob, and of equals the one with more literal characters. Local parts are compared without regard to case, and
// `name+tag` belongs to `name` unless an alias names it whole (RFC 5233 calls it a detail).
import { parseAddress } from "../mail/address.ts";
import { compilePattern } from "../mail/glob-pattern.ts";
import type { AliasChoice, AliasMatch } from "./types.ts";

const LENGTH_MAX = 64; // RFC 5321 §4.5.3.1.1
const GLOB = /^[a-z0-9!#$%&'*+/=?^_`{|}~.\u0080-\uffff-]+$/;

export type LocalPart = { ok: true; local_part: string; is_glob: boolean } | { ok: false; problem: string };

/** Reads what a customer wrote; `problem` continues a sentence about the field. */
export function readLocalPart(given: string): LocalPart {
  const local_part = given.normalize("NFC").toLowerCase();
  if (local_part === "") return { ok: false, problem: "must not be empty" };
  if (local_part.includes("@")) return { ok: false, problem: "is the part before @ alone, without the domain" };
  const is_glob = /[*?]/.test(local_part);
  if (is_glob) return readGlob(local_part);
  const parsed = parseAddress(`${local_part}@example.com`);
  if (!parsed.ok) return { ok: false, problem: `cannot stand before the @ of an address (${parsed.reason})` };
  return { ok: true, local_part: parsed.address.local, is_glob };
}

function readGlob(local_part: string): LocalPart {
  if (Buffer.byteLength(local_part) > LENGTH_MAX) return { ok: false, problem: `is longer than ${LENGTH_MAX} octets` };
  if (!GLOB.test(local_part)) return { ok: false, problem: "holds a character that cannot stand before the @" };
  return { ok: true, local_part, is_glob: true };
}

/** A local part as it is looked up: the whole of it, and without its tag. */
export function namesOf(local: string): { whole: string; bare: string; tag: string | null } {
  const whole = local.normalize("NFC").toLowerCase();
  const plus = whole.indexOf("+");
  if (plus <= 0) return { whole, bare: whole, tag: null };
  return { whole, bare: whole.slice(0, plus), tag: local.normalize("NFC").slice(plus + 1) || null };
}

/** The alias among `candidates` (all of one domain) that takes live mail for `local`: what a test key made comes last. */
export function chooseForLive(candidates: readonly AliasChoice[], local: string): AliasMatch | null {
  const live = candidates.filter(({ environment }) => environment === "live");
  return chooseAlias(live, local) ?? chooseAlias(candidates, local);
}

/** The same for mail of a trial, which knows no difference. */
export function chooseAlias(candidates: readonly AliasChoice[], local: string): AliasMatch | null {
  const { whole, bare, tag } = namesOf(local);
  const exact = (name: string) => candidates.find((alias) => !alias.is_glob && alias.local_part === name);
  const named = exact(whole);
  if (named) return { alias: named, tag: whole === bare ? tag : null };
  const plain = exact(bare);
  if (plain) return { alias: plain, tag };
  const globs = candidates.filter((alias) => alias.is_glob).sort(bySpecificity);
  const glob = globs.find(({ local_part }) => takes(local_part, whole) || takes(local_part, bare));
  return glob ? { alias: glob, tag } : null;
}

function bySpecificity(a: AliasChoice, b: AliasChoice): number {
  return (
    b.local_part.length - a.local_part.length ||
    literals(b.local_part) - literals(a.local_part) ||
    (a.local_part < b.local_part ? -1 : 1)
  );
}

function literals(glob: string): number {
  return glob.replace(/[*?]/g, "").length;
}

function takes(glob: string, name: string): boolean {
  const compiled = compilePattern(glob);
  return compiled.kind === "pattern" && compiled.pattern.matches(name);
}
