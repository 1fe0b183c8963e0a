// What happened to a message becomes, in one transaction: a row of the timeline, the counters of the statistics, webhook
// deliveries, and where the recipient is at fault a suppression. Face of the feature; called by whoever records an
// outcome.
import { SIMULATOR } from "../mail/simulated.ts";
import type { Tx } from "../platform/database/db.ts";
import type { World } from "../platform/world.ts";
import { countEvents } from "../stats/stats.ts";
import { type AutomaticEntry, suppress } from "../suppressions/suppressions.ts";
import { enqueueWebhooks, forgetEvents } from "../webhooks/webhooks.ts";
import { toOutgoing } from "./announce.ts";
import { isSentByCustomer } from "./origins.ts";
import * as queries from "./queries.ts";
import type { EventView, MailEvent } from "./types.ts";

export { isSentByCustomer } from "./origins.ts";
export type { EventView, MailEvent } from "./types.ts";

const UNLISTED_ORIGINS = new Set(["masked", "system", "tls_report"]);

/** Writes the events of one batch. Must run in the transaction that records the outcomes themselves. */
export async function recordEvents(tx: Tx, world: Pick<World, "clock" | "random">, events: MailEvent[]): Promise<void> {
  if (events.length === 0) return;
  await queries.insertEvents(tx, events);
  // A forward to a dead mailbox says nothing about how the customer sends: it must not pause a warming domain. What the
  // simulator answers says nothing of anybody.
  await countEvents(
    tx,
    events.filter(({ about, isp }) => isSentByCustomer(about) && isp !== SIMULATOR),
  );
  const faults = events.flatMap((event) => toSuppression(event) ?? []);
  if (faults.length > 0) await suppress(world, tx, faults);
  await enqueueWebhooks(
    tx,
    world,
    events.flatMap((event) => toOutgoing(event) ?? []),
  );
}

/**
 * Only a fault of the recipient or a complaint suppresses; `event.suppress` is the classifier's word on the first. Mail
 * through masked addresses and our own notices go to people the customer does not know: they are in no list of theirs.
 */
function toSuppression(event: MailEvent): AutomaticEntry | null {
  const isComplaint = event.event_type === "complained";
  if (event.recipient === null || event.about.environment === "test" || event.isp === SIMULATOR) return null;
  if (UNLISTED_ORIGINS.has(event.about.origin ?? "")) return null;
  if (!isComplaint && !(event.suppress && event.event_type === "bounced")) return null;
  return {
    org_id: event.org_id,
    email: event.recipient,
    reason: isComplaint ? "complaint" : "hard_bounce",
    source_message_id: event.message_id,
    bounce_code: event.smtp_code,
    diag_code: event.enhanced_code,
    feedback_type: event.complaint?.feedback_type ?? null,
  };
}

/** The suppression that an event asks for, without the event: for what is reported again of mail that has bounced already. */
export async function suppressOnly(tx: Tx, world: Pick<World, "clock" | "random">, event: MailEvent): Promise<void> {
  const fault = toSuppression(event);
  if (fault) await suppress(world, tx, [fault]);
}

/**
 * Which of these events (by id) the timeline has already: by that id, or as `ambiguous` for the same recipient and
 * attempt.
 */
export async function findReported(tx: Tx, events: MailEvent[]): Promise<Set<string>> {
  if (events.length === 0) return new Set();
  return new Set((await queries.findReported(tx, events)).map(({ id }) => id));
}

/** When the timeline last had an event of this type about a recipient of a message; null when it had none. */
export async function lastEventAt(tx: Tx, asked: queries.AskedEvent): Promise<Date | null> {
  return (await queries.findLast(tx, asked))[0]?.at ?? null;
}

/** Takes from the timelines of messages whom they went to and what servers answered; codes and times stay. */
export function forgetRecipients(tx: Tx, messages: readonly { org_id: string; id: string }[]) {
  return queries.forgetRecipients(tx, messages);
}

/** Deletes the timelines of messages, and what webhooks were sent of them. Run the transaction in `withPartitions`. */
export async function eraseTimelines(
  tx: Tx,
  world: Pick<World, "clock">,
  orgId: string,
  messageIds: readonly string[],
): Promise<void> {
  const ids = await queries.deleteTimelines(tx, orgId, messageIds);
  await forgetEvents(tx, world, ofOrganization(orgId, ids));
}

export type Shared = { org_id: string; message_ids: readonly string[]; named_in: readonly string[] };

/**
 * The same of one address in messages to several: its events stay, without it. Subject, tags and metadata of those `named_in` hold the
 * address: webhooks post them with each event.
 */
export async function eraseFromTimelines(
  tx: Tx,
  world: Pick<World, "clock">,
  { org_id, message_ids, named_in }: Shared,
  about: { email: string; mention: string },
): Promise<void> {
  const blanked = await queries.blankAddress(tx, org_id, message_ids, about);
  const naming = await queries.findIds(tx, org_id, named_in);
  await forgetEvents(tx, world, ofOrganization(org_id, [...new Set([...blanked, ...naming])]));
}

function ofOrganization(org_id: string, ids: readonly string[]) {
  return ids.map((id) => ({ org_id, id }));
}

/** The timeline of one message, oldest first. */
export async function timeline(tx: Tx, orgId: string, messageId: string): Promise<EventView[]> {
  return queries.listEvents(tx, orgId, messageId);
}
