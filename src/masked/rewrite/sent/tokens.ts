// Tokens: reverse addresses of a mailbox of the owner that stand for it in what a contact wrote, with what is special about a
// spelling in their tag (sent-content.ts).
import { decodeEntities } from "../../../mail/mime/html-entities.ts";
import type { Exchange } from "../scrub/replace-addresses.ts";
import { shownAddress } from "../scrub/shown-address.ts";

/**
 * A mailbox of the owner and its reverse address at the alias, which tokens are made of. `shown`: the reply names it as a
 * correspondent, and the words for a correspondent become its address wherever they stand.
 */
export type Token = { reverse: string; email: string; shown?: boolean };

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";
const TAG_CHARS_MAX = 600;

/** The reverse address, with what is special about the spelling as its tag; null for a spelling that no tag has room for. */
export function tokenFor({ reverse, email }: Token, spelled: string): string | null {
  if (spelled === email) return reverse;
  const isCase = spelled.length === email.length && spelled.toLowerCase() === email.toLowerCase();
  const tag = isCase ? `c${toBase32(caseBits(spelled))}` : `s${toBase32(bitsOf(Buffer.from(spelled)))}`;
  if (tag.length > TAG_CHARS_MAX || spelledBy(email, tag) !== spelled) return null;
  return reverse.replace("@", `+${tag}@`);
}

/** The spelling that a tag stands for; null for a tag of somebody else's. */
function spelledBy(email: string, tag: string): string | null {
  if (tag === "") return email;
  const bits = [...tag.slice(1)].map((char) => BASE32.indexOf(char).toString(2).padStart(5, "0")).join("");
  if (tag[0] === "c")
    return [...email].map((char, at) => (bits[at] === "1" ? char.toUpperCase() : char.toLowerCase())).join("");
  if (tag[0] !== "s") return null;
  const bytes = bits.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? [];
  return Buffer.from(bytes).toString();
}

/** A token that stands for words with other gaps: of this reply alone, as its seed shows. */
export function joinedToken({ reverse }: Token, spelled: string, seed: string): string {
  return reverse.replace("@", `+${joinedMark(seed)}${toBase32(bitsOf(Buffer.from(spelled)))}@`);
}

function joinedMark(seed: string): string {
  return `j${toBase32(bitsOf(Buffer.from(seed)))}`;
}

type Reading = { isHtml: boolean; isSent: (spelled: string) => boolean; seed: string | null };

/** What a token stands for; null for one that its reader did not send. */
export function spelledIn(
  { email }: Token,
  units: readonly string[],
  { isHtml, isSent, seed }: Reading,
): string | null {
  const address = units
    .map((unit) => (isHtml ? decodeEntities(unit) : unit))
    .join("")
    .toLowerCase();
  const [, tag = ""] = /\+([a-z2-7]*)/.exec(address) ?? [];
  const mark = seed === null ? "" : joinedMark(seed);
  if (mark !== "" && tag.startsWith(mark)) return spelledBy(email, `s${tag.slice(mark.length)}`);
  const spelled = spelledBy(email, tag);
  return spelled !== null && isSent(spelled) ? spelled : null;
}

/** `seed`: of the reply in which it may have been joined. */
export function tokenReader(token: Token, isSent: (spelled: string) => boolean, seed: string | null): Exchange {
  return {
    from: token.reverse,
    anywhere: true,
    write(units, { isHtml, isTouched }) {
      const spelled = spelledIn(token, units, { isHtml, isSent, seed });
      if (spelled === null) return null;
      // Words for anybody else that letters touch are not undone either.
      const isUndone = token.shown === true && !isTouched;
      const isWords = isUndone && isWordsFor(token, spelled);
      const written = withSeparator(units, isWords ? token.email : spelled);
      return isHtml ? written.map(escaped) : written;
    },
  };
}

/**
 * The same in parentheses behind a blank, where it stands for the words that a correspondent is shown with beside its name: what
 * stands so for anybody else is taken out.
 */
export function besideName(token: Token, isSent: (spelled: string) => boolean, seed: string): Exchange {
  return {
    from: ` (${token.reverse})`,
    anywhere: true,
    write(units, { isHtml }) {
      const spelled = token.shown ? spelledIn(token, units, { isHtml, isSent, seed }) : null;
      return spelled !== null && isWordsFor(token, spelled) ? [] : null;
    },
  };
}

function isWordsFor({ email }: Token, spelled: string): boolean {
  return spelled.toLowerCase().replace(/\s+/g, " ") === shownAddress(email).toLowerCase();
}

/** The address's letters; where the `@` of what it stands for became a code (`%40` in a link), its own does. */
export function withSeparator(units: readonly string[], email: string): string[] {
  const separator = units.find((unit) => unit === "@" || /^[%&]/.test(unit)) ?? "@";
  return [...email].map((char) => (char === "@" ? separator : char));
}

/** As programs write HTML that they parsed (HTML Living Standard §13.3). */
const MARKUP: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "\u00a0": "&nbsp;" };

function escaped(unit: string): string {
  return MARKUP[unit] ?? unit;
}

function caseBits(text: string): string {
  return [...text].map((char) => (char === char.toLowerCase() ? "0" : "1")).join("");
}

function bitsOf(bytes: Buffer): string {
  return [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
}

function toBase32(bits: string): string {
  return (bits.match(/.{1,5}/g) ?? []).map((five) => BASE32[Number.parseInt(five.padEnd(5, "0"), 2)]).join("");
}
