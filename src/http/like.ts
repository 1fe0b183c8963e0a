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

function between(before: string, email: string): string {
  const itself = email.replace(/[^\p{L}\p{N}\s]/gu, "\\$&");
  return `(^|[^${before}])${itself}($|[^[:alnum:].-]|\\.($|[^[:alnum:]]))`;
}

/** That a text of a row holds an address, by such a pattern: the pattern takes several times as long as to find the letters. */
export function holds(text: string, email: string, pattern: string): string {
  return `(strpos(lower(${text}), (select lower(${email}))) > 0 and ${text} ~* ${pattern})`;
}
