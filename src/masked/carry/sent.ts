// What contacts sent that names the owner's mailbox (masked/rewrite/sent/sent-content.ts): which tokens stand for it, and what is
// remembered of it, for each of the people that the mail was from or for.

import type { World } from "../../platform/world.ts";
import { contactDigest, openContact } from "../addresses/addresses.ts";
import { ensureContacts } from "../addresses/contacts.ts";
import type { IsWithin } from "../arrive/windows.ts";
import type { FindContact } from "../lookups.ts";
import { findContactsByDigest, findSent } from "../people-queries.ts";
import { personDigest, type SentContent, tokenDigest } from "../rewrite/sent/sent-content.ts";
import type { Token } from "../rewrite/sent/tokens.ts";
import type { AliasRow } from "../types.ts";

type SentWorld = Pick<World, "db" | "clock" | "random" | "seal">;
type Alias = Pick<AliasRow, "id" | "org_id" | "domain">;

/**
 * How much is remembered of one contact, of lines and of all else: what was sent before that comes back changed. Lines:
 * 200,000 gaps between words.
 */
const SENT_MAX = { digests: 20_000, line_octets: 1_000_000 };
/** The most digests of one mail. */
const DIGESTS_MAX = 5_000;
/** The most lines of one mail, over all people in it. */
const LINES_MAX = 2_000;

/** The key of the digests of an alias. */
export function sentKey({ seal }: Pick<World, "seal">, { id }: Pick<Alias, "id">): string {
  return seal.hashOften(id, "masked-sent").toString("hex");
}

/** Tokens to find out with whether there is anything to hide: they are nobody's. */
export function probingTokens(alias: Alias, mailboxes: readonly string[]): Token[] {
  const reverse = `r.${"a".repeat(26)}@${alias.domain}`;
  return mailboxes.map((email) => ({ reverse, email }));
}

/** Tokens of the mailboxes, which are contacts of the alias from now on. */
export async function tokensOf(
  world: SentWorld,
  find: FindContact,
  alias: Alias,
  mailboxes: readonly string[],
): Promise<Token[]> {
  const rows = await ensureContacts(
    world,
    find,
    alias,
    mailboxes.map((email) => ({ name: null, email, is_token: true })),
  );
  return [...rows.values()].map((row) => tokenOf(world, alias, row));
}

/** Tokens of people that links name, who are contacts from now on, as many as a day may bring. */
export async function linkedTokens(
  world: SentWorld,
  { find, isWithin }: { find: FindContact; isWithin: IsWithin },
  alias: Alias,
  emails: readonly string[],
): Promise<Token[]> {
  const taken: string[] = [];
  for (const email of emails) {
    const isKnown = await find(alias, contactDigest(world, alias.id, email));
    if (!isKnown && !(await isWithin(alias, "linked_contact_day"))) break;
    taken.push(email);
  }
  return tokensOf(world, find, alias, taken);
}

function tokenOf(world: SentWorld, { org_id, domain }: Alias, { sealed }: { sealed: Buffer }): Token {
  const { email, reply_local } = openContact(world, org_id, sealed);
  return { reverse: `${reply_local}@${domain}`, email };
}

/** What is remembered of a mail: that all of them sent these, and these lines. */
export function sentRows(contactIds: readonly string[], digests: Iterable<string>, lines: readonly string[]) {
  const ids = [...new Set(contactIds)];
  const known = [...[...digests].slice(0, DIGESTS_MAX), ...lines.slice(0, LINES_MAX / ids.length)];
  const found = known.map((digest) => Buffer.from(digest, "base64url"));
  return ids.flatMap((contact_id) => found.map((digest) => ({ contact_id, digest })));
}

/** What a contact sent so far, and the tokens of these mailboxes. */
export async function sentBy(
  world: SentWorld,
  alias: Alias,
  contactId: string,
  mailboxes: readonly string[],
): Promise<SentContent> {
  const key = sentKey(world, alias);
  const rows = await findSent(world.db, alias.org_id, contactId, SENT_MAX);
  if (rows.length === 0) return { key, digests: [], tokens: [] };
  const wanted = mailboxes.map((email) => contactDigest(world, alias.id, email));
  const contacts = await findContactsByDigest(world.db, alias.org_id, alias.id, wanted);
  return {
    key,
    digests: rows.map(({ digest }) => digest.toString("base64url")),
    tokens: contacts.map((row) => tokenOf(world, alias, row)),
  };
}

/** True if the contact named this address among the people of a mail. */
export function isPersonTo({ key, digests }: SentContent, email: string): boolean {
  return digests.includes(personDigest(key, email));
}

/** True if the contact itself named this mailbox, as it is written here. */
export function isNamedBy({ key, digests }: SentContent, email: string): boolean {
  return digests.includes(tokenDigest(key, email));
}
