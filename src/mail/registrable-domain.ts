// The domain that somebody registered, by the public suffix list (https://publicsuffix.org/list/, its private part too):
// the organizational domain of RFC 7489, which RFC 9989 asks the DNS for instead. The list is tldts'.
import { getDomain } from "tldts";
import { toDnsName } from "./auth/author.ts";

/** In A-labels; null for a public suffix, and for what is no name (an empty label, an address). Case does not matter. */
export function registrableDomain(name: string): string | null {
  const ascii = toDnsName(name);
  if (ascii.split(".").includes("")) return null;
  return getDomain(ascii, { allowPrivateDomains: true });
}
