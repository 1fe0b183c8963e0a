// The other aliases of a mailbox: that two aliases belong to one person is known to that person alone. Those that a mail
// names are treated as the mailbox itself is. What a contact wrote of them comes back to it as it was (sent-content.ts), and
// to nobody else. They are looked up by what the mail names, because a person may have thousands.
import type { World } from "../../platform/world.ts";
import { addressDigest, REPLY_LOCAL, untagged } from "../addresses/addresses.ts";
import { addressOf } from "../arrive/correspondents.ts";
import { type AliasContext, type addressFinder, aliasDomainFinder, type FindContext } from "../lookups.ts";
import { findAddressesOfPerson } from "../queries.ts";
import { gluedAmong, readingsOf } from "../rewrite/named-addresses.ts";

/** The aliases among these addresses that share a mailbox with the alias, but not the alias itself; deleted ones, too. */
export type FindSiblings = (context: AliasContext, named: readonly string[]) => Promise<string[]>;

/** A finder of them. */
export function siblingFinder(
  world: Pick<World, "db" | "seal">,
  findAddress: ReturnType<typeof addressFinder>,
  find: FindContext,
): FindSiblings {
  const findGlued = gluedFinder(world);
  return async (context, named) => {
    const { alias, destinations } = context;
    const own = addressOf(alias);
    const read = named.map((one) => readingsOf(one).map((reading) => reading.toLowerCase()));
    const wanted = new Set(read.flat().map(untagged));
    wanted.delete(own);
    const found = await Promise.all([...wanted].map((one) => findAddress(addressDigest(world, one))));
    const ids = found.flatMap((one) =>
      one?.kind === "alias" && one.org_id === alias.org_id && one.alias_id !== alias.id ? one.alias_id : [],
    );
    const others = await Promise.all([...new Set(ids)].map((id) => find(alias.org_id, id)));
    const mailboxes = new Set(destinations.map(({ id }) => id));
    const exact = others.flatMap((other) =>
      other?.destinations.some(({ id }) => mailboxes.has(id)) ? addressOf(other.alias) : [],
    );
    const glued = await findGlued(context, new Set(read.flatMap(([whole = ""]) => [whole, untagged(whole)])));
    // Whoever reads the alias reads what its address ends with.
    return [...new Set([...exact, ...glued])].filter((email) => !own.endsWith(email));
  };
}

/** A finder of those behind other letters: all of the person are compared, if mail names an address at a domain that has any. */
function gluedFinder(world: Pick<World, "db">) {
  const isAliasDomain = aliasDomainFinder(world);
  return async ({ alias, destinations }: AliasContext, named: ReadonlySet<string>): Promise<string[]> => {
    const isOurs = (one: string) => one === addressOf(alias) || REPLY_LOCAL.test(one.slice(0, one.lastIndexOf("@")));
    const others = [...named].filter((one) => !isOurs(untagged(one)));
    const byDomain = Map.groupBy(others, (one) => one.slice(one.lastIndexOf("@") + 1));
    const asked = await Promise.all([...byDomain.keys()].map((domain) => isAliasDomain(alias.org_id, domain)));
    const domains = [...byDomain.keys()].filter((_, at) => asked[at]);
    if (domains.length === 0) return [];
    const person = { destinations: destinations.map(({ id }) => id), domains };
    const emails = new Set(await findAddressesOfPerson(world.db, alias.org_id, person));
    return gluedAmong(
      domains.flatMap((domain) => byDomain.get(domain) ?? []),
      emails,
    );
  };
}
