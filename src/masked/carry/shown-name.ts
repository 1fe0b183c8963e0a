// How a contact is named to the mailbox, `Shop (shop at example.com)`, and to others again.

import type { Person } from "../arrive/correspondents.ts";
import { shownAddress } from "../rewrite/scrub/shown-address.ts";

const NAME_MAX = 100;

/** The name before a reverse address: who it is, though the address is another. */
export function shownName({ name, email }: Person): string {
  const readable = shownAddress(email);
  const clean = cleanName(name);
  return clean === "" || clean.toLowerCase() === email.toLowerCase() ? readable : `${clean} (${readable})`;
}

/** The name alone; null where there is none besides the address. */
export function plainName({ name, email }: Person): string | null {
  const clean = cleanName(name);
  return clean === "" || clean.toLowerCase() === email.toLowerCase() ? null : clean;
}

function cleanName(name: string | null): string {
  return (name ?? "")
    .replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Cf}]+/gu, " ")
    .slice(0, NAME_MAX)
    .toWellFormed()
    .trim();
}

/**
 * The name that a reply's author has for a contact, without what we put to it. What is stored of the contact is never
 * shown to it: the owner may have called it anything.
 */
export function undecorated(name: string | null, email: string): string | null {
  const readable = shownAddress(email);
  const clean = (name ?? "").replace(/\s+/g, " ").replace(`(${readable})`, "").trim();
  return clean === "" || clean === readable || clean.includes("@") ? null : clean;
}
