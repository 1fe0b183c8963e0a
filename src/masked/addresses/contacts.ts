// The people who write to an alias, and the reverse address that stands for each: whoever writes from a confirmed
// destination to the reverse address reaches the contact from the alias.

import { parseAddress } from "../../mail/address.ts";
import { isUuid, type Tx } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { totalOf } from "../../platform/database/totals.ts";
import { invalid, notFound, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { addressOf } from "../arrive/correspondents.ts";
import { canonicalAddress } from "../arrive/sender-proof.ts";
import type { FindContact } from "../lookups.ts";
import * as queries from "../people-queries.ts";
import { takeAddress } from "../queries.ts";
import type { AliasRow, ContactRecord, ContactRow, Who } from "../types.ts";
import { addressDigest, contactDigest, newReplyLocal, personDigest, sealContact, tryOpenContact } from "./addresses.ts";
import { requireAlias } from "./aliases.ts";

type ContactWorld = Pick<World, "db" | "clock" | "random" | "seal">;

export const CONTACT_NAME_MAX = 200;

/** Adds a contact (`created`), or shows the one that is there; 404 for an alias of somebody else. */
export async function addContact(
  world: ContactWorld,
  who: Who,
  aliasId: string,
  { email, name }: { email: string; name?: string | null },
): Promise<{ created: boolean; contact: ContactRecord }> {
  const address = readContact(email);
  return world.db.asOrg(who.org_id, async (tx) => {
    const alias = await requireAlias(tx, who, aliasId);
    if (address.toLowerCase() === addressOf(alias)) throw invalid("email", "the 'email' field is the alias itself");
    const found = await ensureContact(world, tx, alias, { email: address, name: cleanName(name), source: "api" });
    return { created: found.created, contact: showContact(world, alias, found.row) };
  });
}

function readContact(email: string): string {
  const parsed = parseAddress(email);
  if (!parsed.ok) throw invalid("email", `the 'email' field is not an e-mail address: ${parsed.reason}`);
  return parsed.address.email;
}

function cleanName(name: string | null | undefined): string | null {
  const clean = (name ?? "").replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ").trim();
  return clean === "" ? null : clean.slice(0, CONTACT_NAME_MAX).toWellFormed();
}

/** The contacts of these people by their addresses in lower case, made where they are new. */
export async function ensureContacts(
  world: ContactWorld,
  find: FindContact,
  alias: Pick<AliasRow, "org_id" | "id" | "domain">,
  people: readonly Pick<Wanted, "name" | "email" | "is_token">[],
): Promise<Map<string, ContactRow>> {
  const wanted = new Map(people.map((person) => [person.email.toLowerCase(), person]));
  const rows = new Map<string, ContactRow>();
  await Promise.all(
    [...wanted.keys()].map(async (email) => {
      const known = await find(alias, contactDigest(world, alias.id, email));
      if (known && (wanted.get(email)?.is_token || !known.is_token)) rows.set(email, known);
    }),
  );
  const missing = [...wanted].filter(([email]) => !rows.has(email));
  if (missing.length === 0) return rows;
  await world.db.asOrg(alias.org_id, async (tx) => {
    for (const [email, person] of missing) {
      rows.set(email, (await ensureContact(world, tx, alias, { ...person, source: "inbound" })).row);
    }
  });
  return rows;
}

export type Wanted = {
  email: string;
  name: string | null;
  source: "inbound" | "api";
  /** A mailbox of the owner that stands in the text of a mail. */
  is_token?: boolean;
};

/** The contact of that address, made with a reverse address of its own when it is new. */
async function ensureContact(
  world: ContactWorld,
  tx: Tx,
  alias: Pick<AliasRow, "org_id" | "id" | "domain">,
  wanted: Wanted,
): Promise<{ created: boolean; row: ContactRow }> {
  const digest = contactDigest(world, alias.id, wanted.email);
  const find = async () => (await queries.findContactsByDigest(tx, alias.org_id, alias.id, [digest]))[0];
  const known = await find();
  if (known?.is_token && !wanted.is_token) {
    await queries.makePerson(tx, alias.org_id, known.id, new Date(world.clock.now()));
  }
  if (known) return { created: false, row: { ...known, is_token: known.is_token && wanted.is_token === true } };
  const id = world.random.uuid();
  const reply_local = newReplyLocal(world.random);
  const created = await queries.insertContact(tx, alias.org_id, {
    id,
    alias_id: alias.id,
    digest,
    person: personDigest(world, alias.org_id, wanted.email),
    sealed: sealContact(world, alias.org_id, { email: wanted.email, name: cleanName(wanted.name), reply_local }),
    blocked: false,
    source: wanted.source,
    is_token: wanted.is_token ?? false,
    created_at: new Date(world.clock.now()),
  });
  if (created) {
    const address = addressDigest(world, `${reply_local}@${alias.domain}`);
    await takeAddress(tx, alias.org_id, { digest: address, kind: "reverse", alias_id: alias.id, contact_id: id });
  }
  return { created, row: (await find()) as ContactRow };
}

/** A contact as the API shows it: without its addresses where they were sealed with a master key that is lost. */
export function showContact(
  world: Pick<World, "seal">,
  alias: Pick<AliasRow, "org_id" | "domain">,
  row: ContactRow,
): ContactRecord {
  const secrets = tryOpenContact(world, alias.org_id, row.sealed);
  if (secrets === null) return { ...row, email: "", name: null, reply_address: "" };
  const { email, name, reply_local } = secrets;
  return { ...row, email, name, reply_address: `${reply_local}@${alias.domain}` };
}

export type ContactQuery = { blocked?: boolean | undefined; email?: string | undefined };

/** One page of an alias's contacts, newest first, with the total, or 404. */
export async function listContacts(
  world: Pick<World, "db" | "seal">,
  who: Who,
  { alias_id, blocked, email }: ContactQuery & { alias_id: string },
  page: Page,
) {
  return world.db.asOrg(who.org_id, async (tx) => {
    const alias = await requireAlias(tx, who, alias_id);
    const digest = email === undefined ? undefined : contactDigest(world, alias.id, canonicalAddress(email));
    const filter = { alias_id: alias.id, blocked, digest };
    const rows = await queries.listContacts(tx, who.org_id, filter, page);
    const total = await totalOf(rows.length, page, () => queries.countContacts(tx, who.org_id, filter));
    return { contacts: rows.map((row) => showContact(world, alias, row)), ...total, ...page };
  });
}

export type ContactKey = { alias_id: string; id: string };

/** Blocks, unblocks or renames a contact, or 404. Mail of a blocked contact is taken and dropped. */
export async function changeContact(
  world: ContactWorld,
  who: Who,
  key: ContactKey,
  changes: { blocked?: boolean; name?: string | null },
): Promise<ContactRecord> {
  return world.db.asOrg(who.org_id, async (tx) => {
    const alias = await requireAlias(tx, who, key.alias_id);
    const row = await mustFind(tx, who, key);
    await queries.updateContact(tx, who.org_id, row.id, {
      sealed: changes.name === undefined ? row.sealed : renamed(world, who, row, cleanName(changes.name)),
      blocked: changes.blocked ?? row.blocked,
      at: new Date(world.clock.now()),
    });
    return showContact(world, alias, await mustFind(tx, who, key));
  });
}

function renamed(world: Pick<World, "seal">, { org_id }: Who, { sealed }: ContactRow, name: string | null): Buffer {
  const secrets = tryOpenContact(world, org_id, sealed);
  if (secrets !== null) return sealContact(world, org_id, { ...secrets, name });
  throw new Refusal("invalid_state", "the contact was sealed with a lost master key; it can be blocked and deleted");
}

async function mustFind(tx: Tx, who: Who, { alias_id, id }: ContactKey): Promise<ContactRow> {
  const [row] = isUuid(id) ? await queries.findContacts(tx, who.org_id, [id]) : [];
  if (!row || row.alias_id !== alias_id) throw notFound("contact");
  return row;
}

/** Forgets a contact, or 404: the address and the name are gone, its reverse address leads nowhere any more. */
export async function deleteContact(world: Pick<World, "db">, who: Who, key: ContactKey): Promise<void> {
  await world.db.asOrg(who.org_id, async (tx) => {
    await requireAlias(tx, who, key.alias_id);
    const row = await mustFind(tx, who, key);
    await queries.deleteContact(tx, who.org_id, row.id);
  });
}
