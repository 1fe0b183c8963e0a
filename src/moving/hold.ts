// Holding an organization still while it is moved: its requests are answered 503, its mail 451, what it has queued waits. `keep` lets it
// go on here. Not here: how each process learns of it (follow-moves.ts).
import { beginMove, endMove, findMove, findSeen, type Move } from "../accounts/move-queries.ts";
import { hasArrived } from "../cells/elsewhere.ts";
import { domainsHeldBy } from "../domains/domains.ts";
import { countAtServers } from "../outbound/outbound.ts";
import type { Db, Query } from "../platform/database/db.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import { listUses } from "../platform/storage/rotate-master-key.ts";
import type { World } from "../platform/world.ts";
import { countAtEndpoints } from "../webhooks/webhooks.ts";

/** Begins to hold it; false where that was begun before. Throws a sentence where there is no such organization. */
export async function hold(db: Db, orgId: string, now: Date): Promise<boolean> {
  return db.transaction(async (tx) => {
    if ((await findMove(tx, orgId)).length > 0) return false;
    await beginMove(tx, orgId, now);
    if ((await findMove(tx, orgId)).length === 0) throw notThere(orgId);
    return true;
  });
}

/** It stays here, in the state that it had. Throws a sentence where another cell has it already, as far as a door can tell. */
export async function keep(world: Pick<World, "db" | "config">, orgId: string): Promise<Move> {
  for (const domain of await domainsHeldBy(world, orgId)) {
    const arrived = await hasArrived(world, domain);
    if (arrived === null)
      throw new Error("the door of the cells does not answer whether another one has it by now; try again.");
    if (arrived)
      throw new UsageError(`another cell has it: ${domain} is there. Remove it here: postern organizations remove.`);
  }
  return world.db.transaction(async (tx) => {
    const [move] = await findMove(tx, orgId);
    if (!move) throw new UsageError("this organization is not being moved.");
    await endMove(tx, move);
    return move;
  });
}

/** What is still under way for it: of each kind a part of a sentence. Empty: nothing changes any more. */
export async function findUnderWay(db: Query, orgId: string): Promise<string[]> {
  const seen = new Set((await findSeen(db, orgId)).map(({ process }) => process));
  const silent = (await listUses(db)).filter(({ process }) => !seen.has(process));
  const [deliveries, webhooks] = [await countAtServers(db, orgId), await countAtEndpoints(db, orgId)];
  return [
    ...silent.map(({ machine, pid }) => `process ${pid} on ${machine} has not answered yet`),
    ...(deliveries > 0 ? [`${deliveries} deliveries are at a mail server`] : []),
    ...(webhooks > 0 ? [`${webhooks} webhooks are at their endpoints`] : []),
  ];
}

export function notThere(orgId: string): UsageError {
  return new UsageError(`there is no organization with the id ${orgId}; \`postern organizations list\` shows them.`);
}
