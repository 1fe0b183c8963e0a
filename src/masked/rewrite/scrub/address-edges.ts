// Whether what was found in a text is only a piece of something longer: `info@gmx.de` of `kundeninfo@gmx.de`,
// `a@firma.co` of `a@firma.com`. That is somebody else, and stays. In doubt it is no piece: whatever a reader could take for
// the address alone, because tags, line ends, codes or other scripts stand beside it, is hidden.
import { getPublicSuffix, parse } from "tldts";
import { isGlued } from "../public-providers.ts";
import type { View } from "./text-view.ts";

/** `separator`: what stands between local part and domain; null for words. */
export type Place = { from: number; to: number; separator: string | null };

const LOCAL_CHARS_MAX = 64;
const HOST_CHARS_MAX = 255;
/** Behind `\n`, `%0a`, `=0A`, `&nbsp`, `mailto` and their like an address begins, though a letter stands before it. */
const CODE =
  /(?:mailto|%[0-9a-f]{0,2}|-3[ad]|-2[06f]|&#?x?[a-z0-9]{0,31}|=[0-9a-f]{2}|\\(?:[a-z]|x[0-9a-f]{2}|u[0-9a-f]{4}|[0-9a-f]{1,6}))$/;
const ICANN = { allowPrivateDomains: false };

/** True if what stands at `place` of the view is the end of a longer name, or the beginning of one. */
export function isLonger(view: View, source: string, place: Place): boolean {
  const found = view.text.slice(place.from, place.to);
  if (place.separator === null) return isWithinWord(view.text, found, place);
  const domain = found.slice(found.lastIndexOf(place.separator) + place.separator.length);
  return beginsEarlier(view, place) || goesOn(view, source, place.to, domain);
}

/** True if it is the end of a longer name. */
export function beginsEarlier(view: View, place: Place): boolean {
  const found = view.text.slice(place.from, place.to);
  if (place.separator === null) return isWithinWord(view.text, found, place);
  const at = found.lastIndexOf(place.separator);
  if (JOINING.test(place.separator)) return touchesBefore(view, place.from);
  if (!beginsBefore(view, place.from, at)) return false;
  const [local, domain] = [found.slice(0, at), found.slice(at + place.separator.length)];
  return !isGlued(view.text.slice(Math.max(0, place.from - 2), place.from), local, domain);
}

/** Return paths hold addresses so, behind a hyphen or a plus (VERP); behind `?` and `&` is the name of what has that value. */
const JOINING = /^[=%]$/;

function touchesBefore(view: View, from: number): boolean {
  return /[a-z0-9.?&]$/.test(view.text.slice(touchingSince(view, from), from));
}

/** Words that stand for an address: nothing is hidden by them, so what touches a letter is none of them. */
function isWithinWord(text: string, found: string, { from, to }: Place): boolean {
  const isBefore = /^[a-z0-9]/.test(found) && /[\p{L}\p{N}_.+-]$/u.test(text.slice(Math.max(0, from - 2), from));
  return isBefore || (/[a-z0-9]$/.test(found) && /^(?:[.-]?[\p{L}\p{N}]|_)/u.test(text.slice(to, to + 3)));
}

/** A local part that is longer: letters and digits touch it, or do so with a dot or hyphen between. */
function beginsBefore(view: View, from: number, localChars: number): boolean {
  const before = view.text.slice(touchingSince(view, from), from);
  if (!/(?:[a-z0-9]|[a-z0-9][.-])$/.test(before) || CODE.test(before)) return false;
  if (view.reshaped.has(from - 1)) return false;
  const [run = ""] = /[a-z0-9.+_-]*$/.exec(before) ?? [];
  // The number of a line or of a message; the domain of another address.
  if (/^[0-9.-]+[.-]$/.test(run) || before.at(-run.length - 1) === "@") return false;
  return run.length + localChars <= LOCAL_CHARS_MAX;
}

/** A domain that is longer, and a domain that can be. */
function goesOn(view: View, source: string, to: number, domain: string): boolean {
  const run = /^[a-z0-9.-]+/.exec(view.text.slice(to, touchingTill(view, to)))?.[0] ?? "";
  const rest = run.replace(/\.\..*$/, "").replace(/[.-]+$/, "");
  if (rest === "" || view.reshaped.has(to)) return false;
  // `…@firma.example.Please`: a sentence began.
  const first = to + rest.search(/[a-z0-9]/);
  const [last, next] = [source[view.starts[to - 1] as number] ?? "", source[view.starts[first] as number] ?? ""];
  if (/[a-z]/.test(last) && /[A-Z]/.test(next)) return false;
  return isHost(domain, rest);
}

/** The beginning of what stands side by side in the source, too: nothing was taken out between. */
function touchingSince(view: View, from: number): number {
  let at = from;
  while (at > 0 && at > from - LOCAL_CHARS_MAX - 2 && isTouching(view, at)) at -= 1;
  return at;
}

/** The end of it. */
function touchingTill(view: View, from: number): number {
  let at = from;
  while (at < view.text.length && at < from + HOST_CHARS_MAX && isTouching(view, at)) at += 1;
  return at;
}

function isTouching({ starts, ends }: View, at: number): boolean {
  return (ends[at - 1] as number) >= (starts[at] as number);
}

/** A letter more makes another top level only where that exists, a label more only where both are one (`co.uk`): `.zip` is a file. */
function isHost(domain: string, rest: string): boolean {
  const host = `${domain}${rest}`;
  if (!rest.startsWith(".")) return parse(host, ICANN).isIcann === true;
  return (getPublicSuffix(host, ICANN) ?? "").length >= rest.length;
}
