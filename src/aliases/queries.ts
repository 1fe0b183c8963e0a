// All SQL on domain aliases.

import { spelled } from "../http/like.ts";
import type { Query, Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { countUpToMax, type Total } from "../platform/database/totals.ts";
import type { AliasAction, AliasChoice, AliasRecord, ForwardMode } from "./types.ts";

const COLUMNS = `id, org_id, domain_id, local_part as address, domain, false as is_masked, action, forward_to,
  forward_mode, webhook_ids, description, active, emails_received, last_received_at, created_at, updated_at`;

export type NewAlias = {
  id: string;
  domain_id: string;
  domain: string;
  local_part: string;
  is_glob: boolean;
  action: AliasAction;
  forward_to: string[];
  forward_mode: ForwardMode;
  webhook_ids: string[];
  description: string | null;
  active: boolean;
  environment: "live" | "test";
  created_at: Date;
};

export function insertAlias(tx: Tx, orgId: string, row: NewAlias) {
  return tx.execute(
    `insert into alias (org_id, id, domain_id, domain, local_part, is_glob, action, forward_to, forward_mode,
       webhook_ids, description, active, environment, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14)`,
    [
      orgId,
      row.id,
      row.domain_id,
      row.domain,
      row.local_part,
      row.is_glob,
      row.action,
      row.forward_to,
      row.forward_mode,
      row.webhook_ids,
      row.description,
      row.active,
      row.environment,
      row.created_at,
    ],
  );
}

export function findEnvironment(tx: Query, orgId: string, id: string) {
  return tx.query<{ environment: "live" | "test" }>("select environment from alias where org_id = $1 and id = $2", [
    orgId,
    id,
  ]);
}

/** Serializes creations within a domain, so that the limits hold. */
export function lockDomainAliases(tx: Tx, domainId: string) {
  return tx.query("select pg_advisory_xact_lock(hashtextextended('alias-create:' || $1, 0))", [domainId]);
}

/** Index: alias_local_part, alias_globs. */
export async function countOfDomain(tx: Tx, orgId: string, domainId: string) {
  const [row] = await tx.query<{ total: number; globs: number }>(
    `select count(*) as total, count(*) filter (where is_glob) as globs from alias where org_id = $1 and domain_id = $2`,
    [orgId, domainId],
  );
  return row ?? { total: 0, globs: 0 };
}

export type AliasFilter = {
  domain_id?: string | undefined;
  action?: AliasAction | undefined;
  active?: boolean | undefined;
  q?: string | undefined;
};

const FILTER = `org_id = $1 and ($2::uuid is null or domain_id = $2) and ($3::text is null or action = $3)
  and ($4::boolean is null or active = $4)
  and ($5::text[] is null or local_part || '@' || domain ilike any($5) or description ilike any($5))`;

function filterValues(orgId: string, { domain_id, action, active, q }: AliasFilter): unknown[] {
  const text = q === undefined ? null : spelled(q);
  return [orgId, domain_id ?? null, action ?? null, active ?? null, text];
}

export function listAliases(tx: Tx, orgId: string, filter: AliasFilter, page: Page) {
  return tx.query<AliasRecord>(
    `select ${COLUMNS} from alias where ${FILTER} and id < $8 order by id desc limit $6 offset $7`,
    [...filterValues(orgId, filter), page.limit, page.offset, page.below],
  );
}

export function countAliases(tx: Tx, orgId: string, filter: AliasFilter): Promise<Total> {
  return countUpToMax(tx, `alias where ${FILTER}`, filterValues(orgId, filter));
}

export function findAlias(tx: Query, orgId: string, id: string) {
  return tx.query<AliasRecord>(`select ${COLUMNS} from alias where org_id = $1 and id = $2`, [orgId, id]);
}

export function lockAlias(tx: Tx, orgId: string, id: string) {
  return tx.query("select 1 from alias where org_id = $1 and id = $2 for update", [orgId, id]);
}

export type AliasChange = Omit<NewAlias, "environment" | "id" | "domain_id" | "domain" | "created_at"> & { at: Date };

/** Writes every setting. The row must be locked. */
export function updateAlias(tx: Tx, orgId: string, id: string, change: AliasChange) {
  return tx.execute(
    `update alias set local_part = $3, is_glob = $4, action = $5, forward_to = $6, forward_mode = $7, webhook_ids = $8,
            description = $9, active = $10, updated_at = $11
      where org_id = $1 and id = $2`,
    [
      orgId,
      id,
      change.local_part,
      change.is_glob,
      change.action,
      change.forward_to,
      change.forward_mode,
      change.webhook_ids,
      change.description,
      change.active,
      change.at,
    ],
  );
}

export function deleteAlias(tx: Tx, orgId: string, id: string) {
  return tx.execute("delete from alias where org_id = $1 and id = $2", [orgId, id]);
}

export async function hasAliases(tx: Query, orgId: string, domainId: string): Promise<boolean> {
  const [row] = await tx.query<{ found: boolean }>(
    "select exists (select 1 from alias where org_id = $1 and domain_id = $2) as found",
    [orgId, domainId],
  );
  return row?.found ?? false;
}

const CHOICE = `a.org_id, a.id, a.domain_id, a.local_part, a.is_glob, a.action, a.forward_to, a.forward_mode,
  a.webhook_ids, a.active, a.environment`;

export type Wanted = { org_id: string; domain_id: string; names: readonly [string, string] };

/**
 * For the hot path, many addresses at once: the aliases that name them, and the globs of their domains. Index:
 * alias_local_part, alias_globs.
 */
export function findCandidates(db: Query, wanted: readonly Wanted[]) {
  return db.query<AliasChoice>(
    `select ${CHOICE} from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[]) as k (org_id, domain_id, whole, bare)
       join alias a on a.org_id = k.org_id and a.domain_id = k.domain_id and a.local_part in (k.whole, k.bare)
     union
     select ${CHOICE} from unnest($1::uuid[], $2::uuid[]) as k (org_id, domain_id)
       join alias a on a.org_id = k.org_id and a.domain_id = k.domain_id and a.is_glob`,
    [
      wanted.map(({ org_id }) => org_id),
      wanted.map(({ domain_id }) => domain_id),
      wanted.map(({ names }) => names[0]),
      wanted.map(({ names }) => names[1]),
    ],
  );
}

export type ReceivedCount = { org_id: string; id: string; count: number; at: Date };

/** One row an alias, in one order for all writers. */
export function addReceived(tx: Tx, counts: readonly ReceivedCount[]) {
  return tx.execute(
    `update alias a set emails_received = a.emails_received + k.count,
            last_received_at = greatest(a.last_received_at, k.at)
       from (select a.org_id, a.id, k.count, k.at
               from unnest($1::uuid[], $2::uuid[], $3::int[], $4::timestamptz[]) as k (org_id, id, count, at)
               join alias a on a.org_id = k.org_id and a.id = k.id order by a.org_id, a.id for update of a) k
      where a.org_id = k.org_id and a.id = k.id`,
    [
      counts.map(({ org_id }) => org_id),
      counts.map(({ id }) => id),
      counts.map(({ count }) => count),
      counts.map(({ at }) => at),
    ],
  );
}

/** Aliases that forward to an address, which `pattern` finds. */
export async function countForwardingTo(
  tx: Query,
  orgId: string,
  { pattern, environment }: { pattern: string; environment: string },
): Promise<number> {
  const rows = await tx.query<{ n: number }>(
    "select count(*) as n from alias where org_id = $1 and environment = $3 and array_to_string(forward_to, ' ') ~* $2",
    [orgId, pattern, environment],
  );
  return rows[0]?.n ?? 0;
}
