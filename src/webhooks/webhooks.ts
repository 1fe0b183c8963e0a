// Webhook endpoints: who wants which events, where, and signed with what. Face of the feature. The way of an event:
// enqueue.ts (in the producer's transaction) → dispatch.ts (claim, attempt, outcome) → the log (deliveries.ts).

import { findDomain, forgetWebhook } from "../domains/domains.ts";
import type { Account } from "../http/http.ts";
import { compilePattern } from "../mail/glob-pattern.ts";
import { isUuid, type Query, type Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { insideOf } from "../platform/net/addresses.ts";
import { checkUrl } from "../platform/net/safe-fetch.ts";
import { invalid, notFound, Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { secretContext } from "./attempt.ts";
import * as queries from "./queries.ts";
import * as queue from "./queue-queries.ts";
import { newSigningSecret } from "./sign.ts";
import type { WebhookChoice, WebhookEventType, WebhookRecord } from "./types.ts";

export { SEALED } from "./attempt.ts";
export { forgetEvents, listEventDeliveries } from "./deliveries.ts";
export { enqueueWebhooks } from "./enqueue.ts";
export { countNaming as countWebhooksNaming } from "./queries.ts";
export { countClaimed as countAtEndpoints } from "./queue-queries.ts";
export { isRead } from "./stream/stream.ts";
export { wakeHooks } from "./wake.ts";

const WEBHOOKS_MAX = 1_000;
/**
 * Instructions of an organization's expressions together: every one is tried on every recipient, in the transaction that
 * records what became of the mail of many. At 2,000 that takes 25 ms at worst; `^vip-.*@shop\.example$` has 24.
 */
const EXPRESSIONS_SIZE_MAX = 2_000;
/** Dropped with the endpoint's deletion; a dispatcher drops the rest. */
const DROPPED_AT_ONCE_MAX = 10_000;
export const GRACE_S_DEFAULT = 86_400;
export const GRACE_S_MAX = 604_800;

type WebhookWorld = Pick<World, "db" | "clock" | "random" | "seal" | "config">;

export type WebhookRequest = {
  url: string;
  events?: readonly WebhookEventType[];
  domain_id?: string | null;
  match_pattern?: string | null;
};

/** Creates an endpoint; the secret is in the answer and nowhere else. What a test key creates gets events of test mail only. */
export async function createWebhook(
  world: WebhookWorld,
  { org_id: orgId, acts_on_live }: Pick<Account, "org_id" | "acts_on_live">,
  request: WebhookRequest,
): Promise<{ webhook: WebhookRecord; secret: string }> {
  checkTarget(world, request.url);
  checkPattern(request.match_pattern);
  const id = world.random.uuid();
  const secret = newSigningSecret(world.random);
  const row: Omit<queries.NewWebhook, "domain_id"> = {
    id,
    webhook_url: request.url,
    event_types: request.events ?? ["email.received"],
    match_pattern: request.match_pattern ?? null,
    environment: acts_on_live ? "live" : "test",
    secret: sealSecret(world, orgId, id, secret),
    created_at: new Date(world.clock.now()),
  };
  return world.db.asOrg(orgId, async (tx) => {
    const domain_id = await domainOf(tx, orgId, request.domain_id ?? null);
    await queries.lockOrganization(tx, orgId);
    if ((await queries.countWebhooks(tx, orgId)).total >= WEBHOOKS_MAX) {
      throw new Refusal("plan_limit_reached", `an organization has at most ${WEBHOOKS_MAX} webhook endpoints`);
    }
    await checkExpressions(tx, orgId, id, row.match_pattern);
    await queries.insertWebhook(tx, orgId, { ...row, domain_id });
    return { webhook: await mustFind(world, tx, orgId, id), secret };
  });
}

function sealSecret(world: Pick<World, "seal">, orgId: string, id: string, secret: string): Buffer {
  return world.seal.seal(Buffer.from(secret, "utf8"), secretContext(orgId, id));
}

function checkTarget(world: Pick<World, "config">, url: string): void {
  const problem = checkUrl(url, insideOf(world.config));
  if (problem !== null) throw invalid("url", `the 'url' field is not allowed: ${problem}`);
}

function checkPattern(pattern: string | null | undefined): void {
  if (pattern === null || pattern === undefined) return;
  const compiled = compilePattern(pattern);
  if (compiled.kind === "problem") throw invalid("match_pattern", `the 'match_pattern' field ${compiled.problem}`);
}

/**
 * Refuses a pattern that is too large beside the expressions of the other endpoints. The organization must be locked.
 */
async function checkExpressions(tx: Tx, orgId: string, id: string, pattern: string | null | undefined): Promise<void> {
  if (!pattern?.startsWith("re:")) return;
  const others = await queries.listExpressions(tx, orgId, id);
  const size = [pattern, ...others].reduce((sum, text) => sum + sizeOf(text), 0);
  if (size <= EXPRESSIONS_SIZE_MAX) return;
  const message =
    "the 'match_pattern' field is too large beside the expressions of the other endpoints; shorten it, or write a glob, " +
    "of which there may be any number";
  throw new Refusal("plan_limit_reached", message, { field: "match_pattern" });
}

function sizeOf(expression: string): number {
  const compiled = compilePattern(expression);
  return compiled.kind === "pattern" ? compiled.pattern.size : 0;
}

/** Its id, by id or name. */
async function domainOf(tx: Tx, orgId: string, idOrName: string | null): Promise<string | null> {
  if (idOrName === null) return null;
  const found = await findDomain(tx, orgId, idOrName);
  if (found) return found.id;
  throw new Refusal("not_found", "the 'domain_id' field names no domain of this organization", { field: "domain_id" });
}

/** One page of the endpoints, newest first, with the total. */
export async function listWebhooks(world: Pick<World, "db" | "clock">, orgId: string, page: Page) {
  return world.db.asOrg(orgId, async (tx) => {
    const rows = await queries.listWebhooks(tx, orgId, page);
    const total = await queries.countWebhooks(tx, orgId);
    return { webhooks: rows.map((row) => shown(world, row)), ...total, ...page };
  });
}

/** One endpoint, or 404. */
export async function getWebhook(
  world: Pick<World, "db" | "clock">,
  orgId: string,
  id: string,
): Promise<WebhookRecord> {
  if (!isUuid(id)) throw notFound("webhook");
  return world.db.asOrg(orgId, (tx) => mustFind(world, tx, orgId, id));
}

/** The environment whose events the endpoint gets; null when there is no such endpoint. */
export async function environmentOf(world: Pick<World, "db">, orgId: string, id: string) {
  const rows = isUuid(id) ? await world.db.asOrg(orgId, (tx) => queries.findWebhook(tx, orgId, id)) : [];
  return rows[0]?.environment ?? null;
}

async function mustFind(world: Pick<World, "clock">, tx: Tx, orgId: string, id: string): Promise<WebhookRecord> {
  const [row] = await queries.findWebhook(tx, orgId, id);
  if (!row) throw notFound("webhook");
  return shown(world, row);
}

/** A grace that is over is not shown. */
function shown(world: Pick<World, "clock">, row: WebhookRecord): WebhookRecord {
  const until = row.previous_secret_expires_at;
  return until && until.getTime() <= world.clock.now() ? { ...row, previous_secret_expires_at: null } : row;
}

export type WebhookChanges = {
  url?: string;
  events?: readonly WebhookEventType[];
  match_pattern?: string | null;
  enabled?: boolean;
};

/** Changes what is given. Enabling a disabled endpoint resets its failures and makes what it has queued due. */
export async function changeWebhook(
  world: WebhookWorld,
  orgId: string,
  id: string,
  changes: WebhookChanges,
): Promise<WebhookRecord> {
  if (!isUuid(id)) throw notFound("webhook");
  if (changes.url !== undefined) checkTarget(world, changes.url);
  checkPattern(changes.match_pattern);
  const at = new Date(world.clock.now());
  return world.db.asOrg(orgId, async (tx) => {
    if (changes.match_pattern?.startsWith("re:")) await queries.lockOrganization(tx, orgId);
    const before = await lockWebhook(tx, orgId, id);
    await checkExpressions(tx, orgId, id, changes.match_pattern);
    await queries.changeWebhook(tx, orgId, id, {
      webhook_url: changes.url ?? null,
      event_types: changes.events ?? null,
      match_pattern: changes.match_pattern,
      enabled: changes.enabled ?? null,
      at,
    });
    if (changes.enabled === true && !before.enabled) await queries.restartLane(tx, orgId, id, at);
    return mustFind(world, tx, orgId, id);
  });
}

async function lockWebhook(tx: Tx, orgId: string, id: string): Promise<{ enabled: boolean }> {
  const [row] = await queries.lockWebhook(tx, orgId, id);
  if (!row) throw notFound("webhook");
  return row;
}

/**
 * Gives the endpoint a new secret; the one before signs beside it for `graceS` seconds (0: stops at once). Only the two
 * newest ever sign.
 */
export async function rotateSecret(
  world: WebhookWorld,
  orgId: string,
  id: string,
  graceS: number,
): Promise<{ secret: string; grace_seconds: number }> {
  if (!isUuid(id)) throw notFound("webhook");
  const secret = newSigningSecret(world.random);
  const now = world.clock.now();
  const touched = await world.db.asOrg(orgId, (tx) =>
    queries.rotateSecret(tx, orgId, id, {
      secret: sealSecret(world, orgId, id, secret),
      grace_until: graceS === 0 ? null : new Date(now + graceS * 1000),
      at: new Date(now),
    }),
  );
  if (touched === 0) throw notFound("webhook");
  return { secret, grace_seconds: graceS };
}

/** Deletes an endpoint and what it has queued; finished deliveries stay in the log. */
export async function deleteWebhook(world: Pick<World, "db" | "clock">, orgId: string, id: string): Promise<void> {
  if (!isUuid(id)) throw notFound("webhook");
  const lane = { org_id: orgId, webhook_id: id };
  await world.db.asOrg(orgId, async (tx) => {
    await lockWebhook(tx, orgId, id);
    await queries.lockLane(tx, orgId, id);
    await queries.deleteWebhook(tx, orgId, id);
    await forgetWebhook(tx, orgId, id);
    await queue.dropDeliveries(tx, lane, DROPPED_AT_ONCE_MAX);
    if ((await queue.dropLane(tx, lane)) === 0) await queue.setLane(tx, lane, new Date(world.clock.now()));
  });
}

// --- for other features ----------------------------------------------------------------------------------------------

/** The endpoints of these ids that exist in the organization, for validating a customer's choice. */
export async function findWebhooks(tx: Tx, orgId: string, ids: readonly string[]): Promise<WebhookChoice[]> {
  const known = ids.filter(isUuid);
  return known.length === 0 ? [] : queries.findChoices(tx, orgId, known);
}

/** Enabled endpoints that are bound to these domains and want `email.received`: their catch-all routes. */
export function findDomainWebhooks(
  tx: Query,
  domains: readonly queries.OfDomain[],
): Promise<(WebhookChoice & queries.OfDomain)[]> {
  return queries.findDomainChoices(tx, domains);
}

/** Which of these endpoints exist, over all organizations. */
export function findExisting(tx: Query, wanted: { org_ids: readonly string[]; ids: readonly string[] }) {
  return queries.findExisting(tx, wanted);
}
