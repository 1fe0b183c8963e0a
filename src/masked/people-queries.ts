// SQL on destinations, contacts and activity.

import type { Query, Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { countUpToMax, type Total } from "../platform/database/totals.ts";
import type {
  ActivityOutcome,
  ActivityType,
  ContactRow,
  DestinationRow,
  DestinationStatus,
  Environment,
} from "./types.ts";

const DESTINATION = `id, org_id, environment, digest, sealed, status, suspended_reason, confirmation_sent_at,
  confirmations_sent, confirmed_at, pgp_sealed, pgp_hide_subject, created_at, updated_at`;

export type NewDestination = Pick<
  DestinationRow,
  "id" | "environment" | "digest" | "sealed" | "status" | "confirmed_at" | "created_at"
>;

/** Adds destinations that are not there yet. */
export function insertDestination(tx: Tx, orgId: string, row: NewDestination) {
  return tx.execute(
    `insert into masked_destination (org_id, id, environment, digest, sealed, status, confirmed_at, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $8) on conflict (org_id, environment, digest) do nothing`,
    [orgId, row.id, row.environment, row.digest, row.sealed, row.status, row.confirmed_at, row.created_at],
  );
}

/** Index: masked_destination_address. */
export function findDestinationsByDigest(
  tx: Query,
  orgId: string,
  environment: Environment,
  digests: readonly Buffer[],
) {
  return tx.query<DestinationRow>(
    `select ${DESTINATION} from masked_destination where org_id = $1 and environment = $2 and digest = any($3)`,
    [orgId, environment, digests],
  );
}

/** As they are when nobody else changes them; until the end of the transaction nobody does. Index: masked_destination_address. */
export function holdDestinationsByDigest(tx: Tx, orgId: string, environment: Environment, digests: readonly Buffer[]) {
  return tx.query<DestinationRow>(
    `select ${DESTINATION} from masked_destination where org_id = $1 and environment = $2 and digest = any($3)
      order by id for share`,
    [orgId, environment, digests],
  );
}

export type CountedDestination = DestinationRow & { aliases: number };

const WITH_ALIASES = `${DESTINATION}, (select count(*) from masked_alias_destination ad
    join masked_alias a on a.org_id = ad.org_id and a.id = ad.alias_id and a.deleted_at is null
   where ad.org_id = d.org_id and ad.destination_id = d.id) as aliases`;

export function findDestination(tx: Query, orgId: string, id: string) {
  return tx.query<CountedDestination>(
    `select ${WITH_ALIASES} from masked_destination d where org_id = $1 and id = $2`,
    [orgId, id],
  );
}

export function lockDestination(tx: Tx, orgId: string, id: string) {
  return tx.query<DestinationRow>(
    `select ${DESTINATION} from masked_destination where org_id = $1 and id = $2 for update`,
    [orgId, id],
  );
}

export type DestinationFilter = {
  environment: Environment;
  status?: DestinationStatus | undefined;
  /** Exactly this address. */
  digest?: Buffer | undefined;
};

const DESTINATION_FILTER = `org_id = $1 and environment = $2 and ($3::text is null or status = $3)
  and ($4::bytea is null or digest = $4)`;

export function listDestinations(tx: Tx, orgId: string, filter: DestinationFilter, page: Page) {
  return tx.query<CountedDestination>(
    `select ${WITH_ALIASES} from masked_destination d where ${DESTINATION_FILTER} and id < $7 order by id desc limit $5 offset $6`,
    [orgId, filter.environment, filter.status ?? null, filter.digest ?? null, page.limit, page.offset, page.below],
  );
}

export function countDestinations(tx: Tx, orgId: string, filter: DestinationFilter): Promise<Total> {
  const values = [orgId, filter.environment, filter.status ?? null, filter.digest ?? null];
  return countUpToMax(tx, `masked_destination where ${DESTINATION_FILTER}`, values);
}

export type DayOfAddress = { digest: Buffer; day: string; sent_max: number };

/** Counts one more confirmation mail to an address, of whichever organization; false when it had all of its day. */
export async function takeConfirmation(tx: Tx, { digest, day, sent_max }: DayOfAddress): Promise<boolean> {
  const touched = await tx.execute(
    `insert into masked_confirmation_day as d (digest, day, sent) values ($1, $2, 1)
     on conflict (digest, day) do update set sent = d.sent + 1 where d.sent < $3`,
    [digest, day, sent_max],
  );
  return touched === 1;
}

export async function countConfirmations(tx: Tx, digest: Buffer, day: string): Promise<number> {
  const [row] = await tx.query<{ sent: number }>(
    "select sent from masked_confirmation_day where digest = $1 and day = $2",
    [digest, day],
  );
  return row?.sent ?? 0;
}

export function noteConfirmationSent(tx: Tx, orgId: string, id: string, at: Date) {
  return tx.execute(
    `update masked_destination set confirmation_sent_at = $3, confirmations_sent = confirmations_sent + 1, updated_at = $3
      where org_id = $1 and id = $2`,
    [orgId, id, at],
  );
}

/** Confirmed by its owner: a suspended destination is taken up again, too. */
export function confirmDestination(tx: Tx, orgId: string, id: string, at: Date) {
  return tx.execute(
    `update masked_destination set status = 'verified', suspended_reason = null, hard_bounces = '{}',
            confirmed_at = coalesce(confirmed_at, $3), updated_at = $3
      where org_id = $1 and id = $2`,
    [orgId, id, at],
  );
}

export type PgpChange = { sealed: Buffer | null; hide_subject: boolean; at: Date };

/** Puts a key in the place of the one that was; null: none. False when the destination is gone. */
export async function setPgpKey(tx: Tx, orgId: string, id: string, change: PgpChange): Promise<boolean> {
  const touched = await tx.execute(
    `update masked_destination set pgp_sealed = $3, pgp_hide_subject = $4, updated_at = $5 where org_id = $1 and id = $2`,
    [orgId, id, change.sealed, change.hide_subject, change.at],
  );
  return touched === 1;
}

export function deleteDestination(tx: Tx, orgId: string, id: string) {
  return tx.execute("delete from masked_destination where org_id = $1 and id = $2", [orgId, id]);
}

/** Aliases, deleted ones too, of which this is the only destination; and the rest let go of it. */
export async function releaseDestination(tx: Tx, orgId: string, id: string): Promise<boolean> {
  const [only] = await tx.query(
    `select 1 from masked_alias_destination ad
       join masked_alias a on a.org_id = ad.org_id and a.id = ad.alias_id and a.deleted_at is null
      where ad.org_id = $1 and ad.destination_id = $2
        and not exists (select 1 from masked_alias_destination o
                         where o.org_id = $1 and o.alias_id = ad.alias_id and o.destination_id <> $2)
      limit 1`,
    [orgId, id],
  );
  if (only) return false;
  await unlinkDestination(tx, orgId, id);
  return true;
}

/** Takes a destination from every alias. */
export function unlinkDestination(tx: Tx, orgId: string, id: string) {
  return tx.execute("delete from masked_alias_destination where org_id = $1 and destination_id = $2", [orgId, id]);
}

// --- contacts -----------------------------------------------------------------------------------------------------------

const CONTACT = `id, org_id, alias_id, digest, sealed, blocked, source, is_token, received, sent, last_seen_at, created_at,
  updated_at`;

function columnsOf(table: string): string {
  return CONTACT.replace(/\w+/g, (name) => `${table}.${name}`);
}

export type NewContact = Pick<
  ContactRow,
  "id" | "alias_id" | "digest" | "sealed" | "blocked" | "source" | "is_token" | "created_at"
> & { person: Buffer };

/** False when the alias has the contact already. */
export async function insertContact(tx: Tx, orgId: string, row: NewContact): Promise<boolean> {
  const touched = await tx.execute(
    `insert into masked_contact (org_id, id, alias_id, digest, sealed, blocked, source, created_at, updated_at, person, is_token)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10) on conflict (org_id, alias_id, digest) do nothing`,
    [
      orgId,
      row.id,
      row.alias_id,
      row.digest,
      row.sealed,
      row.blocked,
      row.source,
      row.created_at,
      row.person,
      row.is_token,
    ],
  );
  return touched === 1;
}

/** A mailbox that only stood for itself is named among the people of a mail: a new contact from then on. */
export function makePerson(tx: Tx, orgId: string, id: string, at: Date) {
  return tx.execute(
    "update masked_contact set is_token = false, created_at = $3, updated_at = $3 where org_id = $1 and id = $2 and is_token",
    [orgId, id, at],
  );
}

/** Index: masked_contact_address. */
export function findContactsByDigest(tx: Query, orgId: string, aliasId: string, digests: readonly Buffer[]) {
  return tx.query<ContactRow>(
    `select ${CONTACT} from masked_contact where org_id = $1 and alias_id = $2 and digest = any($3)`,
    [orgId, aliasId, digests],
  );
}

type ContactKey = Pick<ContactRow, "org_id" | "alias_id" | "digest">;

/** Contacts of any organizations. Index: masked_contact_address. */
export function findContactsByKey(db: Query, keys: readonly ContactKey[]) {
  return db.query<ContactRow>(
    `select ${columnsOf("c")} from unnest($1::uuid[], $2::uuid[], $3::bytea[]) as k (org_id, alias_id, digest)
       join masked_contact c on c.org_id = k.org_id and c.alias_id = k.alias_id and c.digest = k.digest`,
    [keys.map(({ org_id }) => org_id), keys.map(({ alias_id }) => alias_id), keys.map(({ digest }) => digest)],
  );
}

export function findContacts(tx: Query, orgId: string, ids: readonly string[]) {
  return tx.query<ContactRow>(`select ${CONTACT} from masked_contact where org_id = $1 and id = any($2)`, [orgId, ids]);
}

export type OfPerson = { person: Buffer; environment: Environment; limit: number };

/** A person as a contact, over all aliases of an organization, with the aliases' domains. Index: masked_contact_person. */
export function findContactsOfPerson(tx: Query, orgId: string, { person, environment, limit }: OfPerson) {
  return tx.query<ContactRow & { domain: string }>(
    `select ${columnsOf("c")}, a.domain
       from masked_contact c
       join masked_alias a on a.org_id = c.org_id and a.id = c.alias_id and a.environment = $3
      where c.org_id = $1 and c.person = $2 order by c.id limit $4`,
    [orgId, person, environment, limit],
  );
}

export type ContactFilter = { alias_id: string; blocked?: boolean | undefined; digest?: Buffer | undefined };

const CONTACT_FILTER = `org_id = $1 and alias_id = $2 and ($3::boolean is null or blocked = $3)
  and ($4::bytea is null or digest = $4)`;

export function listContacts(tx: Tx, orgId: string, filter: ContactFilter, page: Page) {
  return tx.query<ContactRow>(
    `select ${CONTACT} from masked_contact where ${CONTACT_FILTER} and id < $7 order by id desc limit $5 offset $6`,
    [orgId, filter.alias_id, filter.blocked ?? null, filter.digest ?? null, page.limit, page.offset, page.below],
  );
}

export function countContacts(tx: Tx, orgId: string, filter: ContactFilter): Promise<Total> {
  const values = [orgId, filter.alias_id, filter.blocked ?? null, filter.digest ?? null];
  return countUpToMax(tx, `masked_contact where ${CONTACT_FILTER}`, values);
}

/** People that an alias got since then; not the mailboxes that contacts wrote of. Index: masked_contact_new. */
export async function countNewContacts(tx: Query, orgId: string, aliasId: string, since: Date): Promise<number> {
  const [row] = await tx.query<{ total: number }>(
    "select count(*) as total from masked_contact where org_id = $1 and alias_id = $2 and created_at > $3 and not is_token",
    [orgId, aliasId, since],
  );
  return row?.total ?? 0;
}

/** When the owner was last warned of the contact. Index: masked_contact_pkey. */
export async function findWarnedAt(db: Query, orgId: string, id: string): Promise<Date | null> {
  const [row] = await db.query<{ warned_at: Date | null }>(
    "select warned_at from masked_contact where org_id = $1 and id = $2",
    [orgId, id],
  );
  return row?.warned_at ?? null;
}

export function setWarnedAt(tx: Tx, orgId: string, id: string, at: Date) {
  return tx.execute("update masked_contact set warned_at = $3 where org_id = $1 and id = $2", [orgId, id, at]);
}

export type ContactChange = { sealed: Buffer; blocked: boolean; at: Date };

export function updateContact(tx: Tx, orgId: string, id: string, change: ContactChange) {
  return tx.execute(
    "update masked_contact set sealed = $3, blocked = $4, updated_at = $5 where org_id = $1 and id = $2",
    [orgId, id, change.sealed, change.blocked, change.at],
  );
}

export function deleteContact(tx: Tx, orgId: string, id: string) {
  return tx.execute("delete from masked_contact where org_id = $1 and id = $2", [orgId, id]);
}

// --- activity -----------------------------------------------------------------------------------------------------------

export type ActivityRow = {
  id: string;
  alias_id: string;
  type: ActivityType;
  outcome: ActivityOutcome;
  reason: string | null;
  detail: string | null;
  contact_id: string | null;
  destination_id: string | null;
  message_id: string | null;
  size: number | null;
  spf: string | null;
  dkim: string | null;
  dmarc: string | null;
  spam_score: number | null;
  redactions: number | null;
  at: Date;
};

/** Run the transaction in `withPartitions`. */
export function insertActivity(tx: Tx, orgId: string, row: ActivityRow) {
  return tx.execute(
    `insert into masked_activity (org_id, id, alias_id, type, outcome, reason, contact_id, destination_id, message_id,
       size, spf, dkim, dmarc, spam_score, redactions, at, detail)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
    [
      orgId,
      row.id,
      row.alias_id,
      row.type,
      row.outcome,
      row.reason,
      row.contact_id,
      row.destination_id,
      row.message_id,
      row.size,
      row.spf,
      row.dkim,
      row.dmarc,
      row.spam_score,
      row.redactions,
      row.at,
      row.detail,
    ],
  );
}

export type ActivityFilter = {
  alias_id: string;
  type?: ActivityType | undefined;
  outcome?: ActivityOutcome | undefined;
};

const ACTIVITY_FILTER = `a.org_id = $1 and a.alias_id = $2 and ($3::text is null or a.type = $3)
  and ($4::text is null or a.outcome = $4)`;

/** Index: masked_activity_by_alias. */
export function listActivity(tx: Tx, orgId: string, filter: ActivityFilter, page: Page) {
  return tx.query<ActivityRow & { contact_sealed: Buffer | null; destination_sealed: Buffer | null }>(
    `select a.*, c.sealed as contact_sealed, d.sealed as destination_sealed
       from masked_activity a
       left join masked_contact c on c.org_id = a.org_id and c.id = a.contact_id
       left join masked_destination d on d.org_id = a.org_id and d.id = a.destination_id
      where ${ACTIVITY_FILTER} and a.id < $7 order by a.id desc limit $5 offset $6`,
    [orgId, filter.alias_id, filter.type ?? null, filter.outcome ?? null, page.limit, page.offset, page.below],
  );
}

export type ActivityOf = { contact_ids: readonly string[]; destination_id: string | null; limit: number };

/** What happened with a person, over all aliases, the newest first. Reads the activity of the organization: it is rare. */
export function listActivityOf(tx: Tx, orgId: string, { contact_ids, destination_id, limit }: ActivityOf) {
  return tx.query<ActivityRow & { contact_sealed: Buffer | null; destination_sealed: Buffer | null }>(
    `select a.*, c.sealed as contact_sealed, d.sealed as destination_sealed
       from masked_activity a
       left join masked_contact c on c.org_id = a.org_id and c.id = a.contact_id
       left join masked_destination d on d.org_id = a.org_id and d.id = a.destination_id
      where a.org_id = $1 and (a.contact_id = any($2) or a.destination_id = $3) order by a.id desc limit $4`,
    [orgId, contact_ids, destination_id, limit],
  );
}

export function countActivity(tx: Tx, orgId: string, filter: ActivityFilter): Promise<Total> {
  const values = [orgId, filter.alias_id, filter.type ?? null, filter.outcome ?? null];
  return countUpToMax(tx, `masked_activity a where ${ACTIVITY_FILTER}`, values);
}

/**
 * Digests of what a contact sent, the newest first, those of lines (not of 16 octets) apart: it can send any number of lines, and must
 * push nothing else out with them. Of lines no more than `line_octets` together. Index: masked_sent_pkey.
 */
export function findSent(db: Query, orgId: string, contactId: string, most: { digests: number; line_octets: number }) {
  return db.query<{ digest: Buffer }>(
    `(select digest from masked_sent where org_id = $1 and contact_id = $2 and octet_length(digest) = 16
        order by created_at desc limit $3)
     union all
     select digest from (
       select digest, sum(octet_length(digest)) over (order by created_at desc, digest) as octets
         from (select digest, created_at from masked_sent
                where org_id = $1 and contact_id = $2 and octet_length(digest) <> 16
                order by created_at desc limit $3) newest) counted
      where octets <= $4`,
    [orgId, contactId, most.digests, most.line_octets],
  );
}
