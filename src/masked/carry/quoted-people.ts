// The people a reply names by their reverse addresses: in To and Cc, and anywhere in what it quotes and attaches. Their
// contacts get to read an address that means something to them. What is no reverse address of this alias stays unknown here.
import { domainToUnicode } from "node:url";
import type { World } from "../../platform/world.ts";
import { addressDigest, openContact } from "../addresses/addresses.ts";
import { findContacts } from "../people-queries.ts";
import { findAddresses } from "../queries.ts";
import type { Replacement } from "../rewrite/scrub/replace-addresses.ts";
import { shownReplacements } from "../rewrite/scrub/shown-address.ts";
import type { AliasRow, ContactSecrets } from "../types.ts";

type QuotedWorld = Pick<World, "db" | "seal">;

export type Quoted = ContactSecrets & { id: string; reverse: string };

/** The contacts of this alias behind addresses that are reverse addresses of it, each with its reverse address. */
export async function contactsBehind(
  world: QuotedWorld,
  alias: Pick<AliasRow, "id" | "org_id" | "domain">,
  addresses: readonly string[],
): Promise<Quoted[]> {
  if (addresses.length === 0) return [];
  const digests = addresses.map((address) => addressDigest(world, address));
  const found = await findAddresses(world.db, digests);
  const ours = found.filter(({ alias_id, kind }) => alias_id === alias.id && kind === "reverse");
  const ids = ours.flatMap(({ contact_id }) => contact_id ?? []);
  const rows = ids.length === 0 ? [] : await findContacts(world.db, alias.org_id, ids);
  return rows.map((row) => {
    const secrets = openContact(world, alias.org_id, row.sealed);
    return { ...secrets, id: row.id, reverse: `${secrets.reply_local}@${alias.domain}` };
  });
}

/**
 * What stands in a reply for their reverse addresses, and for the names that they were shown under: `to`, which is another
 * address than their own where that is a mailbox of the owner, or where a mailbox of the owner reads it.
 */
export function restoring(people: readonly (Pick<Quoted, "reverse" | "email"> & { to: string })[]): Replacement[] {
  return people.flatMap(({ reverse, email, to }) => [
    ...writtenForms(reverse).flatMap((from) => (from === to ? [] : { from, to })),
    ...shownReplacements(email, to),
  ]);
}

/** Ids of the mailbox's own mail as programs write them into quotes and links, and what they are called outside. */
export function quotedIds(ids: readonly { inner: string; outer: string }[]): Replacement[] {
  const bare = (id: string) => id.replace(/^<|>$/g, "");
  return ids.flatMap(({ inner, outer }) => (ID_LIKE_ADDRESS.test(inner) ? { from: bare(inner), to: bare(outer) } : []));
}

/** One that could not stand in a text by chance. */
const ID_LIKE_ADDRESS = /^<[^<>\s@]{4,}@[^<>\s@]{4,}>$/;

/** An international domain in codes and in letters, as mail programs show it. */
export function writtenForms(address: string): string[] {
  const at = address.lastIndexOf("@") + 1;
  return [...new Set([address, address.slice(0, at) + domainToUnicode(address.slice(at))])];
}
