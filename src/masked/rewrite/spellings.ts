// The addresses that name a hidden mailbox as surely as the one it was confirmed under: without its tag (RFC 5233), with its
// domain in letters or in codes (RFC 5890), and at the other names that its provider gives the same mailbox. Dots within
// Gmail's local parts are left to those who search: there are too many ways to set them.
import { domainToASCII, domainToUnicode } from "node:url";
import iconv from "iconv-lite";
import { domainOf } from "../../mail/address.ts";
import type { Replacement } from "./scrub/replace-addresses.ts";

/** Names of one and the same mailbox at providers that many people use. */
const SAME: readonly (readonly string[])[] = [
  ["gmail.com", "googlemail.com"],
  ["proton.me", "protonmail.com", "protonmail.ch", "pm.me"],
  ["icloud.com", "me.com", "mac.com"],
  ["yandex.ru", "yandex.com", "yandex.by", "yandex.kz", "ya.ru"],
];

/**
 * A replacement for each spelling of the hidden address. `seen` are the recipients: whoever writes to the own mailbox under
 * another spelling of it hides the confirmed one only.
 */
export function spellings({ from, to }: Replacement, seen: readonly string[]): Replacement[] {
  const isSeen = seen.some((address) => isSameMailbox(address, from));
  const domain = domainOf(from).toLowerCase();
  const local = from.slice(0, from.lastIndexOf("@"));
  const untagged = local.replace(/\+.*$/s, "");
  const locals = isSeen || untagged === "" ? [local] : [...new Set([local, untagged])];
  const domains = isSeen ? [domain] : (SAME.find((same) => same.includes(domain)) ?? [domain]);
  const names = domains.flatMap((one) => [one, domainToASCII(one), domainToUnicode(one)]).filter((one) => one !== "");
  const written = [...names, ...names.flatMap(misread)];
  return locals.flatMap((one) => [...new Set(written)].map((name) => ({ from: `${one}@${name}`, to })));
}

/** As programs show UTF-8 that they take for a charset of the West. */
function misread(domain: string): string[] {
  if (/^[\x00-\x7f]*$/.test(domain)) return [];
  const octets = Buffer.from(domain);
  return [octets.toString("latin1"), iconv.decode(octets, "windows-1252")];
}

/** True if both addresses are spellings of one mailbox. */
export function isSameMailbox(one: string, other: string): boolean {
  return mailboxOf(one) === mailboxOf(other);
}

/** What all spellings of a mailbox have in common. */
function mailboxOf(email: string): string {
  const domain = (domainToASCII(domainOf(email)) || domainOf(email)).toLowerCase();
  const [name = domain] = SAME.find((same) => same.includes(domain)) ?? [];
  const local = email
    .slice(0, email.lastIndexOf("@"))
    .toLowerCase()
    .replace(/(?<=.)\+.*$/s, "");
  return `${name === "gmail.com" ? local.replaceAll(".", "") : local}@${name}`;
}
