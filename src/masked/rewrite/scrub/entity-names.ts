// What HTML's character references (HTML Living Standard §13.5) stand for, as far as an address can be written or
// broken with them: ASCII, letters in other shapes, and what is not seen. In any case of their letters, and where a browser shows another sign than the name stands for.
import { decodeEntities } from "../../../mail/mime/html-entities.ts";

const SIGNS =
  "commat @ period . lowbar _ underbar _ hyphen - dash - plus + percnt % num # semi ; colon : comma , excl ! dollar $ quest ? " +
  "equals = sol / bsol \\ ast * midast * hat ^ grave ` diacriticalgrave ` lpar ( rpar ) lsqb [ lbrack [ rsqb ] rbrack ] " +
  "lcub { lbrace { rcub } rbrace } vert | verbar | verticalline | nldr .. mldr ...";
const LETTERS =
  "fjlig fj fflig ff filig fi fllig fl ffilig ffi ffllig ffl ijlig ij ell l ee e exponentiale e ii i imaginaryi i dd d " +
  "differentiald d capitaldifferentiald d order o orderof o oscr o os s circleds s planckh h bernou b bernoullis b " +
  "cayleys c complexes c expectation e fouriertrf f hilbertspace h hamilt h quaternions h poincareplane h im i image i " +
  "imagline i imagpart i integers z zeetrf z laplacetrf l lagran l mellintrf m phmmat m naturals n primes p rationals q " +
  "re r real r realine r realpart r reals r numero no incare c/o";
const UNSEEN =
  "shy zwj zwnj lrm rlm nobreak zerowidthspace applyfunction af invisiblecomma ic invisibletimes it negativemediumspace " +
  "negativethickspace negativethinspace negativeverythinspace";

const NAMES: ReadonlyMap<string, string> = new Map([
  ...pairs(SIGNS),
  ...pairs(LETTERS),
  ...UNSEEN.split(" ").map((name): [string, string] => [name, "\u200b"]),
  ["tab", "\t"],
  ["newline", "\n"],
]);

function pairs(list: string): [string, string][] {
  const words = list.split(" ");
  return words.flatMap((word, at): [string, string][] => (at % 2 === 0 ? [[word, words[at + 1] as string]] : []));
}

/** The text that a name stands for, in any case of its letters; undefined for all others. */
export function namedText(name: string): string | undefined {
  const lower = name.toLowerCase();
  return NAMES.get(lower) ?? /^([a-z])(?:scr|fr|opf)$/.exec(lower)?.[1];
}

/** The signs of addresses, by the names that only a semicolon makes references. */
const PLAIN_SIGNS: Readonly<Record<string, string>> = {
  ...{ commat: "@", period: ".", lowbar: "_", plus: "+", percnt: "%", equals: "=", sol: "/", colon: ":" },
};
const SIGN_NAMES = Object.keys(PLAIN_SIGNS).join("|");
/** A number needs no semicolon (HTML Living Standard §13.2.5.80); of a longer number its first digits are nothing. */
const REFERENCE = new RegExp(
  `&(?:#0{0,30}\\d{2,3}(?!\\d)|#x0{0,30}[0-9a-f]{2}(?![0-9a-f])|(?:${SIGN_NAMES})(?=;)|(?<bare>${SIGN_NAMES})(?![a-z0-9]*;));?`,
  "gi",
);

/**
 * References to letters, digits and the signs of addresses as they read: so any program writes them that quotes the text. A name
 * without its semicolon is none, and has its `&` written as such.
 */
export function withPlainLetters(html: string): string {
  return html.includes("&")
    ? html.replace(REFERENCE, (one, bare?: string) => {
        if (bare !== undefined) return one.replace("&", "&amp;");
        return /^[A-Za-z0-9@._+%=/:-]$/.test(letterOf(one)) ? letterOf(one) : one;
      })
    : html;
}

/** What a reference to a letter or to a sign of addresses reads as, with its semicolon or without. */
export function letterOf(reference: string): string {
  const closed = reference.endsWith(";") ? reference : `${reference};`;
  return PLAIN_SIGNS[closed.slice(1, -1).toLowerCase()] ?? decodeEntities(closed.replace(/^(&#x?)0+/i, "$1"));
}
