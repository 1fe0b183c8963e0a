// The people that a mail names, once each and in bounds: what both the decision in session and the forward go by.
import { parseAddress } from "../mail/address.ts";
import type { ParsedMail } from "../mail/mime/parsed-mail.ts";
import type { AliasRow } from "./types.ts";

const PEOPLE_MAX = 30;
/** Whose address cannot be read at all. RFC 2606: nothing is ever delivered there. */
const NOBODY = { name: "unknown sender", email: "unknown@unknown.invalid" };

export type Person = { name: string | null; email: string };
export type Named = { from: Person; to: Person[]; cc: Person[]; reply_to: Person[] };
type AliasAddress = Pick<AliasRow, "local_part" | "domain">;

/** The alias's own address. */
export function addressOf({ local_part, domain }: AliasAddress): string {
  return `${local_part}@${domain}`;
}

/** Author, recipients and Reply-To of a mail to an alias, without the alias itself. */
export function correspondents(
  alias: AliasAddress,
  parsed: Pick<ParsedMail, "from" | "to" | "cc" | "reply_to">,
  envelopeFrom: string,
): Named {
  const own = addressOf(alias);
  const others = (list: ParsedMail["to"]) =>
    usable(list, PEOPLE_MAX).filter(({ email }) => email.toLowerCase() !== own && !isTagged(email, alias));
  const [author] = usable([...parsed.from, { name: null, email: envelopeFrom }], 1);
  return { from: author ?? NOBODY, to: others(parsed.to), cc: others(parsed.cc), reply_to: others(parsed.reply_to) };
}

function isTagged(email: string, { local_part, domain }: AliasAddress): boolean {
  const lower = email.toLowerCase();
  return lower.startsWith(`${local_part}+`) && lower.endsWith(`@${domain}`);
}

/** Addresses that can be written to, once each, the first `most` of them. */
export function usable(list: readonly { name: string | null; email: string | null }[], most: number): Person[] {
  const seen = new Map<string, Person>();
  for (const { name, email } of list) {
    if (seen.size >= most) break;
    const parsed = email === null ? null : parseAddress(email);
    if (!parsed?.ok) continue;
    const known = parsed.address.email;
    if (!seen.has(known.toLowerCase())) seen.set(known.toLowerCase(), { name, email: known });
  }
  return [...seen.values()];
}
