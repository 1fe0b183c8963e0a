// The other aliases of a mailbox: that two aliases belong to one person is known to that person alone. Those that a mail
// names are treated as the mailbox itself is. What a contact wrote of them comes back to it as it was (sent-content.ts), and
// to nobody else. They are looked up by what the mail names, because a person may have thousands.
import { domainOf } from "../../mail/address.ts";
import type { World } from "../../platform/world.ts";
import { addressDigest, REPLY_LOCAL, untagged } from "../addresses/addresses.ts";
import { addressOf } from "../arrive/correspondents.ts";
import { type AliasContext, type addressFinder, aliasDomainFinder, type FindContext } from "../lookups.ts";
import { type FoundAddress, findAddresses, findAddressesOfPerson } from "../queries.ts";
import { endsOf, gluedAmong, readingsOf } from "../rewrite/named-addresses.ts";

/**
 * So many ends of addresses are looked up in one statement: of some hundreds of addresses. For more all aliases of the person are
 * read. Of 100,000 on a busy machine: 0.1 s and 7 ms of the processor for one address, in place of 2 s and 125 ms.
 */
const ENDS_MAX = 5_000;

/** The aliases among these addresses that share a mailbox with the alias, but not the alias itself; deleted ones, too. */
export type FindSiblings = (context: AliasContext, named: readonly string[]) => Promise<string[]>;

/** A finder of them. */
export function siblingFinder(
  world: Pick<World, "db" | "seal">,
  findAddress: ReturnType<typeof addressFinder>,
  find: FindContext,
): FindSiblings {
  const among = sharing(find);
  const findGlued = gluedFinder(world, among);
  const isAliasDomain = aliasDomainFinder(world);
  return async (context, named) => {
    const own = addressOf(context.alias);
    const all = named.map((one) => readingsOf(one).map((reading) => reading.toLowerCase()));
    const domains = [...new Set(all.flat().map(domainOf))];
    const asked = await Promise.all(domains.map((domain) => isAliasDomain(context.alias.org_id, domain)));
    const theirs = new Set(domains.filter((_, at) => asked[at]));
    // Most mail names addresses where the organization has no alias.
    const read = all.filter(([whole = ""]) => theirs.has(domainOf(whole)));
    if (read.length === 0) return [];
    const wanted = new Set(read.flat().map(untagged));
    wanted.delete(own);
    const found = await Promise.all([...wanted].map((one) => findAddress(addressDigest(world, one))));
    const exact = await among(context, found);
    const glued = await findGlued(context, new Set(read.flatMap(([whole = ""]) => [whole, untagged(whole)])));
    // Whoever reads the alias reads what its address ends with.
    return [...new Set([...exact, ...glued])].filter((email) => !own.endsWith(email));
  };
}

/** Which of these addresses are the person's other aliases. */
function sharing(find: FindContext) {
  return async ({ alias, destinations }: AliasContext, found: readonly (FoundAddress | undefined)[]) => {
    const ids = found.flatMap((one) =>
      one?.kind === "alias" && one.org_id === alias.org_id && one.alias_id !== alias.id ? one.alias_id : [],
    );
    const others = await Promise.all([...new Set(ids)].map((id) => find(alias.org_id, id)));
    const mailboxes = new Set(destinations.map(({ id }) => id));
    return others.flatMap((other) =>
      other?.destinations.some(({ id }) => mailboxes.has(id)) ? addressOf(other.alias) : [],
    );
  };
}

/** A finder of those behind other letters: the ends of addresses at domains that have any are looked up. */
function gluedFinder(world: Pick<World, "db" | "seal">, among: ReturnType<typeof sharing>) {
  return async (context: AliasContext, named: ReadonlySet<string>): Promise<string[]> => {
    const { alias, destinations } = context;
    const isOurs = (one: string) => one === addressOf(alias) || REPLY_LOCAL.test(one.slice(0, one.lastIndexOf("@")));
    const close = [...named].filter((one) => !isOurs(untagged(one)));
    if (close.length === 0) return [];
    const ends = endsOf(close, ENDS_MAX);
    if (ends !== null) {
      const digests = [...ends].map((one) => addressDigest(world, one));
      return gluedAmong(close, new Set(await among(context, await findAddresses(world.db, digests))));
    }
    const domains = [...new Set(close.map(domainOf))];
    const person = { destinations: destinations.map(({ id }) => id), domains };
    return gluedAmong(close, new Set(await findAddressesOfPerson(world.db, alias.org_id, person)));
  };
}
