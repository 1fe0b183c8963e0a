// Whether the addresses that mail leaves from, or the host name, are on block lists in the DNS. Asks only the lists that
// the operator has set: they are strangers. Not here: whether a list answers at all (doctor/check-spam.ts).
import type { FoundConfig } from "../config.ts";
import { askBlockLists, readBlockList } from "../mail/spam/block-lists.ts";
import type { Resolver } from "../platform/dns/resolver.ts";
import { type Check, ok, problem, skipped } from "./check.ts";
import type { PoolAddress } from "./sending-addresses.ts";

const NAME = "listed";

/** One finding for each address or name that is listed, else one for all. */
export async function checkListed(
  { dns_block_lists, hostname }: Pick<FoundConfig, "dns_block_lists" | "hostname">,
  resolver: Pick<Resolver, "a">,
  addresses: readonly PoolAddress[],
): Promise<Check[]> {
  const lists = dns_block_lists.flatMap((word) => readBlockList(word) ?? []);
  if (addresses.length === 0) return [];
  if (lists.length === 0) {
    const says = "Whether our addresses are on block lists was not asked: no list is set.";
    return [skipped(NAME, says, "POSTERN_DNS_BLOCK_LISTS=zen.spamhaus.org, or another list that you may ask")];
  }
  const failures: string[] = [];
  const ask = async (name: string) => {
    const answer = await resolver.a(name);
    if (answer.kind === "failed") failures.push(answer.reason);
    return answer;
  };
  const answers = await Promise.all(
    addresses.map(({ ip, ehlo }) => askBlockLists(lists, { ip, domains: [ehlo] }, ask)),
  );
  const listed = new Set(answers.flatMap(({ symptoms }) => symptoms.map(({ description }) => description)));
  if (listed.size === 0 && failures[0] !== undefined)
    return [skipped(NAME, `Whether our addresses are on block lists could not be asked (${failures[0]}).`)];
  if (listed.size === 0) {
    const zones = lists.map(({ zone }) => zone).join(", ");
    return [ok(NAME, `No address of ${hostname} is on a block list that is set (${zones}).`)];
  }
  const remedy = "Ask the list to remove it, once you know what got it there; until then send through a relay.";
  return [...listed].map((text) => problem(NAME, `${text}: servers that ask this list refuse our mail.`, remedy));
}
