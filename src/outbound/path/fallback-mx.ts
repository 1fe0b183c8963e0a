// Which other server of the domain is asked in the same attempt, when one that greeted us cannot take the message now
// (RFC 5321 §5.1: the addresses are tried in order "until a delivery attempt succeeds"). Without it a first server that greets
// and then fails would hold all mail to its domain back until that is out of time, with the second one idle beside it.

import type { PlannedHop } from "../route/tls-policy.ts";
import type { AttemptResult } from "./attempt.ts";
import type { Link } from "./link.ts";

/**
 * The first `max` of them, the last of which is another server's where there is one: four addresses of a server that is down
 * must not stand before the one behind it, attempt after attempt.
 */
export function firstOf(hops: readonly PlannedHop[], max: number): PlannedHop[] {
  const first = hops.slice(0, max);
  const other = hops.slice(max).find(({ host }) => host !== hops[0]?.host);
  const isAlone = first.every(({ host }) => host === first[0]?.host);
  return isAlone && other ? [...first.slice(0, -1), other] : first;
}

/** Trouble of the server. Not here: what another server says of a sender, a message or a mailbox as well. */
const OF_THE_SERVER = new Set(["busy", "connection", "dns"]);

/**
 * Those of `hops` to go on with; none when the result stands. A session that broke off says nothing of the other addresses
 * of its host; a reply is the same from each of them.
 */
export function otherServers({ hop }: Link, result: AttemptResult, hops: readonly PlannedHop[]): PlannedHop[] {
  if (result.outcome === null) return result.withheld ? [] : hops.filter(({ address }) => address !== hop.address);
  const { kind, ambiguous, smtp_code, class: why } = result.outcome;
  const isTemporary = kind === "deferred" && !ambiguous && smtp_code !== null;
  if (!isTemporary || result.path_action !== null || !OF_THE_SERVER.has(why ?? "")) return [];
  return hops.filter(({ host }) => host !== hop.host);
}

/** Which of two servers' answers is shown: the second's word if it ends the attempt or leaves it in doubt, else the first's. */
export function reportedOfBoth(first: AttemptResult, second: AttemptResult): AttemptResult {
  const isWord = second.outcome !== null && (second.outcome.kind !== "deferred" || second.outcome.ambiguous);
  return isWord ? second : { ...second, outcome: first.outcome ?? second.outcome, lost: first.lost };
}
