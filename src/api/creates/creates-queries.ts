// All SQL on the answers of creating requests under their Idempotency-Key. Such a key has a row in `idempotency`, too, whose
// primary key lets one of mail and everything else have it: of status 0, which no answer of mail has.
import type { Query, Tx } from "../../platform/database/db.ts";

export type CreateName = { environment: string; key: string };
export type CreateRow = { request_hash: Buffer; status: number | null; answer: Buffer | null; created_at: Date };

/** Takes the key for a request that begins; 0 rows: somebody has it. */
export function takeKey(tx: Tx, orgId: string, name: CreateName, row: { hash: Buffer; at: Date }) {
  return tx.execute(
    `insert into idempotent_create (org_id, environment, key, request_hash, created_at) values ($1, $2, $3, $4, $5)
     on conflict do nothing`,
    [orgId, name.environment, name.key, row.hash, row.at],
  );
}

/**
 * Takes it from mail as well; 0 rows: mail has it, sent after `since`. Waits for mail that is just being accepted with it.
 * Index: idempotency_pkey.
 */
export function takeFromMail(tx: Tx, orgId: string, name: CreateName, row: { hash: Buffer; at: Date; since: Date }) {
  return tx.execute(
    `insert into idempotency as i (org_id, environment, key, request_hash, status, answer, created_at)
     values ($1, $2, $3, $4, 0, '', $5)
     on conflict (org_id, environment, key) do update
       set request_hash = excluded.request_hash, status = 0, answer = '', created_at = excluded.created_at
     where i.status = 0 or i.created_at <= $6`,
    [orgId, name.environment, name.key, row.hash, row.at, row.since],
  );
}

/** Index: primary key. */
export function findKey(tx: Tx, orgId: string, { environment, key }: CreateName) {
  return tx.query<CreateRow>(
    `select request_hash, status, answer, created_at from idempotent_create
      where org_id = $1 and environment = $2 and key = $3`,
    [orgId, environment, key],
  );
}

export function storeAnswer(tx: Tx, orgId: string, { environment, key }: CreateName, done: Answered) {
  return tx.execute(
    `update idempotent_create set status = $4, answer = $5 where org_id = $1 and environment = $2 and key = $3`,
    [orgId, environment, key, done.status, done.answer],
  );
}

export type Answered = { status: number; answer: Buffer };

export function dropKey(tx: Tx, orgId: string, { environment, key }: CreateName) {
  return tx.execute(
    `with given as (
       delete from idempotency where org_id = $1 and environment = $2 and key = $3 and status = 0)
     delete from idempotent_create where org_id = $1 and environment = $2 and key = $3`,
    [orgId, environment, key],
  );
}

/** Index: idempotent_create_age. */
export function forgetKeys(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from idempotent_create i using (
       select org_id, environment, key from idempotent_create where created_at < $1
        order by created_at limit $2 for update skip locked) old
      where i.org_id = old.org_id and i.environment = old.environment and i.key = old.key`,
    [before, limit],
  );
}
