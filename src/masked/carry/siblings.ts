// The other aliases of a mailbox: that two aliases belong to one person is known to that person alone. Those that a mail
// names are treated as the mailbox itself is. What a contact wrote of them comes back to it as it was (sent-content.ts), and
// to nobody else. They are looked up by what the mail names, because a person may have thousands.
import type { World } from "../../platform/world.ts";
import { addressDigest, untagged } from "../addresses/addresses.ts";
import { addressOf } from "../arrive/correspondents.ts";
import type { AliasContext, addressFinder, FindContext } from "../lookups.ts";
import { readingsOf } from "../rewrite/named-addresses.ts";

/** The aliases among these addresses that share a mailbox with the alias, but not the alias itself; deleted ones, too. */
export type FindSiblings = (context: AliasContext, named: readonly string[]) => Promise<string[]>;

/** A finder of them. */
export function siblingFinder(
  world: Pick<World, "seal">,
  findAddress: ReturnType<typeof addressFinder>,
  find: FindContext,
): FindSiblings {
  return async ({ alias, destinations }, named) => {
    const own = addressOf(alias);
    const wanted = new Set(named.flatMap(readingsOf).map((one) => untagged(one.toLowerCase())));
    wanted.delete(own);
    const found = await Promise.all([...wanted].map((one) => findAddress(addressDigest(world, one))));
    const ids = found.flatMap((one) =>
      one?.kind === "alias" && one.org_id === alias.org_id && one.alias_id !== alias.id ? one.alias_id : [],
    );
    const others = await Promise.all([...new Set(ids)].map((id) => find(alias.org_id, id)));
    const mailboxes = new Set(destinations.map(({ id }) => id));
    return others.flatMap((other) => {
      if (!other?.destinations.some(({ id }) => mailboxes.has(id))) return [];
      const email = addressOf(other.alias);
      // Whoever reads the alias reads what its address ends with.
      return own.endsWith(email) ? [] : email;
    });
  };
}
