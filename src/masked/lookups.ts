// What is looked up on every mail, many at a time: whose address it is, an alias with its destinations, its contacts.
// Nothing is remembered, so that a change acts at once.

import type { Db } from "../platform/database/db.ts";
import { coalesce, coalesceByOrg } from "../platform/fair/coalesce.ts";
import type { World } from "../platform/world.ts";
import { addressDigest, openText, untagged } from "./addresses/addresses.ts";
import { findContactsByKey } from "./people-queries.ts";
import * as queries from "./queries.ts";
import type { AliasRow, ContactRow, Destination } from "./types.ts";

const AT_ONCE_MAX = 200;
const LANES = 2;

/**
 * One finder for all that is done with mail in a process: who decides about recipients, who looks at messages and who carries them
 * on ask the same questions, and share their round trips.
 */
function onePerDatabase<F>(make: (db: Db) => F): (world: Pick<World, "db">) => F {
  const made = new WeakMap<Db, F>();
  return ({ db }) => {
    const finder = made.get(db) ?? make(db);
    made.set(db, finder);
    return finder;
  };
}

export type AliasContext = { alias: AliasRow; destinations: Destination[] };

/** A finder of whose address it is, over all organizations. */
export const addressFinder = onePerDatabase((db) => {
  const find = coalesce<string, queries.FoundAddress>({
    keys_max: AT_ONCE_MAX,
    lanes: LANES,
    load: async (keys) => {
      const found = await queries.findAddresses(
        db,
        keys.map((key) => Buffer.from(key, "hex")),
      );
      return new Map(found.map((row) => [row.digest.toString("hex"), row]));
    },
  });
  return (digest: Buffer) => find(digest.toString("hex"));
});

/** Finds whose masked or reverse address this is. Null: nobody's here. */
export async function organizationOfMasked(world: Pick<World, "db" | "seal">, address: string): Promise<string | null> {
  return (await addressFinder(world)(addressDigest(world, untagged(address))))?.org_id ?? null;
}

export type FindContext = (orgId: string, aliasId: string) => Promise<AliasContext | undefined>;

type Found = Awaited<ReturnType<typeof queries.findAliasesWithDestinations>>;

const contextRows = onePerDatabase((db) =>
  coalesceByOrg<Found>({
    keys_max: AT_ONCE_MAX,
    lanes: LANES,
    load: async (asked) => {
      const keys = asked.map(({ org_id, key }) => ({ org_id, id: key }));
      const rows = await queries.findAliasesWithDestinations(db, keys);
      // Ids of aliases are unique over all organizations.
      const byAlias = Map.groupBy(rows, ({ id }) => id);
      return [...byAlias].map(([id, found]) => [(found[0] as Found[0]).org_id, id, found]);
    },
  }),
);

/** A finder of aliases with their destinations in order, deleted aliases too. */
export function contextFinder(world: Pick<World, "db" | "seal">): FindContext {
  const find = contextRows(world);
  return async (orgId, aliasId) => {
    const rows = await find(orgId, aliasId);
    const [alias] = rows ?? [];
    if (!rows || !alias) return undefined;
    const destinations = rows.flatMap((row) => (row.destination_id === null ? [] : openDestination(world, row)));
    return { alias, destinations };
  };
}

function openDestination(
  world: Pick<World, "seal">,
  row: Pick<AliasRow, "org_id"> & queries.DestinationOfAlias,
): Destination {
  const { org_id, destination_id: id, status, sealed, pgp_sealed, pgp_hide_subject } = row;
  const pgp = pgp_sealed && { sealed: pgp_sealed, hide_subject: pgp_hide_subject };
  return { id, status, email: openText(world, org_id, sealed), pgp };
}

export type IsAliasDomain = (orgId: string, domain: string) => Promise<boolean>;

/** Whether an organization has, or had, masked aliases at a domain. */
export const aliasDomainFinder = onePerDatabase((db): IsAliasDomain => {
  const find = coalesceByOrg<true>({
    keys_max: AT_ONCE_MAX,
    lanes: LANES,
    load: async (asked) => {
      const rows = await queries.findAliasDomains(
        db,
        asked.map(({ org_id, key }) => ({ org_id, domain: key })),
      );
      return rows.map(({ org_id, domain }) => [org_id, domain, true]);
    },
  });
  return async (orgId, domain) => (await find(orgId, domain)) === true;
});

export type FindContact = (alias: Pick<AliasRow, "org_id" | "id">, digest: Buffer) => Promise<ContactRow | undefined>;

/** A finder of an alias's contacts by the digests of their addresses. */
export const contactFinder = onePerDatabase((db): FindContact => {
  const nameOf = (aliasId: string, digest: Buffer) => `${aliasId}/${digest.toString("hex")}`;
  const find = coalesceByOrg<ContactRow>({
    keys_max: AT_ONCE_MAX,
    lanes: LANES,
    load: async (asked) => {
      const keys = asked.map(({ org_id, key }) => {
        const [alias_id = "", hex = ""] = key.split("/");
        return { org_id, alias_id, digest: Buffer.from(hex, "hex") };
      });
      const rows = await findContactsByKey(db, keys);
      return rows.map((row) => [row.org_id, nameOf(row.alias_id, row.digest), row]);
    },
  });
  return ({ org_id, id }, digest) => find(org_id, nameOf(id, digest));
});
