// All SQL on the domain table.

import type { Query, Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { countUpToMax } from "../platform/database/totals.ts";
import type { DomainRow } from "./types.ts";

const COLUMNS = `org_id, id, domain, environment, type, status, active, claimed, ownership_token, dmarc_token, ownership_verified,
  mx_verified, spf_verified, dkim_verified, dmarc_verified, return_path_verified, has_active_key, catch_all_enabled,
  catch_all_webhook_ids, inbound_mx_acknowledged, tls_policy, ip_pool, checks, lost, unverified_since, watch_since,
  next_check_at, last_dns_check, verified_at, created_at, updated_at`;

export type NewDomain = Pick<
  DomainRow,
  | "id"
  | "domain"
  | "environment"
  | "type"
  | "ownership_token"
  | "dmarc_token"
  | "catch_all_enabled"
  | "inbound_mx_acknowledged"
  | "next_check_at"
  | "created_at"
>;

export function insertDomain(tx: Tx, orgId: string, row: NewDomain) {
  return tx.query<DomainRow>(
    `insert into domain (org_id, id, domain, type, ownership_token, dmarc_token, catch_all_enabled,
       inbound_mx_acknowledged, next_check_at, created_at, updated_at, watch_since, unverified_since, environment)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $10, $10, $11) returning ${COLUMNS}`,
    [
      orgId,
      row.id,
      row.domain,
      row.type,
      row.ownership_token,
      row.dmarc_token,
      row.catch_all_enabled,
      row.inbound_mx_acknowledged,
      row.next_check_at,
      row.created_at,
      row.environment,
    ],
  );
}

export function findEnvironment(tx: Query, orgId: string, id: string) {
  return tx.query<{ environment: "live" | "test" }>("select environment from domain where org_id = $1 and id = $2", [
    orgId,
    id,
  ]);
}

export function countDomains(tx: Tx, orgId: string) {
  return countUpToMax(tx, "domain where org_id = $1", [orgId]);
}

export function listDomains(tx: Tx, orgId: string, { limit, offset, below }: Page) {
  return tx.query<DomainRow>(
    `select ${COLUMNS} from domain where org_id = $1 and id < $4 order by id desc limit $2 offset $3`,
    [orgId, limit, offset, below],
  );
}

/** Index: primary key. */
export function findById(db: Query, orgId: string, id: string) {
  return db.query<DomainRow>(`select ${COLUMNS} from domain where org_id = $1 and id = $2`, [orgId, id]);
}

/** Index: domain_org_id_domain_key. */
export function findByName(db: Query, orgId: string, domain: string) {
  return db.query<DomainRow>(`select ${COLUMNS} from domain where org_id = $1 and domain = $2`, [orgId, domain]);
}

export function lockById(tx: Tx, orgId: string, id: string) {
  return tx.query<DomainRow>(`select ${COLUMNS} from domain where org_id = $1 and id = $2 for update`, [orgId, id]);
}

/** Writes everything that settings and checks may change. The row must be locked. */
export function updateDomain(tx: Tx, orgId: string, row: DomainRow) {
  return tx.query<DomainRow>(
    `update domain set type = $3, status = $4, active = $5, claimed = $6, ownership_verified = $7, mx_verified = $8,
       spf_verified = $9, dkim_verified = $10, dmarc_verified = $11, return_path_verified = $12, has_active_key = $13,
       catch_all_enabled = $14, catch_all_webhook_ids = $15, tls_policy = $16, ip_pool = $17, checks = $18, lost = $19,
       unverified_since = $20, watch_since = $21, next_check_at = $22, last_dns_check = $23, verified_at = $24,
       updated_at = $25
     where org_id = $1 and id = $2 returning ${COLUMNS}`,
    [
      orgId,
      row.id,
      row.type,
      row.status,
      row.active,
      row.claimed,
      row.ownership_verified,
      row.mx_verified,
      row.spf_verified,
      row.dkim_verified,
      row.dmarc_verified,
      row.return_path_verified,
      row.has_active_key,
      row.catch_all_enabled,
      row.catch_all_webhook_ids,
      row.tls_policy,
      row.ip_pool,
      JSON.stringify(row.checks),
      JSON.stringify(row.lost),
      row.unverified_since,
      row.watch_since,
      row.next_check_at,
      row.last_dns_check,
      row.verified_at,
      row.updated_at,
    ],
  );
}

export function countByPool(tx: Tx, orgId: string, pool: string) {
  return tx.query<{ total: number }>("select count(*) as total from domain where org_id = $1 and ip_pool = $2", [
    orgId,
    pool,
  ]);
}

export function clearPool(tx: Tx, orgId: string, pool: string) {
  return tx.execute("update domain set ip_pool = null where org_id = $1 and ip_pool = $2", [orgId, pool]);
}

/** Few domains have any: the organization's are read by its key, domain_org_id_domain_key. */
export function dropWebhook(tx: Tx, orgId: string, webhookId: string) {
  return tx.execute(
    `update domain set catch_all_webhook_ids = array_remove(catch_all_webhook_ids, $2)
      where org_id = $1 and $2 = any(catch_all_webhook_ids)`,
    [orgId, webhookId],
  );
}

export function deleteDomain(tx: Tx, orgId: string, id: string) {
  return tx.execute("delete from domain where org_id = $1 and id = $2", [orgId, id]);
}

/** Notes whether a key signs, and looks at the domain closely from `at` on. */
export function setKeys(tx: Tx, orgId: string, id: string, keys: { active: boolean; at: Date; next_check_at: Date }) {
  return tx.execute(
    `update domain set has_active_key = $3, watch_since = $4, next_check_at = least(next_check_at, $5)
      where org_id = $1 and id = $2`,
    [orgId, id, keys.active, keys.at, keys.next_check_at],
  );
}

/**
 * Takes due domains of all organizations and moves their next check to `leaseUntil`, so that no other process takes
 * them and a crash leaves them due again. Index: domain_due.
 */
export function claimDue(db: Query, due: { at: Date; lease_until: Date; limit: number }) {
  return db.query<{ org_id: string; id: string }>(
    `update domain set next_check_at = $2
      where (org_id, id) in (
        select org_id, id from domain where next_check_at <= $1 order by next_check_at limit $3 for update skip locked)
      returning org_id, id`,
    [due.at, due.lease_until, due.limit],
  );
}

/** The organization other than `orgId` that holds the name. System scope: the answer is only that there is one. */
export function findOtherHolder(db: Query, orgId: string, domain: string) {
  return db.query<{ org_id: string }>("select org_id from domain where domain = $2 and claimed and org_id <> $1", [
    orgId,
    domain,
  ]);
}

/** Index: domain_org_id_domain_key. Batched over organizations: one look-up serves all sends of the moment. */
export function findSenders(db: Query, pairs: { org_ids: string[]; domains: string[] }) {
  return db.query<DomainRow>(
    `select ${COLUMNS} from unnest($1::uuid[], $2::text[]) as wanted (org_id, domain) join domain using (org_id, domain)`,
    [pairs.org_ids, pairs.domains],
  );
}

/** Index: domain_pkey. Batched over organizations. */
export function findByIds(db: Query, pairs: { org_ids: string[]; ids: string[] }) {
  return db.query<DomainRow>(
    `select ${COLUMNS} from unnest($1::uuid[], $2::uuid[]) as wanted (org_id, id) join domain using (org_id, id)`,
    [pairs.org_ids, pairs.ids],
  );
}

/** Index: domain_claim. */
export function findHolders(db: Query, domains: string[]) {
  return db.query<DomainRow>(`select ${COLUMNS} from domain where domain = any($1) and claimed`, [domains]);
}

/** Index: primary key. */
export function findHeldBy(db: Query, orgId: string) {
  return db.query<{ domain: string }>("select domain from domain where org_id = $1 and claimed order by domain", [
    orgId,
  ]);
}

/** Index: domain_dmarc_token. */
export function hasDomains(db: Query) {
  return db.query<{ found: boolean }>("select exists (select 1 from domain) as found");
}

export function findByDmarcToken(db: Query, token: string) {
  return db.query<DomainRow>(`select ${COLUMNS} from domain where dmarc_token = $1`, [token]);
}

/** Index: primary key. */
export function findNames(db: Query, keys: { org_id: string; domain_id: string }[]) {
  return db.query<{ id: string; domain: string }>(
    `select id, domain from unnest($1::uuid[], $2::uuid[]) as wanted (org_id, id) join domain using (org_id, id)`,
    [keys.map(({ org_id }) => org_id), keys.map(({ domain_id }) => domain_id)],
  );
}

/** Domains whose name is like the pattern. Reads the whole table: for operators alone. */
export function findAlike(db: Query, pattern: string, limit: number) {
  return db.query<{ id: string }>("select id from domain where domain like $1 limit $2", [pattern, limit]);
}
