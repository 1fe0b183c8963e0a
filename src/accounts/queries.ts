// All SQL on organization and api_key.

import type { Account } from "../http/http.ts";
import type { Query, Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { countUpToMax } from "../platform/database/totals.ts";
import type { KeyRow, OrganizationRow } from "./types.ts";

const KEY_COLUMNS =
  "id, name, environment, kind, destination_id, key_prefix, last_four, created_at, last_used_at, revoked_at";

/** Index: api_key_digest. Batched: one look-up serves every request of the same moment. */
export function findAccountsByDigest(db: Query, digests: Buffer[]) {
  return db.query<
    Omit<Account, "monthly_quota" | "acts_on_live"> & {
      digest: Buffer;
      test_keys: string | null;
      monthly_quota: number | null;
      requests_per_second: number | null;
      last_used_at: Date | null;
      destination_id: string | null;
    }
  >(
    `select k.digest, k.org_id, k.id as key_id, k.name as key_name, k.environment, k.destination_id, k.last_used_at, o.plan, o.state, o.monthly_quota,
            o.requests_per_second, o.settings ->> 'test_keys' as test_keys
       from api_key k join organization o on o.id = k.org_id
      where k.digest = any($1) and k.revoked_at is null`,
    [digests],
  );
}

/** A key of this digest, also one that was revoked. Index: api_key_digest. */
export function findDigest(db: Query, digest: Buffer) {
  return db.query<{ org_id: string }>("select org_id from api_key where digest = $1", [digest]);
}

export type OrganizationTerms = OrganizationRow & { test_keys: string | null };

/** What holds for organizations, for people who belong to them. */
export function findTerms(db: Query, orgIds: string[]) {
  return db.query<OrganizationTerms>(
    `select id, name, plan, state, monthly_quota, requests_per_second, settings ->> 'test_keys' as test_keys
       from organization where id = any($1)`,
    [orgIds],
  );
}

export function touchKey(db: Query, orgId: string, keyId: string, at: Date) {
  return db.execute("update api_key set last_used_at = $3 where org_id = $1 and id = $2", [orgId, keyId, at]);
}

export function insertOrganization(db: Query, row: Pick<OrganizationRow, "id" | "name" | "plan" | "state">) {
  return db.execute("insert into organization (id, name, plan, state) values ($1, $2, $3, $4)", [
    row.id,
    row.name,
    row.plan,
    row.state,
  ]);
}

/** One that somebody signed up for; `purpose`: what they say they will send. */
export function insertAskedOrganization(tx: Tx, row: { id: string; name: string; purpose: string }) {
  return tx.execute(
    "insert into organization (id, name, plan, state, purpose) values ($1, $2, 'free', 'pending_review', $3)",
    [row.id, row.name, row.purpose],
  );
}

export function countOrganizations(db: Query) {
  return db.query<{ total: number }>("select count(*) as total from organization");
}

/** The oldest organization: the one that `postern keys create` acts for when none is named. */
export function firstOrganization(db: Query) {
  return db.query<OrganizationRow>(
    "select id, name, plan, state, monthly_quota, requests_per_second from organization order by created_at, id limit 1",
  );
}

export function findOrganization(db: Query, orgId: string) {
  return db.query<OrganizationRow>(
    "select id, name, plan, state, monthly_quota, requests_per_second from organization where id = $1",
    [orgId],
  );
}

export type ListedOrganization = OrganizationRow & { purpose: string | null; created_at: Date };

/** Every organization; for the command line only. */
export function listOrganizations(db: Query) {
  return db.query<ListedOrganization>(
    `select id, name, plan, state, monthly_quota, requests_per_second, purpose, created_at from organization
      order by created_at, id`,
  );
}

export type OrganizationFilter = { patterns: string[] | null; id: string | null; state: string | null };

const FITS = `($1::text[] is null or name ilike any($1) or id = $2) and ($3::text is null or state = $3)`;

/** The oldest first; those behind `after`. */
export function pageOrganizations(db: Query, filter: OrganizationFilter, { after, limit }: OrganizationPage) {
  return db.query<ListedOrganization>(
    `select id, name, plan, state, monthly_quota, requests_per_second, purpose, created_at from organization
      where ${FITS} and ($4::uuid is null
                         or (created_at, id) > (select created_at, id from organization where id = $4))
      order by created_at, id limit $5`,
    [filter.patterns, filter.id, filter.state, after, limit],
  );
}

export type OrganizationPage = { after: string | null; limit: number };

export function countFitting(db: Query, filter: OrganizationFilter) {
  return countUpToMax(db, `organization where ${FITS}`, [filter.patterns, filter.id, filter.state]);
}

/** What is absent stays; a limit that is null becomes the plan's again. */
export type OrganizationChanges = Partial<
  Pick<OrganizationRow, "name" | "plan" | "state" | "requests_per_second" | "monthly_quota">
>;

export function changeOrganization(db: Query, id: string, changes: OrganizationChanges) {
  return db.query<ListedOrganization>(
    `update organization set
       name = coalesce($2, name), plan = coalesce($3, plan), state = coalesce($4, state),
       requests_per_second = case when $5 then $6 else requests_per_second end,
       monthly_quota = case when $7 then $8 else monthly_quota end
     where id = $1
     returning id, name, plan, state, monthly_quota, requests_per_second, purpose, created_at`,
    [
      id,
      changes.name ?? null,
      changes.plan ?? null,
      changes.state ?? null,
      changes.requests_per_second !== undefined,
      changes.requests_per_second ?? null,
      changes.monthly_quota !== undefined,
      changes.monthly_quota ?? null,
    ],
  );
}

/** One of the organization's settings as text; null when it is not set. */
export function readSetting(tx: Query, orgId: string, name: string) {
  return tx.query<{ value: string | null }>("select settings ->> $2::text as value from organization where id = $1", [
    orgId,
    name,
  ]);
}

/** Null takes it away. */
export function writeSetting(db: Query, { id, name, value }: { id: string; name: string; value: string }) {
  return db.execute(
    "update organization set settings = jsonb_strip_nulls(settings || jsonb_build_object($2::text, $3::jsonb)) where id = $1",
    [id, name, value],
  );
}

export function findWithSetting(db: Query, name: string) {
  return db.query<{ org_id: string; value: string }>(
    "select id as org_id, settings ->> $1::text as value from organization where settings ? $1::text order by id",
    [name],
  );
}

/** Index: organization_pkey. Batched over organizations. */
export function findPlans(db: Query, orgIds: string[]) {
  return db.query<Pick<OrganizationRow, "id" | "plan">>("select id, plan from organization where id = any($1)", [
    orgIds,
  ]);
}

export function findNames(db: Query, orgIds: string[]) {
  return db.query<Pick<OrganizationRow, "id" | "name" | "state">>(
    "select id, name, state from organization where id = any($1)",
    [orgIds],
  );
}

/** Index: organization_not_active. */
export function findNotActive(db: Query) {
  return db.query<{ id: string }>("select id from organization where state <> 'active'", []);
}

/** Serializes first starts: only one process may create the first organization. */
export function lockBootstrap(tx: Tx) {
  return tx.query("select pg_advisory_xact_lock(1886352244)");
}

export type NewKey = {
  id: string;
  name: string;
  environment: "live" | "test";
  /** Absent: full. */
  kind?: KeyRow["kind"];
  destination_id?: string | null;
  digest: Buffer;
  key_prefix: string;
  last_four: string;
  created_at: Date;
};

export function insertKey(db: Query, orgId: string, key: NewKey) {
  return db.query<KeyRow>(
    `insert into api_key (org_id, id, name, environment, digest, key_prefix, last_four, created_at, kind, destination_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning ${KEY_COLUMNS}`,
    [
      ...[orgId, key.id, key.name, key.environment, key.digest, key.key_prefix, key.last_four, key.created_at],
      ...[key.kind ?? "full", key.destination_id ?? null],
    ],
  );
}

export function findKey(db: Query, orgId: string, id: string) {
  return db.query<KeyRow>(`select ${KEY_COLUMNS} from api_key where org_id = $1 and id = $2`, [orgId, id]);
}

export function listKeys(db: Query, orgId: string, { limit, offset, below }: Page) {
  return db.query<KeyRow>(
    `select ${KEY_COLUMNS} from api_key where org_id = $1 and id < $4 order by id desc limit $2 offset $3`,
    [orgId, limit, offset, below],
  );
}

export function countKeys(db: Query, orgId: string) {
  return countUpToMax(db, "api_key where org_id = $1", [orgId]);
}

export function renameKey(db: Query, orgId: string, id: string, name: string) {
  return db.query<KeyRow>(`update api_key set name = $3 where org_id = $1 and id = $2 returning ${KEY_COLUMNS}`, [
    orgId,
    id,
    name,
  ]);
}

export function revokeKey(db: Query, orgId: string, id: string, at: Date) {
  return db.execute("update api_key set revoked_at = coalesce(revoked_at, $3) where org_id = $1 and id = $2", [
    orgId,
    id,
    at,
  ]);
}

// For how many seconds the bucket is not full yet; `s` is the row that is there. A stored time beyond one was written before the clock was
// set back. Citus takes no sum of a time and an interval where a row is changed: it depends on the session's time zone.
// Numeric: with floats a tenth of ten requests is less than one.
const AHEAD = "greatest(0, least(1, extract(epoch from s.full_at - to_timestamp(excluded.asked_s))))";
// What is in the bucket of `limit` now, whole requests only.
const FILLED = `floor(excluded.limit_per_s * (1 - ${AHEAD}))`;
const GRANTED = `least(excluded.wanted, ${FILLED})::int`;
const LEFT_S = "extract(epoch from full_at - to_timestamp(asked_s))";

/**
 * Takes up to `wanted` requests out of each organization's bucket, which holds one second's worth. `left`: whole requests
 * that are in it still, `wait_ms`: until there is one again. Index: request_rate_pkey.
 */
export function drawRequests(db: Query, asked: { org_id: string; limit: number; wanted: number }[]) {
  return db.query<{ org_id: string; granted: number; left: number; wait_ms: number }>(
    `with drawn as (
       insert into request_rate as s (org_id, full_at, granted, asked_s, limit_per_s, wanted)
       select org_id, to_timestamp(at_s + wanted::float8 / limit_per_s), wanted, at_s, limit_per_s, wanted
         from unnest($1::uuid[], $2::int[], $3::int[]) as a (org_id, limit_per_s, wanted),
              (select extract(epoch from statement_timestamp())::float8 as at_s) as t
       on conflict (org_id) do update set
         full_at = to_timestamp(excluded.asked_s + ${AHEAD}::float8 + ${GRANTED}::float8 / excluded.limit_per_s),
         granted = ${GRANTED}, asked_s = excluded.asked_s, limit_per_s = excluded.limit_per_s, wanted = excluded.wanted
       returning org_id, full_at, granted, asked_s, limit_per_s)
     select org_id, granted, greatest(0, floor(limit_per_s * (1 - greatest(0, least(1, ${LEFT_S})))))::int as left,
            1000 * greatest(0, ${LEFT_S} - 1 + 1.0 / limit_per_s)::float8 as wait_ms
       from drawn`,
    [asked.map(({ org_id }) => org_id), asked.map(({ limit }) => limit), asked.map(({ wanted }) => wanted)],
  );
}
