// The people that a mail names, once each and in bounds: what both the decision in session and the forward go by.
import { createHash } from "node:crypto";
import { parseWrittenAddress } from "../../mail/address.ts";
import type { ParsedMail } from "../../mail/mime/parsed-mail.ts";
import { calendarPeople } from "../rewrite/calendar/calendar-parts.ts";
import { shownAddress } from "../rewrite/scrub/shown-address.ts";
import { isSameMailbox } from "../rewrite/spellings.ts";
import type { AliasRow } from "../types.ts";

const PEOPLE_MAX = 30;
/** RFC 2606: nothing is ever delivered there. */
export const NOWHERE = "unknown.invalid";
/** Stands for the author of mail that names none. */
const NOBODY = { name: "unknown sender", email: `unknown@${NOWHERE}` };

export type Person = { name: string | null; email: string };
/** `invited`: whom its calendars name. */
export type Named = { from: Person; to: Person[]; cc: Person[]; reply_to: Person[]; invited: Person[] };
type AliasAddress = Pick<AliasRow, "local_part" | "domain">;

/** The alias's own address. */
export function addressOf({ local_part, domain }: AliasAddress): string {
  return `${local_part}@${domain}`;
}

export type Given = {
  parsed: Pick<ParsedMail, "from" | "to" | "cc" | "reply_to">;
  bytes: Buffer;
  envelope_from: string;
  /** Where the alias forwards to. */
  mailboxes: readonly string[];
};

/**
 * Author, recipients, Reply-To and invited people of a mail to an alias. Neither the alias itself nor a mailbox of its
 * owner: who answers all writes to others, and a mailbox in To would be shown by the answer.
 */
export function correspondents(alias: AliasAddress, { parsed, bytes, envelope_from, mailboxes }: Given): Named {
  const own = addressOf(alias);
  const isOwn = (email: string) =>
    email.toLowerCase() === own || isTagged(email, alias) || mailboxes.some((one) => isSameMailbox(one, email));
  const others = (list: readonly { name: string | null; email: string | null }[]) =>
    usable(list, PEOPLE_MAX).filter(({ email }) => !isOwn(email));
  const [to, cc, reply_to] = [others(parsed.to), others(parsed.cc), others(parsed.reply_to)];
  const invited = others(calendarPeople(bytes).map((email) => ({ name: null, email })));
  return { from: authorOf(parsed.from, envelope_from), to, cc, reply_to, invited };
}

/**
 * The first author that can be written to. The envelope only tells for a mail without one: it is where bounces go. An
 * address that nobody can write to is a person of its own all the same, so that blocking it blocks no other.
 */
function authorOf(from: Given["parsed"]["from"], envelopeFrom: string): Person {
  const written = from.find(({ email }) => email !== null);
  const [author] = usable(written ? from : [{ name: null, email: envelopeFrom }], 1);
  if (author) return author;
  if (!written?.email) return NOBODY;
  const { name, email } = written;
  const mark = createHash("sha256").update(email.toLowerCase()).digest("hex").slice(0, 20);
  const shown = shownAddress(email);
  return { name: name === null ? shown : `${name}, ${shown}`, email: `unknown.${mark}@${NOWHERE}` };
}

/** Everybody whom a mail names. */
export function everybody({ from, to, cc, reply_to, invited }: Named): Person[] {
  return [from, ...to, ...cc, ...reply_to, ...invited];
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
    const parsed = email === null ? null : parseWrittenAddress(email);
    if (!parsed?.ok) continue;
    const known = parsed.address.email;
    if (!seen.has(known.toLowerCase())) seen.set(known.toLowerCase(), { name, email: known });
  }
  return [...seen.values()];
}
