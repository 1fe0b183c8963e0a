// The log of deliveries: what became of each event at each endpoint; replays of what failed; tests of an endpoint.

import { isUuid, type Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { withPartitions } from "../platform/database/partitions.ts";
import { createFairPlaces } from "../platform/fair/fair-gate.ts";
import { uuidFloor } from "../platform/random.ts";
import { invalid, notFound, Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { type AttemptWorld, makeAttempt } from "./attempt.ts";
import * as log from "./delivery-queries.ts";
import { bodyOf } from "./event-body.ts";
import * as queries from "./queries.ts";
import * as queue from "./queue-queries.ts";
import { samplePayload } from "./sample.ts";
import type { DeliveryRecord, DeliveryStatus, EndpointRow, WebhookEventType } from "./types.ts";
import { wakeHooks } from "./wake.ts";

const DAY_MS = 86_400_000;
/** Failures in a row from which an endpoint is worth a warning. */
const WARN_FAILURES = 5;
const REPLAYED_AT_ONCE_MAX = 10_000;
const FORGOTTEN = "what the event was about was deleted";
/** Tests under way, each of which an endpoint may draw out to the time limit of an attempt. */
const TESTS_AT_ONCE = { places: 50, waiting_max: 0 };

export type DeliveryQuery = {
  status?: DeliveryStatus;
  endpoint_id?: string;
  event?: WebhookEventType;
  event_ids?: readonly string[] | undefined;
  days: number;
};

/** One page of deliveries, newest first, with the total, and sentences about endpoints in trouble. */
export async function listDeliveries(
  world: Pick<World, "db" | "clock" | "config">,
  orgId: string,
  query: DeliveryQuery,
  page: Page,
) {
  const { status, endpoint_id, event, event_ids, days } = query;
  const filter = { status, endpoint_id, event, event_ids, from_id: uuidFloor(world.clock.now() - days * DAY_MS) };
  return world.db.asOrg(orgId, async (tx) => {
    const deliveries = await log.listDeliveries(tx, orgId, filter, page);
    const total = await log.countDeliveries(tx, orgId, filter);
    const warnings = await warn(world, tx, orgId, query);
    return { deliveries, ...total, ...page, warnings };
  });
}

async function warn(world: Pick<World, "config">, tx: Tx, orgId: string, query: DeliveryQuery): Promise<string[]> {
  const kept = world.config.retention_days.event;
  const short = query.days > kept ? [`finished deliveries are kept ${kept} days; you asked for ${query.days}`] : [];
  const troubled = await queries.findTroubled(tx, orgId, query.endpoint_id ?? null, WARN_FAILURES);
  return [...short, ...troubled.map(describeTrouble)];
}

function describeTrouble(row: Awaited<ReturnType<typeof queries.findTroubled>>[number]): string {
  if (row.enabled) return `endpoint ${row.id} failed ${row.consecutive_failures} times in a row`;
  return row.disabled_reason === "gone"
    ? `endpoint ${row.id} answered 410 and was disabled; PUT enabled:true once it takes events again`
    : `endpoint ${row.id} is disabled; what it has queued fails 3 days after that`;
}

/** Deliveries of these events, oldest first; for features that show what became of their event. */
export async function listEventDeliveries(
  tx: Tx,
  orgId: string,
  eventIds: readonly string[],
): Promise<DeliveryRecord[]> {
  return eventIds.length === 0 ? [] : log.listEventDeliveries(tx, orgId, eventIds);
}

/**
 * Forgets what events say: their bodies go, what is queued of them fails, the log stays and says so. An attempt that is
 * under way is the last. Run the transaction in `withPartitions`.
 */
export async function forgetEvents(
  tx: Tx,
  world: Pick<World, "clock">,
  events: readonly { org_id: string; id: string }[],
): Promise<void> {
  if (events.length === 0) return;
  await log.failEvents(tx, events, { error: FORGOTTEN, at: new Date(world.clock.now()) });
  await log.deleteBodies(tx, events);
}

/** That of the delivery's endpoint; null when either is not there. */
export async function environmentOf(world: Pick<World, "db">, orgId: string, id: string) {
  if (!isUuid(id)) return null;
  return world.db.asOrg(orgId, async (tx) => {
    const [delivery] = await log.findDelivery(tx, orgId, id);
    const [webhook] = delivery ? await queries.findWebhook(tx, orgId, delivery.endpoint_id) : [];
    return webhook?.environment ?? null;
  });
}

// --- replays ---------------------------------------------------------------------------------------------------------

type ReplayWorld = Pick<World, "db" | "clock" | "random" | "log">;

/** A finished delivery is queued again, with the same event id and a new delivery id; a queued one is due at once. */
export async function replayDelivery(world: ReplayWorld, orgId: string, id: string): Promise<DeliveryRecord> {
  if (!isUuid(id)) throw notFound("webhook delivery");
  const delivery = await world.db.asOrg(orgId, async (tx) => {
    const [found] = await log.findDelivery(tx, orgId, id);
    if (!found) throw notFound("webhook delivery");
    const at = new Date(world.clock.now());
    const lane = { org_id: orgId, webhook_id: found.endpoint_id };
    await requireOpen(tx, lane);
    await queue.holdLanes(tx, [lane]);
    const again = found.next_attempt_at === null ? await requeue(world, tx, orgId, found) : found.id;
    if (again === found.id) await log.hastenDelivery(tx, orgId, id, at);
    await queue.wakeLanes(tx, [lane], at);
    const [row] = await log.findDelivery(tx, orgId, again);
    if (!row) throw notFound("webhook delivery");
    return row;
  });
  wakeHooks(world);
  return delivery;
}

async function requeue(world: ReplayWorld, tx: Tx, orgId: string, found: DeliveryRecord): Promise<string> {
  const newId = world.random.uuid();
  const pairs = { ids: [found.id], new_ids: [newId] };
  const queued = await log.requeueFinished(tx, orgId, pairs, new Date(world.clock.now()));
  if (queued === 0)
    throw new Refusal(
      "invalid_state",
      "the event's body is not kept any more: it is too old, or its e-mail was deleted",
    );
  return newId;
}

async function requireOpen(tx: Tx, lane: queue.LaneKey): Promise<void> {
  const [webhook] = await queries.findWebhook(tx, lane.org_id, lane.webhook_id);
  if (!webhook) throw new Refusal("invalid_state", "the delivery's endpoint was deleted");
  if (!webhook.enabled) throw new Refusal("invalid_state", "the endpoint is disabled; enable it first");
}

export type ReplayRequest = { from: string; to?: string; status?: "failed" | "delivered" };

/**
 * Queues again the endpoint's deliveries that were made in a time range and failed (or were delivered). Each is taken by
 * one range only, so a second call goes on where a large first one stopped: `remaining` says whether to.
 */
export async function replayRange(
  world: ReplayWorld,
  orgId: string,
  webhookId: string,
  request: ReplayRequest,
): Promise<{ replayed: number; remaining: number }> {
  const now = world.clock.now();
  const [from, to] = [Date.parse(request.from), request.to === undefined ? now : Date.parse(request.to)];
  if (from >= to) throw invalid("from", "the 'from' field must be earlier than 'to'");
  if (!isUuid(webhookId)) throw notFound("webhook");
  const lane = { org_id: orgId, webhook_id: webhookId };
  const bounds = { from_id: uuidFloor(from), to_id: uuidFloor(to) };
  const range = { ...bounds, webhook_id: webhookId, status: request.status ?? ("failed" as const) };
  const counts = await world.db.asOrg(orgId, async (tx) => {
    if ((await queries.findWebhook(tx, orgId, webhookId)).length === 0) throw notFound("webhook");
    await requireOpen(tx, lane);
    await queue.holdLanes(tx, [lane]);
    const ids = await log.takeReplayable(tx, orgId, range, REPLAYED_AT_ONCE_MAX);
    if (ids.length === 0) return { replayed: 0, remaining: 0 };
    const pairs = { ids, new_ids: ids.map(() => world.random.uuid()) };
    const replayed = await log.requeueFinished(tx, orgId, pairs, new Date(now));
    await queue.wakeLanes(tx, [lane], new Date(now));
    return { replayed, remaining: await log.countReplayable(tx, orgId, range) };
  });
  wakeHooks(world);
  return counts;
}

// --- tests -----------------------------------------------------------------------------------------------------------

const testing = new Set<string>();
const testPlaces = createFairPlaces(TESTS_AT_ONCE);

/** Sends a sample event now, whatever the endpoint subscribes to and even if it is disabled, and says what came of it. */
export async function testWebhook(
  world: AttemptWorld & Pick<World, "db" | "config">,
  orgId: string,
  webhookId: string,
  event?: WebhookEventType,
): Promise<DeliveryRecord> {
  if (!isUuid(webhookId)) throw notFound("webhook");
  const { endpoint, event_types } = await world.db.asOrg(orgId, (tx) => findTested(tx, orgId, webhookId));
  if (testing.has(webhookId)) throw new Refusal("invalid_state", "a test of this endpoint is under way");
  const leave = testPlaces.enterNow(orgId);
  if (leave === null) throw new Refusal("unavailable", "too many of your tests are under way; try again");
  testing.add(webhookId);
  try {
    return await sendSample(world, endpoint, event ?? event_types[0] ?? "email.received");
  } finally {
    testing.delete(webhookId);
    leave();
  }
}

async function findTested(tx: Tx, orgId: string, webhookId: string) {
  const [endpoint] = await queries.findEndpoints(tx, [orgId], [webhookId]);
  const [webhook] = await queries.findWebhook(tx, orgId, webhookId);
  if (!endpoint || !webhook) throw notFound("webhook");
  return { endpoint, event_types: webhook.event_types };
}

async function sendSample(
  world: AttemptWorld & Pick<World, "db" | "config">,
  endpoint: EndpointRow,
  event: WebhookEventType,
): Promise<DeliveryRecord> {
  const created_at = new Date(world.clock.now());
  const [id, event_id] = [world.random.uuid(), world.random.uuid()];
  const body = bodyOf({ event, event_id, at: created_at, payload: samplePayload(world, event) });
  const result = await makeAttempt(world, endpoint, { event, event_id, body, attempt: 1 });
  const finished_at = new Date(world.clock.now());
  const made = { ...result, id, webhook_id: endpoint.id, event_id, event, body, created_at, finished_at };
  await withPartitions(world, () =>
    world.db.asOrg(endpoint.org_id, (tx) => log.insertMadeDelivery(tx, endpoint.org_id, made)),
  );
  const status = result.error === null ? "delivered" : "failed";
  return {
    ...result,
    id,
    endpoint_id: endpoint.id,
    event_id,
    event,
    attempt: 1,
    status,
    created_at,
    next_attempt_at: null,
  };
}
