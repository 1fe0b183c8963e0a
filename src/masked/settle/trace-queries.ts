// SQL on masked_trace, and what a bounce changes in destinations and aliases.
import type { Query, Tx } from "../../platform/database/db.ts";

export type TraceRow = {
  org_id: string;
  id: string;
  kind: "received" | "forward" | "reply" | "notice";
  alias_id: string | null;
  destination_id: string | null;
  contact_id: string | null;
  owner_id: string | null;
  /** For a reply: the mailboxes that it was searched for before it left; null where that was not noted. */
  cleared: string[] | null;
  created_at: Date;
};

const TRACE = "org_id, id, kind, alias_id, destination_id, contact_id, owner_id, cleared, created_at";

/** Run the transaction in `withPartitions`. */
export function insertTrace(tx: Tx, orgId: string, row: Omit<TraceRow, "org_id"> & { due_at: Date }) {
  return tx.execute(
    `insert into masked_trace (${TRACE}, due_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict (org_id, id) do nothing`,
    [
      orgId,
      row.id,
      row.kind,
      row.alias_id,
      row.destination_id,
      row.contact_id,
      row.owner_id,
      row.cleared,
      row.created_at,
      row.due_at,
    ],
  );
}

/** Takes traces that are due, of all organizations; others leave them alone until `until`. Index: masked_trace_due. */
export function claimTraces(db: Query, claim: { now: Date; until: Date; limit: number }) {
  return db.query<TraceRow>(
    `update masked_trace t set due_at = $2
       from (select org_id, id from masked_trace where due_at <= $1 order by due_at limit $3 for update skip locked) d
      where t.org_id = d.org_id and t.id = d.id
      returning t.org_id, t.id, t.kind, t.alias_id, t.destination_id, t.contact_id, t.owner_id, t.cleared, t.created_at`,
    [claim.now, claim.until, claim.limit],
  );
}

type Key = { org_id: string; id: string };

/** When each is looked at again. */
export function setDue(db: Query, rows: readonly (Key & { due_at: Date })[]) {
  return db.execute(
    `update masked_trace t set due_at = k.due_at
       from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as k (org_id, id, due_at)
      where t.org_id = k.org_id and t.id = k.id`,
    [rows.map(({ org_id }) => org_id), rows.map(({ id }) => id), rows.map(({ due_at }) => due_at)],
  );
}

/** They are over: nobody looks at them again. */
export function endTraces(db: Query, keys: readonly Key[]) {
  return db.execute(
    `update masked_trace t set due_at = null from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
      where t.org_id = k.org_id and t.id = k.id`,
    [keys.map(({ org_id }) => org_id), keys.map(({ id }) => id)],
  );
}

export function findTrace(tx: Query, orgId: string, id: string) {
  return tx.query<TraceRow>(`select ${TRACE} from masked_trace where org_id = $1 and id = $2`, [orgId, id]);
}

export type Outcome = Key & { outcome: "sent" | "deferred" | "failed" };

/** What became of messages, in the entries of the activity that have their ids. Index: masked_activity_pkey. */
export function setOutcomes(db: Query, rows: readonly Outcome[]) {
  return db.execute(
    `update masked_activity a set outcome = k.outcome
       from unnest($1::uuid[], $2::uuid[], $3::text[]) as k (org_id, id, outcome)
      where a.org_id = k.org_id and a.id = k.id and a.outcome <> k.outcome`,
    [rows.map(({ org_id }) => org_id), rows.map(({ id }) => id), rows.map(({ outcome }) => outcome)],
  );
}

/** True for the first bounce of a message. */
export async function markBounced(tx: Tx, orgId: string, id: string, at: Date): Promise<boolean> {
  const touched = await tx.execute(
    "update masked_trace set bounced_at = $3 where org_id = $1 and id = $2 and bounced_at is null",
    [orgId, id, at],
  );
  return touched === 1;
}

export type HardBounce = { id: string; at: Date; since: Date; bounces_max: number };

/** Remembers a hard bounce; true when it is the one too many since `since` that suspends the destination. */
export async function noteHardBounce(tx: Tx, orgId: string, bounce: HardBounce): Promise<boolean> {
  const [row] = await tx.query<{ suspended: boolean }>(
    `update masked_destination d
        set hard_bounces = n.bounces, updated_at = $3,
            status = case when n.too_many then 'suspended' else d.status end,
            suspended_reason = case when n.too_many then 'bouncing' else d.suspended_reason end
       from (select p.status as before, p.bounces, cardinality(p.bounces) >= $5 as too_many
               from (select status,
                            array(select b from unnest(hard_bounces || $3::timestamptz) b where b > $4 order by b) as bounces
                       from masked_destination where org_id = $1 and id = $2 for update) p) n
      where d.org_id = $1 and d.id = $2
      returning n.too_many and n.before <> 'suspended' as suspended`,
    [orgId, bounce.id, bounce.at, bounce.since, bounce.bounces_max],
  );
  return row?.suspended ?? false;
}

/** The aliases that forward to a destination; `reachable`: to another one, too, that is confirmed. */
export function findAliasesOf(tx: Query, orgId: string, destinationId: string) {
  return tx.query<{ id: string; reachable: boolean }>(
    `select a.id, exists (
              select 1 from masked_alias_destination o
                join masked_destination d on d.org_id = o.org_id and d.id = o.destination_id and d.status = 'verified'
               where o.org_id = a.org_id and o.alias_id = a.id and o.destination_id <> $2) as reachable
       from masked_alias_destination ad
       join masked_alias a on a.org_id = ad.org_id and a.id = ad.alias_id and a.deleted_at is null
      where ad.org_id = $1 and ad.destination_id = $2 order by a.id`,
    [orgId, destinationId],
  );
}

/** Switches aliases off whose every mailbox bounces; an owner's own switch stays as it is. */
export function disableAliases(tx: Tx, orgId: string, ids: readonly string[], change: { reason: string; at: Date }) {
  return tx.execute(
    `update masked_alias set active = false, disabled_reason = $3, updated_at = $4
      where org_id = $1 and id = any($2) and active`,
    [orgId, ids, change.reason, change.at],
  );
}

/** Switches aliases of a destination on again that were switched off for that reason. */
export function enableAliases(tx: Tx, orgId: string, destinationId: string, change: { reason: string; at: Date }) {
  return tx.execute(
    `update masked_alias a set active = true, disabled_reason = null, updated_at = $4
       from masked_alias_destination ad
      where a.org_id = $1 and ad.org_id = $1 and ad.alias_id = a.id and ad.destination_id = $2
        and not a.active and a.disabled_reason = $3`,
    [orgId, destinationId, change.reason, change.at],
  );
}

// --- forgetting by the clock ------------------------------------------------------------------------------------------------

/** Windows of all organizations that are over. Index: masked_window_age. */
export function purgeWindows(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from masked_window where (org_id, alias_id, kind, starts_at) in (
       select org_id, alias_id, kind, starts_at from masked_window where starts_at < $1 order by starts_at limit $2)`,
    [before, limit],
  );
}

/** Days of confirmation mails that are over. Index: masked_confirmation_day_age. */
export function purgeConfirmationDays(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from masked_confirmation_day where (digest, day) in (
       select digest, day from masked_confirmation_day where day < $1::timestamptz::date order by day limit $2)`,
    [before, limit],
  );
}

/** Message-IDs of all organizations that nobody answers any more. Index: masked_message_id_age. */
export function purgeMessageIds(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from masked_message_id where (org_id, alias_id, digest) in (
       select org_id, alias_id, digest from masked_message_id where created_at < $1 order by created_at limit $2)`,
    [before, limit],
  );
}

/** What contacts sent that nobody answers any more, of all organizations. Index: masked_sent_age. */
export function purgeSent(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from masked_sent where (org_id, contact_id, digest) in (
       select org_id, contact_id, digest from masked_sent where created_at < $1 order by created_at limit $2)`,
    [before, limit],
  );
}

/** Aliases of all organizations that were deleted so long ago that they cannot come back. Index: masked_alias_deleted. */
export function purgeAliases(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from masked_alias where (org_id, id) in (
       select org_id, id from masked_alias where deleted_at < $1 order by deleted_at limit $2)`,
    [before, limit],
  );
}

/**
 * Destinations of all organizations that were asked last before `before`, never confirmed, and belong to no alias. Reads the
 * table: once a day.
 */
export function purgeUnconfirmed(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from masked_destination where (org_id, id) in (
       select org_id, id from masked_destination d
        where status = 'pending' and coalesce(confirmation_sent_at, created_at) < $1
          and not exists (select 1 from masked_alias_destination ad where ad.org_id = d.org_id and ad.destination_id = d.id)
        limit $2 for update skip locked)`,
    [before, limit],
  );
}
