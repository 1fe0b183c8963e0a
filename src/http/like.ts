// Patterns for SQL's `like`, `ilike` and `~*` out of what people search for: every character of theirs stands for itself.
import { withAsciiDomain } from "../mail/address.ts";

/** `text` without a meaning to `like`. */
export function literally(text: string): string {
  return text.replace(/[\\%_]/g, "\\$&");
}

/** A pattern for what holds `text`. */
export function contains(text: string): string {
  return `%${literally(text)}%`;
}

/** Patterns for what holds `text` in one of its spellings. */
export function spelled(text: string): string[] {
  return spellings(text).map(contains);
}

/**
 * The ways in which `text` may stand in a column that is compared without regard to case: PostgreSQL knows the two cases of ASCII
 * alone where the database's locale is C, and domains of addresses are A-labels.
 */
export function spellings(text: string): string[] {
  if (/^[\0-\x7f]*$/.test(text)) return [text];
  const lower = text.toLowerCase();
  const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
  const words = lower.replace(/\p{L}+/gu, capital);
  const all = [text, withAsciiDomain(text), lower, text.toUpperCase(), capital(lower), words];
  return [...new Set(all)];
}

const LOCAL_PART = "[:alnum:].!#$%&'*+/=?^_`{|}~-";
/** All that is not ASCII may stand in a local part (RFC 6532 §3.2). Where the locale is C, [:alnum:] is ASCII alone. */
const NOT_ASCII = "\\u0080-\\U0010ffff";

/** For `~*`: the address itself where addresses stand, and not as the end or the beginning of a longer one. */
export function addressPattern(email: string): string {
  return between(`${NOT_ASCII}${LOCAL_PART}`, email);
}

/** The same in what people wrote, where a quotation mark or a word without a space may stand before it: „anna@… */
export function mentionPattern(email: string): string {
  return between(LOCAL_PART, email);
}

/** For `~*`: a text that is the address and nothing else. */
export function exactPattern(email: string): string {
  return `^${itselfOf(email)}$`;
}

/** The longest run of the address that is written in ASCII: a text without it, in whatever case, holds not the address. */
export function asciiNeedle(email: string): string {
  const runs = email.match(/[\0-\x7f]+/g) ?? [];
  return runs.reduce((longest, run) => (run.length > longest.length ? run : longest), "");
}

function between(before: string, email: string): string {
  const itself = itselfOf(email);
  return `(^|[^${before}])${itself}($|[^[:alnum:].-]|\\.($|[^[:alnum:]]))`;
}

/** Each letter outside ASCII in both cases: where the locale is C, `~*` knows those of ASCII alone. */
function itselfOf(email: string): string {
  return email.replace(/[^\p{L}\p{N}\s]/gu, "\\$&").replace(/[^\0-\x7f]/gu, (letter) => {
    const cases = [letter, letter.toUpperCase(), letter.toLowerCase(), letter.toUpperCase().toLowerCase()];
    const single = [...new Set(cases)].filter((one) => [...one].length === 1);
    return single.length === 1 ? letter : `[${single.join("")}]`;
  });
}

/**
 * That a text of a row holds an address, by such a pattern: the pattern takes several times as long as to find the letters of the
 * needle (`asciiNeedle`).
 */
export function holds(text: string, needle: string, pattern: string): string {
  return `(strpos(lower(${text}), (select lower(${needle}))) > 0 and ${text} ~* ${pattern})`;
}
