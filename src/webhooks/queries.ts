// All SQL on webhook endpoints. The queue is in queue-queries.ts, the log of deliveries in delivery-queries.ts.

import type { Query, Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { countUpToMax, type Total } from "../platform/database/totals.ts";
import type { EndpointRow, WebhookChoice, WebhookEventType, WebhookRecord } from "./types.ts";

const COLUMNS = `w.id, w.webhook_url, w.event_types, w.secret is not null as has_secret, w.domain_id, w.match_pattern,
  w.enabled, w.environment, w.previous_secret_expires_at, l.consecutive_failures, l.last_success_at, w.created_at, w.updated_at`;
const WITH_LANE = "webhook w join webhook_lane l on l.org_id = w.org_id and l.webhook_id = w.id";

export type NewWebhook = {
  id: string;
  webhook_url: string;
  event_types: readonly WebhookEventType[];
  domain_id: string | null;
  match_pattern: string | null;
  environment: "live" | "test";
  secret: Buffer;
  created_at: Date;
};

/** The endpoint and its lane, which sleeps. */
export async function insertWebhook(tx: Tx, orgId: string, row: NewWebhook): Promise<void> {
  await tx.execute(
    `with lane as (insert into webhook_lane (org_id, webhook_id) values ($1, $2))
     insert into webhook (org_id, id, webhook_url, event_types, domain_id, match_pattern, secret, environment, created_at,
                          updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)`,
    [
      orgId,
      row.id,
      row.webhook_url,
      row.event_types,
      row.domain_id,
      row.match_pattern,
      row.secret,
      row.environment,
      row.created_at,
    ],
  );
}

/** Serializes creations and changes of patterns within an organization, so that its limits hold. */
export async function lockOrganization(tx: Tx, orgId: string): Promise<void> {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('webhook-create:' || $1, 0))", [orgId]);
}

/** The patterns of the organization's other endpoints that are expressions. */
export async function listExpressions(db: Query, orgId: string, except: string): Promise<string[]> {
  const rows = await db.query<{ match_pattern: string }>(
    "select match_pattern from webhook where org_id = $1 and id <> $2 and match_pattern like 're:%'",
    [orgId, except],
  );
  return rows.map(({ match_pattern }) => match_pattern);
}

/** How many endpoints the organization has. */
export function countWebhooks(db: Query, orgId: string): Promise<Total> {
  return countUpToMax(db, "webhook where org_id = $1", [orgId]);
}

/** One page, newest first. */
export function listWebhooks(db: Query, orgId: string, { limit, offset, below }: Page) {
  return db.query<WebhookRecord>(
    `select ${COLUMNS} from ${WITH_LANE} where w.org_id = $1 and w.id < $4 order by w.id desc limit $2 offset $3`,
    [orgId, limit, offset, below],
  );
}

/** One endpoint as the API shows it. */
export function findWebhook(db: Query, orgId: string, id: string) {
  return db.query<WebhookRecord>(`select ${COLUMNS} from ${WITH_LANE} where w.org_id = $1 and w.id = $2`, [orgId, id]);
}

const CHOICE = "id, enabled, event_types, domain_id, match_pattern";

/** Those of the ids that are endpoints of the organization. */
export function findChoices(db: Query, orgId: string, ids: readonly string[]) {
  return db.query<WebhookChoice>(`select ${CHOICE} from webhook where org_id = $1 and id = any($2::uuid[])`, [
    orgId,
    ids,
  ]);
}

export type OfDomain = { org_id: string; domain_id: string };

/** Enabled endpoints bound to these domains that want received mail. Index: primary key. */
export function findDomainChoices(db: Query, domains: readonly OfDomain[]) {
  return db.query<WebhookChoice & OfDomain>(
    `select w.org_id, w.id, w.enabled, w.event_types, w.domain_id, w.match_pattern
       from unnest($1::uuid[], $2::uuid[]) as k (org_id, domain_id)
       join webhook w on w.org_id = k.org_id and w.domain_id = k.domain_id
      where w.enabled and 'email.received' = any(w.event_types) order by w.id`,
    [domains.map(({ org_id }) => org_id), domains.map(({ domain_id }) => domain_id)],
  );
}

export type WebhookChange = {
  webhook_url: string | null;
  event_types: readonly WebhookEventType[] | null;
  /** Undefined keeps the pattern, null removes it. */
  match_pattern: string | null | undefined;
  enabled: boolean | null;
  at: Date;
};

/** Null fields keep their value. Disabling notes when; enabling forgets why it was disabled. */
export function changeWebhook(tx: Tx, orgId: string, id: string, change: WebhookChange) {
  return tx.execute(
    `update webhook set
       webhook_url = coalesce($3, webhook_url),
       event_types = coalesce($4, event_types),
       match_pattern = case when $5 then $6 else match_pattern end,
       enabled = coalesce($7, enabled),
       disabled_reason = case when $7 then null when not $7 then coalesce(disabled_reason, 'asked') else disabled_reason end,
       disabled_at = case when $7 then null when not $7 then coalesce(disabled_at, $8) else disabled_at end,
       updated_at = $8
     where org_id = $1 and id = $2`,
    [
      orgId,
      id,
      change.webhook_url,
      change.event_types,
      change.match_pattern !== undefined,
      change.match_pattern ?? null,
      change.enabled,
      change.at,
    ],
  );
}

/** Enabled again: a clean slate, and whatever waits is due. */
export async function restartLane(tx: Tx, orgId: string, webhookId: string, at: Date): Promise<void> {
  await tx.execute(
    `update webhook_lane set consecutive_failures = 0, next_at = least(next_at, $3)
      where org_id = $1 and webhook_id = $2`,
    [orgId, webhookId, at],
  );
}

/** The current secret becomes the previous one, until `grace_until`; null: it stops at once. */
export function rotateSecret(
  tx: Tx,
  orgId: string,
  id: string,
  to: { secret: Buffer; grace_until: Date | null; at: Date },
) {
  return tx.execute(
    `update webhook set secret = $3,
       previous_secret = case when $4::timestamptz is null then null else secret end,
       previous_secret_expires_at = case when secret is null then null else $4 end,
       updated_at = $5
     where org_id = $1 and id = $2`,
    [orgId, id, to.secret, to.grace_until, to.at],
  );
}

/** Locks the endpoint's row: always before its lane. */
export function lockWebhook(tx: Tx, orgId: string, id: string) {
  return tx.query<{ enabled: boolean }>("select enabled from webhook where org_id = $1 and id = $2 for update", [
    orgId,
    id,
  ]);
}

/** Waits for producers that hold the lane; afterwards all they queued is visible. */
export async function lockLane(tx: Tx, orgId: string, webhookId: string): Promise<void> {
  await tx.query("select 1 from webhook_lane where org_id = $1 and webhook_id = $2 for update", [orgId, webhookId]);
}

/** The row alone; its lane and queue must be dropped beside it. */
export function deleteWebhook(tx: Tx, orgId: string, id: string) {
  return tx.execute("delete from webhook where org_id = $1 and id = $2", [orgId, id]);
}

/** Index: primary key. */
export function findExisting(db: Query, { org_ids, ids }: { org_ids: readonly string[]; ids: readonly string[] }) {
  return db.query<{ org_id: string; id: string }>(
    `select w.org_id, w.id from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
       join webhook w on w.org_id = k.org_id and w.id = k.id`,
    [org_ids, ids],
  );
}

/** For attempts, many endpoints at once. Index: primary key. */
export function findEndpoints(db: Query, orgIds: readonly string[], ids: readonly string[]) {
  return db.query<EndpointRow>(
    `select w.org_id, w.id, w.webhook_url, w.enabled, w.secret, w.previous_secret, w.previous_secret_expires_at
       from unnest($1::uuid[], $2::uuid[]) as k(org_id, id)
       join webhook w on w.org_id = k.org_id and w.id = k.id`,
    [orgIds, ids],
  );
}

/** Organization-wide: endpoints that people should look at, for the warnings of the delivery log. */
export function findTroubled(db: Query, orgId: string, id: string | null, failuresMin: number) {
  return db.query<{
    id: string;
    enabled: boolean;
    disabled_reason: "asked" | "gone" | null;
    consecutive_failures: number;
  }>(
    `select w.id, w.enabled, w.disabled_reason, l.consecutive_failures from ${WITH_LANE}
      where w.org_id = $1 and ($2::uuid is null or w.id = $2)
        and (not w.enabled or l.consecutive_failures >= $3)
      order by w.id desc limit 20`,
    [orgId, id, failuresMin],
  );
}

/** Endpoints whose pattern of recipients names an address; `address`: a regular expression for `~*`. */
export async function countNaming(
  tx: Query,
  orgId: string,
  { address, environment }: { address: string; environment: string },
) {
  const rows = await tx.query<{ n: number }>(
    "select count(*) as n from webhook where org_id = $1 and environment = $3 and regexp_replace(match_pattern, '^re:\\^?', '') ~* $2",
    [orgId, address, environment],
  );
  return rows[0]?.n ?? 0;
}
