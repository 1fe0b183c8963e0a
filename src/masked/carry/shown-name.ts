// How a contact is named to the mailbox, `Shop (shop at example.com)`, and to others again.

import { NOWHERE, type Person } from "../arrive/correspondents.ts";
import { shownAddress } from "../rewrite/scrub/shown-address.ts";

const NAME_MAX = 100;

/** The name before a reverse address: who it is, though the address is another. */
export function shownName({ name, email }: Person): string {
  const readable = shownAddress(email);
  const clean = cleanName({ name, email });
  return clean === "" ? readable : `${clean} (${readable})`;
}

/** Stands before the name of an author whose domain says that this mail is not from it, and is believed. */
export const UNPROVEN = "[sender not proven]";

/** The name alone; null where there is none besides the address. */
export function plainName(person: Person): string | null {
  const clean = cleanName(person);
  return clean === "" ? null : clean;
}

/** What an address may be written with. */
const LIKE_ADDRESS =
  /[@\uff20]|%40|&#|\bat\s+\S+\.\S|[[({]\s?(?:at|ät)|[-_]at[-_]|[^\s=]=\S+\.|\w_\w+_\w|[A-Za-z0-9+/_-]{20}/i;

/**
 * "" for a name that may hold an address, whosever: programs put names into the line above a quote and break that line where
 * the length of a name wants it, which would answer a guess.
 */
function cleanName({ name, email }: Person): string {
  const clean = (name ?? "")
    .replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Cf}]+/gu, " ")
    .slice(0, NAME_MAX)
    .toWellFormed()
    .trim();
  // Who cannot be written to is known by it alone, and no answer goes there.
  return LIKE_ADDRESS.test(clean) && !email.endsWith(`@${NOWHERE}`) ? "" : clean;
}

/**
 * The name that a reply's author has for a contact, without what we put to it. What is stored of the contact is never
 * shown to it: the owner may have called it anything.
 */
export function undecorated(name: string | null, email: string): string | null {
  const readable = shownAddress(email);
  const clean = (name ?? "").replace(/\s+/g, " ").replace(UNPROVEN, "").replace(`(${readable})`, "").trim();
  return clean === "" || clean === readable || clean.includes("@") ? null : clean;
}
