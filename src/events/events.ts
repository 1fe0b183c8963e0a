// What happened to a message becomes, in one transaction: a row of the timeline, webhook deliveries, and where the
// recipient is at fault a suppression. Face of the feature; called by whoever records an outcome.
import type { Tx } from "../platform/db.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./queries.ts";
import type { EventView, MailEvent } from "./types.ts";

export type { EventView, MailEvent } from "./types.ts";

/** Writes the events of one batch. Must run in the transaction that records the outcomes themselves. */
export async function recordEvents(
  tx: Tx,
  _world: Pick<World, "clock" | "random" | "seal">,
  events: MailEvent[],
): Promise<void> {
  if (events.length === 0) return;
  await queries.insertEvents(tx, events);
}

/** The timeline of one message, oldest first. */
export async function timeline(tx: Tx, orgId: string, messageId: string): Promise<EventView[]> {
  return queries.listEvents(tx, orgId, messageId);
}
