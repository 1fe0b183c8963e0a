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
  const isAliasDomain = aliasDomainFinder(world);

  async function lookUp(
    context: AliasContext,
    { wanted, close }: Sought,
    ends: ReadonlySet<string>,
  ): Promise<string[]> {
    const found = await Promise.all([...wanted].map((one) => findAddress(addressDigest(world, one))));
    const exact = await among(context, found);
    if (ends.size === 0) return exact;
    const digests = [...ends].map((one) => addressDigest(world, one));
    return [...exact, ...gluedAmong(close, new Set(await among(context, await findAddresses(world.db, digests))))];
  }

  /** Each of so many by itself would be a hundred round trips and more. */
  async function readAll({ alias, destinations }: AliasContext, { wanted, close }: Sought): Promise<string[]> {
    const person = { destinations: destinations.map(({ id }) => id), domains: [...new Set([...wanted].map(domainOf))] };
    const theirs = new Set(await findAddressesOfPerson(world.db, alias.org_id, person));
    return [...[...wanted].filter((one) => theirs.has(one)), ...gluedAmong(close, theirs)];
  }

  return async (context, named) => {
    const own = addressOf(context.alias);
    const all = named.map((one) => readingsOf(one).map((reading) => reading.toLowerCase()));
    const domains = [...new Set(all.flat().map(domainOf))];
    const asked = await Promise.all(domains.map((domain) => isAliasDomain(context.alias.org_id, domain)));
    const theirs = new Set(domains.filter((_, at) => asked[at]));
    // Most mail names addresses where the organization has no alias.
    const read = all.filter(([whole = ""]) => theirs.has(domainOf(whole)));
    if (read.length === 0) return [];
    const sought = soughtIn(read, own);
    const ends = sought.wanted.size > ENDS_MAX ? null : endsOf(sought.close, ENDS_MAX);
    const found = ends === null ? await readAll(context, sought) : await lookUp(context, sought, ends);
    // Whoever reads the alias reads what its address ends with.
    return [...new Set(found)].filter((email) => !own.endsWith(email));
  };
}

/** Addresses that may be an alias themselves, and those that may have other letters before one. */
type Sought = { wanted: ReadonlySet<string>; close: readonly string[] };

function soughtIn(read: readonly string[][], own: string): Sought {
  const wanted = new Set(read.flat().map(untagged));
  wanted.delete(own);
  const isOurs = (one: string) => one === own || REPLY_LOCAL.test(one.slice(0, one.lastIndexOf("@")));
  const whole = new Set(read.flatMap(([first = ""]) => [first, untagged(first)]));
  return { wanted, close: [...whole].filter((one) => !isOurs(untagged(one))) };
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
