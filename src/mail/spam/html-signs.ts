// Tricks in HTML and in text: what the reader does not see, and links that show another place than they go to. Pure, of the
// first 64 Ki characters; nothing is followed. Newsletters hide a line before their text and count clicks: neither is a sign.
import { anyOf } from "../any-of.ts";
import { registrableDomain } from "../registrable-domain.ts";
import type { Suspect, Symptom } from "./suspect.ts";

/** Long as no preview line is. */
const HIDDEN_LETTERS_MIN = 400;
const PICTURE_LETTERS_MAX = 20;
const LINKS_MAX = 500;
const HIDING = anyOf([
  /display\s{0,4}:\s{0,4}none/,
  /visibility\s{0,4}:\s{0,4}hidden/,
  /font-size\s{0,4}:\s{0,4}0(?:px|pt|em|%)?\s{0,4}[;"']/,
]);
const STYLED = /<(?:div|span|p|font|td|section)\b[^<>]{0,300}?style\s{0,4}=\s{0,4}["'][^"'<>]{0,300}?/.source;
const HIDDEN = new RegExp(`${STYLED}(?:${HIDING})[^<>]{0,300}>([^<]{1,20000})`, "gi");
const ANCHOR =
  /<a\b[^<>]{0,1000}?href\s{0,4}=\s{0,4}["']?\s{0,4}(https?:[^\s"'<>]{3,1000})[^<>]{0,1000}>([^<>]{0,300})<\/a/gi;
const SHOWN_HOST = /^\s*(?:https?:\/\/)?((?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24})(?:[/?#:]\S{0,300})?\s*$/i;

/** `html` and `text` as far as they are looked at, without tags in `text`. */
export function findHtmlSigns({ auth }: Suspect, html: string, text: string): Symptom[] {
  const found: Symptom[] = [];
  const hidden = [...html.matchAll(HIDDEN)].reduce((sum, [, words = ""]) => sum + lettersIn(words), 0);
  if (hidden >= HIDDEN_LETTERS_MIN) {
    found.push({ name: "HTML_HIDDEN_TEXT", score: 2, description: "A long text that nobody sees" });
  }
  if (/<form[\s>]/i.test(html) && /<input\b[^<>]{0,300}type\s{0,4}=\s{0,4}["']?password/i.test(html)) {
    found.push({ name: "HTML_ASKS_PASSWORD", score: 3, description: "A form in the mail asks for a password" });
  }
  const isPicture = /<img\b[^<>]{0,300}src\s{0,4}=\s{0,4}["']?(?:data:image|cid:)/i.test(html);
  if (isPicture && lettersIn(text) <= PICTURE_LETTERS_MAX) {
    found.push({ name: "HTML_PICTURE_ONLY", score: 1, description: "Nothing but a picture that came with it" });
  }
  // Who is who it says may count clicks by another host.
  const isKnown = auth !== null && (auth.dmarc === "pass" || auth.dkim === "pass");
  if (!isKnown && showsOtherHost(html)) {
    found.push({ name: "LINK_SHOWS_OTHER_HOST", score: 1.5, description: "A link shows another host than it goes to" });
  }
  if ((text.match(/[a-z][\u200b-\u200d\u2060\ufeff](?=[a-z])/gi)?.length ?? 0) >= 3) {
    found.push({ name: "INVISIBLE_LETTERS", score: 2, description: "Invisible characters break its words apart" });
  }
  return found;
}

function lettersIn(text: string): number {
  return text.replace(/&#?\w{1,10};/g, "").match(/[\p{L}\p{N}]/gu)?.length ?? 0;
}

function showsOtherHost(html: string): boolean {
  let links = 0;
  for (const [, href = "", shown = ""] of html.matchAll(ANCHOR)) {
    const host = SHOWN_HOST.exec(shown)?.[1];
    const domain = host === undefined ? null : registrableDomain(host.toLowerCase());
    const target = registrableDomain(hostOf(href));
    if (domain !== null && target !== null && domain !== target) return true;
    links += 1;
    if (links === LINKS_MAX) break;
  }
  return false;
}

function hostOf(href: string): string {
  const authority = /^https?:[\\/]{0,8}([^\\/?#]{1,300})/i.exec(href)?.[1] ?? "";
  return authority
    .slice(authority.lastIndexOf("@") + 1)
    .replace(/:\d*$/, "")
    .toLowerCase();
}
