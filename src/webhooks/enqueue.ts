// From events to queued deliveries, inside the producer's own transaction: the outcome and its webhooks commit together.
// One cheap select when nobody subscribes, else two or three statements for the whole batch. Events of organizations that
// read them from the API are kept besides (stream/stream.ts). Not here: sending.

import { compilePattern, type Pattern } from "../mail/glob-pattern.ts";
import type { Tx } from "../platform/database/db.ts";
import { createLru } from "../platform/fair/lru.ts";
import type { World } from "../platform/world.ts";
import { bodyOf } from "./event-body.ts";
import * as queue from "./queue-queries.ts";
import { keepForReaders } from "./stream/stream.ts";
import type { OutgoingEvent } from "./types.ts";

const PATTERNS_MAX = 5_000;
/** Bodies in one statement: received mail has up to some MiB each, and a parameter is twice that in hex. */
const STATEMENT_BYTES_MAX = 8 * 1024 * 1024;
/** Endpoints looked at between two turns of the event loop; their patterns take some ten milliseconds at most. */
const TRIED_A_TURN = 500;

/**
 * Queues each event for the enabled endpoints that want it: outbound events for those of all domains or of the event's,
 * `email.received` for the subscribed ones among `endpoint_ids`; all if `match_pattern` takes the recipient. Call it once
 * in a transaction, near its end (it locks); run the transaction in `withPartitions`, and `wakeHooks` after the commit.
 */
export async function enqueueWebhooks(
  tx: Tx,
  world: Pick<World, "clock" | "random">,
  events: readonly OutgoingEvent[],
): Promise<void> {
  if (events.length === 0) return;
  const at = new Date(world.clock.now());
  await keepForReaders(tx, world, events, at);
  const orgIds = [...new Set(events.map((event) => event.org_id))];
  const subscribers = await queue.holdSubscribers(tx, orgIds, [...new Set(events.map(({ event }) => event))], at);
  if (subscribers.length === 0) return;
  const wanted = new Set<string>();
  for (const { bodies, deliveries } of await match(world, events, byOrganization(subscribers))) {
    await queue.insertDeliveries(tx, bodies, deliveries, at);
    for (const delivery of deliveries) wanted.add(delivery.webhook_id);
  }
  const asleep = subscribers.filter((subscriber) => subscriber.sleeps && wanted.has(subscriber.id));
  if (asleep.length > 0) await queue.wakeLanes(tx, asleep.map(laneOf), at);
}

function laneOf(subscriber: queue.Subscriber): queue.LaneKey {
  return { org_id: subscriber.org_id, webhook_id: subscriber.id };
}

function byOrganization(subscribers: queue.Subscriber[]): Map<string, queue.Subscriber[]> {
  return Map.groupBy(subscribers, (subscriber) => subscriber.org_id);
}

type Batch = { bodies: queue.NewBody[]; deliveries: queue.NewDelivery[]; bytes: number };

/** One batch, unless its bodies are large. Many patterns are tried in turns with everything else. */
async function match(
  world: Pick<World, "random">,
  events: readonly OutgoingEvent[],
  subscribers: Map<string, queue.Subscriber[]>,
): Promise<Batch[]> {
  const batches: Batch[] = [];
  let batch: Batch | null = null;
  let tried = 0;
  for (const event of events) {
    const ofOrganization = subscribers.get(event.org_id) ?? [];
    const takers = ofOrganization.filter((subscriber) => takes(subscriber, event));
    tried += ofOrganization.length;
    if (tried >= TRIED_A_TURN) {
      tried = 0;
      // Deliberate: the global setImmediate, which the simulation plays; that of node:timers/promises goes past it.
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (takers.length === 0) continue;
    const body = bodyOf(event);
    if (batch === null || batch.bytes + body.length > STATEMENT_BYTES_MAX) {
      batch = { bodies: [], deliveries: [], bytes: 0 };
      batches.push(batch);
    }
    addTo(batch, { event, body, takers, ids: takers.map(() => world.random.uuid()) });
  }
  return batches;
}

type Taken = { event: OutgoingEvent; body: Buffer; takers: queue.Subscriber[]; ids: string[] };

function addTo(batch: Batch, { event, body, takers, ids }: Taken): void {
  const { org_id, event_id, event: name } = event;
  batch.bytes += body.length;
  batch.bodies.push({ org_id, id: event_id, event: name, body });
  for (const [index, taker] of takers.entries()) {
    const id = ids[index] as string;
    batch.deliveries.push({ org_id, id, webhook_id: taker.id, event_id, event: name, body_bytes: body.length });
  }
}

function takes(subscriber: queue.Subscriber, event: OutgoingEvent): boolean {
  if (!subscriber.event_types.includes(event.event)) return false;
  // What a test key set up tells nothing of live mail.
  if (subscriber.environment === "test" && event.payload.environment !== "test") return false;
  const isChosen =
    event.event === "email.received" || event.endpoint_ids !== undefined
      ? (event.endpoint_ids ?? []).includes(subscriber.id)
      : subscriber.domain_id === null || subscriber.domain_id === event.domain_id;
  return isChosen && acceptsRecipient(subscriber.match_pattern, event.recipient);
}

const patterns = createLru<{ pattern: Pattern | null }>(PATTERNS_MAX);

/** True if an endpoint's `match_pattern` takes this recipient. Without a pattern it takes all. */
function acceptsRecipient(pattern: string | null, recipient: string): boolean {
  if (pattern === null) return true;
  let compiled = patterns.get(pattern);
  if (compiled === undefined) {
    const result = compilePattern(pattern);
    compiled = { pattern: result.kind === "pattern" ? result.pattern : null };
    patterns.set(pattern, compiled);
  }
  // A stored pattern was checked when it was set; one that a newer engine refuses takes nothing.
  return compiled.pattern?.matches(recipient.toLowerCase()) ?? false;
}
