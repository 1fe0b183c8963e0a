// An address as words, `shop at example.com`: so we name it to a mailbox where a reverse address stands for it, and mail
// programs quote that in replies.
import type { Replacement } from "./replace-addresses.ts";

/** No address any more, and readable as one. */
export function shownAddress(email: string): string {
  return email.replace("@", " at ");
}

/** Undoes it: `Shop (shop at example.com)` was `Shop`, `shop at example.com` was the address; `to` stands for that. */
export function shownReplacements(email: string, to = email): Replacement[] {
  const shown = shownAddress(email);
  return [
    { from: ` (${shown})`, to: "" },
    { from: shown, to },
  ];
}
