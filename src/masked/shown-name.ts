// How a contact is named to the mailbox, `Shop (shop at example.com)`, and what must stand in a reply where that is quoted.
import type { Replacement } from "../mail/masked/replace-addresses.ts";
import type { Person } from "./correspondents.ts";

const NAME_MAX = 100;

/** The name before a reverse address: who it is, though the address is another. */
export function shownName({ name, email }: Person): string {
  const readable = email.replace("@", " at ");
  const clean = cleanName(name);
  return clean === "" || clean.toLowerCase() === email.toLowerCase() ? readable : `${clean} (${readable})`;
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
  const readable = email.replace("@", " at ");
  const clean = (name ?? "").replace(/\s+/g, " ").replace(`(${readable})`, "").trim();
  return clean === "" || clean === readable || clean.includes("@") ? null : clean;
}

/** Undoes the decoration: `Shop (shop at example.com)` was `Shop`, `shop at example.com` was the address. */
export function shownReplacements(email: string): Replacement[] {
  const readable = email.replace("@", " at ");
  return [
    { from: ` (${readable})`, to: "" },
    { from: readable, to: email },
  ];
}
