// SQL on masked aliases, the addresses they have, and the destinations they name.

import { spelled } from "../http/like.ts";
import type { Query, Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { countUpToMax, type Total } from "../platform/database/totals.ts";
import type { AliasRow, DestinationStatus, Environment } from "./types.ts";

const COLUMNS = `id, org_id, environment, domain_id, domain, local_part, masked_description, display_name, metadata, active,
  disabled_reason, on_disabled, reply_enabled, redact, unopened_files, own_name, reply_report, tracking_pixels,
  list_unsubscribe, pattern, emails_received, emails_forwarded, emails_replied, emails_blocked,
  last_activity_at, created_at, updated_at, deleted_at`;

export type NewAddress = { digest: Buffer; kind: "alias" | "reverse"; alias_id: string; contact_id: string | null };

/** Takes an address for ever; false when somebody has or had it. */
export async function takeAddress(tx: Tx, orgId: string, row: NewAddress): Promise<boolean> {
  const touched = await tx.execute(
    `insert into masked_address (digest, org_id, kind, alias_id, contact_id) values ($1, $2, $3, $4, $5)
     on conflict (digest) do nothing`,
    [row.digest, orgId, row.kind, row.alias_id, row.contact_id],
  );
  return touched === 1;
}

export type FoundAddress = {
  digest: Buffer;
  org_id: string;
  kind: "alias" | "reverse";
  alias_id: string;
  contact_id: string | null;
};

/** Whose addresses these are, over all organizations. Index: masked_address_pkey. */
export function findAddresses(db: Query, digests: readonly Buffer[]) {
  return db.query<FoundAddress>(
    "select digest, org_id, kind, alias_id, contact_id from masked_address where digest = any($1)",
    [digests],
  );
}

export type NewAlias = Pick<
  AliasRow,
  | "id"
  | "environment"
  | "domain_id"
  | "domain"
  | "local_part"
  | "masked_description"
  | "display_name"
  | "metadata"
  | "active"
  | "on_disabled"
  | "reply_enabled"
  | "redact"
  | "unopened_files"
  | "own_name"
  | "reply_report"
  | "tracking_pixels"
  | "list_unsubscribe"
  | "pattern"
  | "created_at"
>;

export function insertAlias(tx: Tx, orgId: string, row: NewAlias) {
  return tx.execute(
    `insert into masked_alias (org_id, id, environment, domain_id, domain, local_part, masked_description, display_name,
       metadata, active, disabled_reason, on_disabled, reply_enabled, redact, unopened_files, own_name,
       reply_report, tracking_pixels, list_unsubscribe, created_at, updated_at, pattern)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, case when $10 then null else 'owner' end, $11, $12, $13, $14, $15,
       $16, $17, $18, $19, $19, $20)`,
    [
      orgId,
      row.id,
      row.environment,
      row.domain_id,
      row.domain,
      row.local_part,
      row.masked_description,
      row.display_name,
      JSON.stringify(row.metadata),
      row.active,
      row.on_disabled,
      row.reply_enabled,
      row.redact,
      row.unopened_files,
      row.own_name,
      row.reply_report,
      row.tracking_pixels,
      row.list_unsubscribe,
      row.created_at,
      row.pattern,
    ],
  );
}

/** While an organization's aliases are counted and one more is made, nobody makes another. Before all other locks. */
export function lockAliasesOf(tx: Tx, orgId: string) {
  return tx.query("select pg_advisory_xact_lock(hashtextextended('masked-aliases:' || $1, 0))", [orgId]);
}

export async function countOfOrg(tx: Tx, orgId: string): Promise<number> {
  const [row] = await tx.query<{ total: number }>(
    "select count(*) as total from masked_alias where org_id = $1 and deleted_at is null",
    [orgId],
  );
  return row?.total ?? 0;
}

/** An alias, a deleted one too. */
export function findAlias(tx: Query, orgId: string, id: string) {
  return tx.query<AliasRow>(`select ${COLUMNS} from masked_alias where org_id = $1 and id = $2`, [orgId, id]);
}

type Key = { org_id: string; id: string };
const keyArrays = (keys: readonly Key[]) => [keys.map(({ org_id }) => org_id), keys.map(({ id }) => id)];

const OF_ALIAS = COLUMNS.split(",")
  .map((name) => `a.${name.trim()}`)
  .join(", ");

/**
 * Aliases of any organizations, deleted ones too, each with its destinations in the order they were given: a row for each, one
 * without for an alias that has none. Indexes: masked_alias_pkey, masked_alias_destination_pkey, masked_destination_pkey.
 */
export function findAliasesWithDestinations(db: Query, keys: readonly Key[]) {
  return db.query<AliasRow & (DestinationOfAlias | { destination_id: null })>(
    `select ${OF_ALIAS}, d.id as destination_id, d.sealed, d.status, d.pgp_sealed, d.pgp_hide_subject
       from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
       join masked_alias a on a.org_id = k.org_id and a.id = k.id
       left join (masked_alias_destination ad
                  join masked_destination d on d.org_id = ad.org_id and d.id = ad.destination_id)
         on ad.org_id = a.org_id and ad.alias_id = a.id
      order by a.id, ad.position`,
    keyArrays(keys),
  );
}

/**
 * Those of these domains at which the organization has aliases, deleted ones too. Each is looked up by itself (`offset 0` keeps it
 * so): the planner would rather read all aliases while their domains are few. Index: masked_alias_domain.
 */
export function findAliasDomains(db: Query, keys: readonly { org_id: string; domain: string }[]) {
  return db.query<{ org_id: string; domain: string }>(
    `select k.org_id, k.domain from unnest($1::uuid[], $2::text[]) as k (org_id, domain)
      where exists (select 1 from masked_alias a where a.org_id = k.org_id and a.domain = k.domain offset 0)`,
    [keys.map(({ org_id }) => org_id), keys.map(({ domain }) => domain)],
  );
}

/**
 * The addresses at these domains that forward to one of these destinations, deleted ones too. Reads all aliases of a person:
 * only for mail that names an address at such a domain. Index: masked_alias_destination_back.
 */
export async function findAddressesOfPerson(
  db: Query,
  orgId: string,
  { destinations, domains }: { destinations: readonly string[]; domains: readonly string[] },
): Promise<string[]> {
  const rows = await db.query<{ email: string }>(
    `select distinct a.local_part || '@' || a.domain as email
       from masked_alias_destination ad
       join masked_alias a on a.org_id = ad.org_id and a.id = ad.alias_id
      where ad.org_id = $1 and ad.destination_id = any($2) and a.domain = any($3)`,
    [orgId, destinations, domains],
  );
  return rows.map(({ email }) => email);
}

export type DestinationOfAlias = {
  destination_id: string;
  sealed: Buffer;
  status: DestinationStatus;
  pgp_sealed: Buffer | null;
  pgp_hide_subject: boolean;
};

/** An alias with its row locked, a deleted one too. */
export function lockAlias(tx: Tx, orgId: string, id: string) {
  return tx.query<AliasRow>(`select ${COLUMNS} from masked_alias where org_id = $1 and id = $2 for update`, [
    orgId,
    id,
  ]);
}

export type AliasFilter = {
  environment: Environment;
  domain_id?: string | undefined;
  active?: boolean | undefined;
  q?: string | undefined;
  /** Aliases that forward to this destination. */
  destination_id?: string | null | undefined;
  deleted?: boolean | undefined;
  /** Aliases that this pattern made. */
  pattern?: string | undefined;
};

const FILTER = `org_id = $1 and environment = $2 and ($3::uuid is null or domain_id = $3)
  and ($4::boolean is null or active = $4)
  and ($5::text[] is null or local_part || '@' || domain ilike any($5) or masked_description ilike any($5)
       or display_name ilike any($5))
  and ($6::uuid is null or exists (select 1 from masked_alias_destination ad
        where ad.org_id = a.org_id and ad.alias_id = a.id and ad.destination_id = $6))
  and (deleted_at is not null) = $7 and ($8::text is null or pattern = $8)`;

function filterValues(orgId: string, filter: AliasFilter): unknown[] {
  const text = filter.q === undefined ? null : spelled(filter.q);
  return [
    orgId,
    filter.environment,
    filter.domain_id ?? null,
    filter.active ?? null,
    text,
    filter.destination_id ?? null,
    filter.deleted ?? false,
    filter.pattern ?? null,
  ];
}

export function listAliases(tx: Tx, orgId: string, filter: AliasFilter, page: Page) {
  return tx.query<AliasRow>(
    `select ${COLUMNS} from masked_alias a where ${FILTER} and id < $11 order by id desc limit $9 offset $10`,
    [...filterValues(orgId, filter), page.limit, page.offset, page.below],
  );
}

export function countAliases(tx: Tx, orgId: string, filter: AliasFilter): Promise<Total> {
  return countUpToMax(tx, `masked_alias a where ${FILTER}`, filterValues(orgId, filter));
}

export type AliasChange = Pick<
  AliasRow,
  | "masked_description"
  | "display_name"
  | "metadata"
  | "active"
  | "disabled_reason"
  | "on_disabled"
  | "reply_enabled"
  | "redact"
  | "unopened_files"
  | "own_name"
  | "reply_report"
  | "tracking_pixels"
  | "list_unsubscribe"
> & { at: Date };

/** Writes every setting. The row must be locked. */
export function updateAlias(tx: Tx, orgId: string, id: string, change: AliasChange) {
  return tx.execute(
    `update masked_alias set masked_description = $3, display_name = $4, metadata = $5, active = $6, disabled_reason = $7,
            on_disabled = $8, reply_enabled = $9, redact = $10, unopened_files = $11,
            own_name = $12, reply_report = $13, tracking_pixels = $14, list_unsubscribe = $15,
            updated_at = $16
      where org_id = $1 and id = $2`,
    [
      orgId,
      id,
      change.masked_description,
      change.display_name,
      JSON.stringify(change.metadata),
      change.active,
      change.disabled_reason,
      change.on_disabled,
      change.reply_enabled,
      change.redact,
      change.unopened_files,
      change.own_name,
      change.reply_report,
      change.tracking_pixels,
      change.list_unsubscribe,
      change.at,
    ],
  );
}

/** Marks an alias deleted, or not deleted (null). */
export function setDeleted(tx: Tx, orgId: string, id: string, change: { deleted_at: Date | null; at: Date }) {
  return tx.execute("update masked_alias set deleted_at = $3, updated_at = $4 where org_id = $1 and id = $2", [
    orgId,
    id,
    change.deleted_at,
    change.at,
  ]);
}

/** A domain was removed and added again, under another id: its aliases are that one's. Index: masked_alias_by_domain. */
export function moveToDomain(tx: Tx, orgId: string, { from, to }: { from: string; to: string }) {
  return tx.execute("update masked_alias set domain_id = $3 where org_id = $1 and domain_id = $2", [orgId, from, to]);
}

/** True if anybody here has ever had a masked address. */
export async function anyMaskedAlias(db: Query): Promise<boolean> {
  const [row] = await db.query<{ found: boolean }>("select exists (select 1 from masked_alias) as found");
  return row?.found ?? false;
}

/** True if the domain has masked aliases that are not deleted. */
export async function hasMaskedAliases(tx: Query, orgId: string, domainId: string): Promise<boolean> {
  const [row] = await tx.query<{ found: boolean }>(
    `select exists (select 1 from masked_alias where org_id = $1 and domain_id = $2 and deleted_at is null) as found`,
    [orgId, domainId],
  );
  return row?.found ?? false;
}

/** The destinations of aliases, in the order they were given. */
export function findAliasDestinations(tx: Query, orgId: string, aliasIds: readonly string[]) {
  return tx.query<{ alias_id: string; id: string; sealed: Buffer; status: DestinationStatus }>(
    `select ad.alias_id, d.id, d.sealed, d.status
       from masked_alias_destination ad
       join masked_destination d on d.org_id = ad.org_id and d.id = ad.destination_id
      where ad.org_id = $1 and ad.alias_id = any($2) order by ad.alias_id, ad.position`,
    [orgId, aliasIds],
  );
}

/** The aliases that forward to a destination, deleted ones too. Index: masked_alias_destination_back. */
export function findAliasesOfDestination(tx: Query, orgId: string, destinationId: string) {
  return tx.query<Pick<AliasRow, "id" | "deleted_at">>(
    `select a.id, a.deleted_at from masked_alias_destination ad
       join masked_alias a on a.org_id = ad.org_id and a.id = ad.alias_id
      where ad.org_id = $1 and ad.destination_id = $2 order by a.id`,
    [orgId, destinationId],
  );
}

/** Replaces the destinations of an alias. */
export async function setAliasDestinations(tx: Tx, orgId: string, aliasId: string, destinationIds: readonly string[]) {
  await tx.execute(
    "delete from masked_alias_destination where org_id = $1 and alias_id = $2 and destination_id <> all($3)",
    [orgId, aliasId, destinationIds],
  );
  await tx.execute(
    `insert into masked_alias_destination (org_id, alias_id, destination_id, position)
     select $1, $2, k.id, k.position from unnest($3::uuid[]) with ordinality as k (id, position)
     on conflict (org_id, alias_id, destination_id) do update set position = excluded.position`,
    [orgId, aliasId, destinationIds],
  );
}

export type MaskedKey = { domain: string; id: string; selector: string; public_key: string; private_key: Buffer };

export function findMaskedKey(db: Query, domain: string) {
  return db.query<MaskedKey>("select domain, id, selector, public_key, private_key from masked_key where domain = $1", [
    domain,
  ]);
}

/** Stores the key unless the domain has one by now. */
export function insertMaskedKey(db: Query, row: MaskedKey & { created_at: Date }) {
  return db.execute(
    `insert into masked_key (domain, id, selector, public_key, private_key, created_at)
     values ($1, $2, $3, $4, $5, $6) on conflict (domain) do nothing`,
    [row.domain, row.id, row.selector, row.public_key, row.private_key, row.created_at],
  );
}

export type Window = { org_id: string; alias_id: string; kind: string; starts_at: Date };

/**
 * Counts more in windows; how many each holds now. Deliberate: its commit waits for no disk. A crash forgets at most the
 * last moments of a count.
 */
export function useWindows(db: Query, windows: readonly (Window & { used: number })[]) {
  return db.query<Window & { used: number }>(
    `insert into masked_window (org_id, alias_id, kind, starts_at, used)
     select u.* from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::int[]) as u
     on conflict (org_id, alias_id, kind, starts_at) do update set used = masked_window.used + excluded.used
     returning org_id, alias_id, kind, starts_at, used, set_config('synchronous_commit', 'off', true)`,
    [
      windows.map(({ org_id }) => org_id),
      windows.map(({ alias_id }) => alias_id),
      windows.map(({ kind }) => kind),
      windows.map(({ starts_at }) => starts_at),
      windows.map(({ used }) => used),
    ],
  );
}

/** Counts one more in a window, as part of the transaction: what is rolled back was not counted. How many it holds now. */
export async function useWindowIn(tx: Tx, { org_id, alias_id, kind, starts_at }: Window): Promise<number> {
  const [row] = await tx.query<{ used: number }>(
    `insert into masked_window (org_id, alias_id, kind, starts_at, used) values ($1, $2, $3, $4, 1)
     on conflict (org_id, alias_id, kind, starts_at) do update set used = masked_window.used + 1 returning used`,
    [org_id, alias_id, kind, starts_at],
  );
  return row?.used ?? 0;
}

/** Notes that something was done, which is done once between `since` and now; false where it was. The caller holds a lock on what it is for. */
export async function noteOnce(tx: Tx, { org_id, alias_id, kind, starts_at }: Window, since: Date): Promise<boolean> {
  const noted = await tx.execute(
    `insert into masked_window (org_id, alias_id, kind, starts_at, used)
     select $1, $2, $3, $4, 1 where not exists (
       select from masked_window where org_id = $1 and alias_id = $2 and kind = $3 and starts_at > $5)
     on conflict do nothing`,
    [org_id, alias_id, kind, starts_at, since],
  );
  return noted > 0;
}

/** How many a window holds now. Index: masked_window_pkey. */
export async function readWindow(db: Query, { org_id, alias_id, kind, starts_at }: Window): Promise<number> {
  const [row] = await db.query<{ used: number }>(
    "select used from masked_window where org_id = $1 and alias_id = $2 and kind = $3 and starts_at = $4",
    [org_id, alias_id, kind, starts_at],
  );
  return row?.used ?? 0;
}

export type KnownId = { digest: Buffer; counterpart: Buffer | null };

/** Message-IDs that the two sides of an alias know. Index: masked_message_id_pkey. */
export function findMessageIds(tx: Query, orgId: string, aliasId: string, digests: readonly Buffer[]) {
  return tx.query<KnownId>(
    "select digest, counterpart from masked_message_id where org_id = $1 and alias_id = $2 and digest = any($3)",
    [orgId, aliasId, digests],
  );
}

/** True if the organization has aliases at the service's own domain. */
export async function hasAliasesAt(db: Query, orgId: string, domain: string): Promise<boolean> {
  const found = await db.query(
    "select 1 from masked_alias where org_id = $1 and domain_id is null and domain = $2 limit 1",
    [orgId, domain],
  );
  return found.length > 0;
}
