// All SQL on passkeys and on the challenges that wait for their answers.
import type { Query, Tx } from "../../platform/database/db.ts";

export type PasskeyRow = {
  credential_id: Buffer;
  id: string;
  person_id: string;
  public_key: Buffer;
  counter: number;
  transports: string[];
  name: string;
  created_at: Date;
};

export function insertPasskey(db: Query, row: PasskeyRow) {
  return db.execute(
    `insert into passkey (credential_id, id, person_id, public_key, counter, transports, name, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      ...[row.credential_id, row.id, row.person_id, row.public_key],
      ...[row.counter, row.transports, row.name, row.created_at],
    ],
  );
}

/** Index: passkey_pkey. */
export function findPasskey(db: Query, credentialId: Buffer) {
  return db.query<PasskeyRow>(
    `select credential_id, id, person_id, public_key, counter, transports, name, created_at
       from passkey where credential_id = $1`,
    [credentialId],
  );
}

export type ListedPasskey = Pick<PasskeyRow, "id" | "name" | "created_at"> & { used_at: Date | null };

export function listPasskeys(db: Query, personId: string) {
  return db.query<ListedPasskey & { credential_id: Buffer }>(
    "select id, name, created_at, used_at, credential_id from passkey where person_id = $1 order by created_at, id",
    [personId],
  );
}

/** Touches no row when another answer with that counter was faster: then one of the two is a copy (WebAuthn §6.1.1). */
export function usePasskey(db: Query, credentialId: Buffer, counter: number, at: Date) {
  return db.execute(
    `update passkey set counter = $2, used_at = $3
      where credential_id = $1 and (counter < $2 or (counter = 0 and $2 = 0))`,
    [credentialId, counter, at],
  );
}

/** Keeps the person's passkeys as they are until the transaction ends. */
export function lockPasskeys(tx: Tx, personId: string) {
  return tx.query<{ id: string }>("select id from passkey where person_id = $1 order by id for update", [personId]);
}

export function dropPasskey(db: Query, personId: string, id: string) {
  return db.execute("delete from passkey where person_id = $1 and id = $2", [personId, id]);
}

export function dropPasskeys(db: Query, personId: string) {
  return db.execute("delete from passkey where person_id = $1", [personId]);
}

// Challenges ---------------------------------------------------------------------------------------------------------

export type ChallengeKind = "new" | "sign_in" | "first";

export function insertChallenge(
  db: Query,
  row: { digest: Buffer; kind: ChallengeKind; person_id: string | null; expires_at: Date },
) {
  return db.execute("insert into passkey_challenge (digest, kind, person_id, expires_at) values ($1, $2, $3, $4)", [
    ...[row.digest, row.kind, row.person_id, row.expires_at],
  ]);
}

/** Gone with it: each counts once. */
export function takeChallenge(db: Query, digest: Buffer, kind: ChallengeKind, now: Date) {
  return db.query<{ person_id: string | null }>(
    "delete from passkey_challenge where digest = $1 and kind = $2 and expires_at > $3 returning person_id",
    [digest, kind, now],
  );
}

export function purgeChallenges(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from passkey_challenge where digest in (
       select digest from passkey_challenge where expires_at < $1 limit $2 for update skip locked)`,
    [before, limit],
  );
}
