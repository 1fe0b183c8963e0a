// The tables of certificates: accounts, the certificate of each directory, and the answers to challenges.
import type { Query } from "../platform/database/db.ts";

export type Account = { url: string | null; key: Buffer };

export type Stored = {
  names: string[];
  chain: string | null;
  key: Buffer | null;
  not_before: Date | null;
  not_after: Date | null;
  renew_at: Date;
  failures: number;
  failure: string | null;
  updated_at: Date;
};

/** The account at this ACME server. */
export function findAccount(db: Query, directory: string): Promise<Account[]> {
  return db.query<Account>("select url, key from acme_account where directory = $1", [directory]);
}

/** Keeps a new key; the one that is there already stays. */
export async function insertAccount(db: Query, directory: string, account: Account & { at: Date }): Promise<void> {
  await db.execute(
    `insert into acme_account (directory, url, key, created_at) values ($1, $2, $3, $4)
     on conflict (directory) do nothing`,
    [directory, account.url, account.key, account.at],
  );
}

/** Notes under which URL the account is known; null: under none any more. */
export async function setAccountUrl(db: Query, directory: string, url: string | null): Promise<void> {
  await db.execute("update acme_account set url = $2 where directory = $1", [directory, url]);
}

/** Forgets an account that cannot be used any more. */
export async function deleteAccount(db: Query, directory: string): Promise<void> {
  await db.execute("delete from acme_account where directory = $1", [directory]);
}

/** The certificate of this directory; none before the first look at it. */
export function findCertificate(db: Query, directory: string): Promise<Stored[]> {
  return db.query<Stored>(
    `select names, chain, key, not_before, not_after, renew_at, failures, failure, updated_at
       from acme_certificate where directory = $1`,
    [directory],
  );
}

/** Makes the row of this directory, due at once. */
export async function ensureCertificate(db: Query, directory: string, now: Date): Promise<void> {
  await db.execute(
    `insert into acme_certificate (directory, renew_at, updated_at) values ($1, $2, $2)
     on conflict (directory) do nothing`,
    [directory, now],
  );
}

/** True for one process at a time, and only while nobody has changed the row since it was read. */
export async function takeLease(
  db: Query,
  { directory, read, seconds }: { directory: string; read: Date; seconds: number },
): Promise<boolean> {
  const taken = await db.execute(
    `update acme_certificate set lease_until = statement_timestamp() + make_interval(secs => $3)
      where directory = $1 and updated_at >= $2 and updated_at < $2::timestamptz + interval '1 millisecond'
        and (lease_until is null or lease_until < statement_timestamp())`,
    [directory, read, seconds],
  );
  return taken === 1;
}

export type Issued = {
  names: string[];
  chain: string;
  key: Buffer;
  not_before: Date;
  not_after: Date;
  renew_at: Date;
};

/** Keeps a certificate that was issued, and gives the lease back. */
export async function storeIssued(db: Query, directory: string, issued: Issued & { at: Date }): Promise<void> {
  await db.execute(
    `update acme_certificate set names = $2, chain = $3, key = $4, not_before = $5, not_after = $6, renew_at = $7,
            failures = 0, failure = null, lease_until = null, updated_at = $8
      where directory = $1`,
    [
      ...[directory, issued.names, issued.chain, issued.key, issued.not_before, issued.not_after],
      ...[issued.renew_at, issued.at],
    ],
  );
}

/** Notes why no certificate came and when to ask again, and gives the lease back. The certificate in use stays. */
export async function storeFailure(
  db: Query,
  directory: string,
  { failure, renew_at, at }: { failure: string; renew_at: Date; at: Date },
): Promise<void> {
  await db.execute(
    `update acme_certificate set failures = failures + 1, failure = $2, renew_at = $3, lease_until = null, updated_at = $4
      where directory = $1`,
    [directory, failure, renew_at, at],
  );
}

/** Makes it due; false where none was ever asked for. */
export async function renewNow(db: Query, directory: string, now: Date): Promise<boolean> {
  const updated = await db.execute("update acme_certificate set renew_at = $2 where directory = $1", [directory, now]);
  return updated === 1;
}

/** Any process of the database answers with it from now on. */
export async function putChallenge(
  db: Query,
  { token, answer, at }: { token: string; answer: string; at: Date },
): Promise<void> {
  await db.execute(
    `insert into acme_challenge (token, key_authorization, created_at) values ($1, $2, $3)
     on conflict (token) do update set key_authorization = excluded.key_authorization`,
    [token, answer, at],
  );
}

/** What to answer; none for a token of nobody's. */
export async function findChallenge(db: Query, token: string): Promise<string | null> {
  const [row] = await db.query<{ key_authorization: string }>(
    "select key_authorization from acme_challenge where token = $1",
    [token],
  );
  return row?.key_authorization ?? null;
}

/** Deletes the challenges of an order that is over, and those that processes left behind which are gone. */
export async function dropChallenges(db: Query, tokens: string[], before: Date): Promise<void> {
  await db.execute("delete from acme_challenge where token = any($1) or created_at < $2", [tokens, before]);
}
