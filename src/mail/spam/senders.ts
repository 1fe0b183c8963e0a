// Lists of senders, as customers write them to let mail through or keep it out: an address, a domain (that very one), or
// a glob over either. What stands more exactly weighs more. Pure; whether a sender is who it says is not decided here.
import { normalizeDomain, parseAddress } from "../address.ts";
import { compilePattern } from "../glob-pattern.ts";

export const SENDER_CHARS_MAX = 320;
/** Each is tried on each sender; exact entries are looked up. */
export const GLOBS_MAX = 100;

export type ReadSender = { ok: true; entry: string; is_glob: boolean } | { ok: false; problem: string };

/** An entry in the form it is kept in, or a sentence fragment on what is wrong with it. */
export function readSender(text: string): ReadSender {
  const entry = text.trim().toLowerCase();
  if (entry.length > SENDER_CHARS_MAX) return wrong(`must have at most ${SENDER_CHARS_MAX} characters`);
  if (/[*?]/.test(entry)) return readGlob(entry);
  const at = entry.lastIndexOf("@");
  if (at > 0) {
    const parsed = parseAddress(entry);
    return parsed.ok
      ? { ok: true, entry: parsed.address.email.toLowerCase(), is_glob: false }
      : wrong(`is not an address: ${parsed.reason}`);
  }
  const domain = normalizeDomain(entry.slice(at + 1));
  return domain === null
    ? wrong("must be an address, a domain, or a pattern such as *@news.example or *.example")
    : { ok: true, entry: domain, is_glob: false };
}

function readGlob(entry: string): ReadSender {
  if (!/[a-z0-9]/.test(entry)) return wrong("must not stand for every sender");
  if (!/^[!-9;-~]+$/.test(entry)) return wrong("must be written in ASCII where it is a pattern (xn--… for domains)");
  const compiled = compilePattern(entry);
  return compiled.kind === "problem" ? wrong(compiled.problem) : { ok: true, entry, is_glob: true };
}

function wrong(problem: string): ReadSender {
  return { ok: false, problem };
}

/** How exactly a list names a sender: 0 not at all, 1 by a glob, 2 by its domain, 3 by its address. */
export type Rank = 0 | 1 | 2 | 3;

/** The list as a function of an address as it came; entries are as `readSender` gave them. */
export function compileSenders(entries: readonly string[]): (email: string) => Rank {
  const exact = new Set(entries);
  const globs = entries.filter((entry) => /[*?]/.test(entry)).slice(0, GLOBS_MAX);
  const patterns = globs.flatMap((glob) => {
    const compiled = compilePattern(glob);
    return compiled.kind === "pattern" ? [{ ofAddress: glob.includes("@"), pattern: compiled.pattern }] : [];
  });
  return (email) => {
    const { address, domain } = normalize(email);
    if (exact.has(address) && address.includes("@")) return 3;
    if (exact.has(domain)) return 2;
    return patterns.some(({ ofAddress, pattern }) => pattern.matches(ofAddress ? address : domain)) ? 1 : 0;
  };
}

function normalize(email: string): { address: string; domain: string } {
  const at = email.lastIndexOf("@");
  const given = email
    .slice(at + 1)
    .toLowerCase()
    .replace(/\.$/, "");
  const domain = normalizeDomain(given) ?? given;
  return { address: at === -1 ? domain : `${email.slice(0, at).toLowerCase()}@${domain}`, domain };
}
