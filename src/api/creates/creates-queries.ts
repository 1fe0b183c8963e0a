// All SQL on the answers of creating requests under their Idempotency-Key.
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

/** Whether mail was sent with the key, which has its answer elsewhere. Index: idempotency_pkey. */
export function isSentKey(tx: Tx, orgId: string, { environment, key }: CreateName, since: Date) {
  return tx.query<{ one: number }>(
    "select 1 as one from idempotency where org_id = $1 and environment = $2 and key = $3 and created_at > $4",
    [orgId, environment, key, since],
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
  return tx.execute("delete from idempotent_create where org_id = $1 and environment = $2 and key = $3", [
    orgId,
    environment,
    key,
  ]);
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
