// All SQL on dkim_key. The private half is selected in one statement only: findSigningKeys.
import type { Query, Tx } from "../platform/database/db.ts";
import type { KeyRow } from "./types.ts";

const COLUMNS = `id, domain_id, selector, algorithm, public_key, status, verified, replaces, unasked, created_at,
  activated_at, retires_at, deactivated_at`;

export type NewKey = Pick<KeyRow, "id" | "selector" | "algorithm" | "public_key" | "created_at"> & {
  private_key: Buffer;
  replaces?: string;
  unasked?: boolean;
};

export function insertKey(tx: Tx, orgId: string, domain: { id: string; domain: string }, key: NewKey) {
  return tx.query<KeyRow>(
    `insert into dkim_key (org_id, id, domain_id, domain, selector, algorithm, public_key, private_key, replaces, created_at,
       unasked)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) returning ${COLUMNS}`,
    [
      orgId,
      key.id,
      domain.id,
      domain.domain,
      key.selector,
      key.algorithm,
      key.public_key,
      key.private_key,
      key.replaces ?? null,
      key.created_at,
      key.unasked ?? false,
    ],
  );
}

/** All keys of the domain, oldest first. Index: dkim_key_org_id_domain_id_selector_key. */
export function listKeys(tx: Query, orgId: string, domainId: string) {
  return tx.query<KeyRow>(`select ${COLUMNS} from dkim_key where org_id = $1 and domain_id = $2 order by id`, [
    orgId,
    domainId,
  ]);
}

/** From now on the key is one that somebody asked for. */
export function setAsked(tx: Tx, orgId: string, id: string) {
  return tx.query<KeyRow>(`update dkim_key set unasked = false where org_id = $1 and id = $2 returning ${COLUMNS}`, [
    orgId,
    id,
  ]);
}

/** Removes a key that nobody knows: its selector is free again. */
export function dropUnasked(tx: Tx, orgId: string, id: string) {
  return tx.execute("delete from dkim_key where org_id = $1 and id = $2 and unasked and status = 'pending'", [
    orgId,
    id,
  ]);
}

export function setVerified(tx: Tx, orgId: string, id: string, verified: boolean) {
  return tx.execute("update dkim_key set verified = $3 where org_id = $1 and id = $2", [orgId, id, verified]);
}

export function activateKey(tx: Tx, orgId: string, id: string, at: Date) {
  return tx.execute(
    `update dkim_key set status = 'active', verified = true, activated_at = $3, replaces = null
      where org_id = $1 and id = $2`,
    [orgId, id, at],
  );
}

export function retireKey(tx: Tx, orgId: string, id: string, retires_at: Date) {
  return tx.execute("update dkim_key set status = 'retiring', retires_at = $3 where org_id = $1 and id = $2", [
    orgId,
    id,
    retires_at,
  ]);
}

/** The pending successors of a key replace another from now on, or none. */
export function passOnSuccession(tx: Tx, orgId: string, key: Pick<KeyRow, "domain_id" | "selector" | "replaces">) {
  return tx.execute(
    `update dkim_key set replaces = $4
      where org_id = $1 and domain_id = $2 and replaces = $3 and status = 'pending'`,
    [orgId, key.domain_id, key.selector, key.replaces],
  );
}

/** Ends a key and destroys its private half. */
export function deactivateKey(tx: Tx, orgId: string, id: string, at: Date) {
  return tx.query<KeyRow>(
    `update dkim_key set status = 'deactivated', private_key = null, replaces = null,
       deactivated_at = coalesce(deactivated_at, $3)
      where org_id = $1 and id = $2 returning ${COLUMNS}`,
    [orgId, id, at],
  );
}

/** Ends every organization's keys whose retirement is over. Index: dkim_key_retiring. */
export function deactivateRetired(db: Query, at: Date) {
  return db.execute(
    `update dkim_key set status = 'deactivated', private_key = null, deactivated_at = retires_at
      where status = 'retiring' and retires_at <= $1`,
    [at],
  );
}

export type SealedKey = Pick<KeyRow, "id" | "selector" | "algorithm"> & {
  org_id: string;
  domain_id: string;
  domain: string;
  private_key: Buffer;
};

/**
 * The active keys of many domains; of several keys of one algorithm the one that DNS shows, then the newest, comes
 * first. Index: dkim_key_org_id_domain_id_selector_key.
 */
export function findSigningKeys(db: Query, pairs: { org_ids: string[]; domain_ids: string[] }) {
  return db.query<SealedKey>(
    `select k.org_id, k.domain_id, k.id, k.selector, k.algorithm, k.private_key, k.domain
       from unnest($1::uuid[], $2::uuid[]) as wanted (org_id, domain_id)
       join dkim_key k using (org_id, domain_id)
      where k.status = 'active'
      order by k.verified desc, k.activated_at desc, k.id desc`,
    [pairs.org_ids, pairs.domain_ids],
  );
}
