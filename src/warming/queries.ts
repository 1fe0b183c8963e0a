// All SQL on warming and warming_day. The windows themselves are sending's: its accepting statement raises them.
import type { Query, Tx } from "../platform/database/db.ts";
import { countUpToMax } from "../platform/database/totals.ts";
import type { DayRow, PhaseState, WarmingRow } from "./types.ts";

const COLUMNS = `org_id, domain_id, phase, warming_started_at, phase_started_at, paused_days, paused_at, paused_reason,
  held_reason, judged_from, decided_through, idle_days, next_look_at`;

/** Index: primary key. Batched over organizations: one look-up serves all sends of the moment. */
export function findStates(db: Query, pairs: { org_ids: string[]; domain_ids: string[] }) {
  return db.query<PhaseState & { org_id: string; domain_id: string }>(
    `select w.org_id, w.domain_id, w.phase, w.phase_started_at, w.paused_days, w.paused_at, w.paused_reason
       from unnest($1::uuid[], $2::uuid[]) as wanted (org_id, domain_id) join warming w using (org_id, domain_id)`,
    [pairs.org_ids, pairs.domain_ids],
  );
}

export function findWarming(tx: Query, orgId: string, domainId: string) {
  return tx.query<WarmingRow>(`select ${COLUMNS} from warming where org_id = $1 and domain_id = $2`, [orgId, domainId]);
}

export function lockWarming(tx: Tx, orgId: string, domainId: string) {
  return tx.query<WarmingRow>(`select ${COLUMNS} from warming where org_id = $1 and domain_id = $2 for update`, [
    orgId,
    domainId,
  ]);
}

function values(row: WarmingRow): unknown[] {
  return [
    row.org_id,
    row.domain_id,
    row.phase,
    row.warming_started_at,
    row.phase_started_at,
    row.paused_days,
    row.paused_at,
    row.paused_reason,
    row.held_reason,
    row.judged_from,
    row.decided_through,
    row.idle_days,
    row.next_look_at,
  ];
}

const INSERT = `insert into warming (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`;

/** Returns 0 when the domain had started already. */
export function insertWarming(tx: Tx, row: WarmingRow) {
  return tx.execute(`${INSERT} on conflict (org_id, domain_id) do nothing`, values(row));
}

/** Writes the whole row, whether it was there or not. */
export function saveWarming(tx: Tx, row: WarmingRow) {
  return tx.execute(
    `${INSERT} on conflict (org_id, domain_id) do update
        set phase = $3, warming_started_at = $4, phase_started_at = $5, paused_days = $6, paused_at = $7,
            paused_reason = $8, held_reason = $9, judged_from = $10, decided_through = $11, idle_days = $12,
            next_look_at = $13`,
    values(row),
  );
}

// History ----------------------------------------------------------------------------------------------------------

export function saveDay(tx: Tx, key: { org_id: string; domain_id: string }, day: DayRow) {
  return tx.execute(
    `insert into warming_day (org_id, domain_id, date, phase, daily_limit, sent, delivered, bounced, hard_bounced,
       complained, decision, reason)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     on conflict (org_id, domain_id, date) do update
        set phase = $4, daily_limit = $5, sent = $6, delivered = $7, bounced = $8, hard_bounced = $9, complained = $10,
            decision = $11, reason = $12`,
    [
      key.org_id,
      key.domain_id,
      day.date,
      day.phase,
      day.daily_limit,
      day.sent,
      day.delivered,
      day.bounced,
      day.hard_bounced,
      day.complained,
      day.decision,
      day.reason,
    ],
  );
}

export function listDays(tx: Tx, orgId: string, domainId: string, page: { limit: number; offset: number }) {
  return tx.query<DayRow>(
    `select date, phase, daily_limit, sent, delivered, bounced, hard_bounced, complained, decision, reason
       from warming_day where org_id = $1 and domain_id = $2 order by date desc limit $3 offset $4`,
    [orgId, domainId, page.limit, page.offset],
  );
}

export function countDays(tx: Tx, orgId: string, domainId: string) {
  return countUpToMax(tx, "warming_day where org_id = $1 and domain_id = $2", [orgId, domainId]);
}

// Background -------------------------------------------------------------------------------------------------------

/**
 * Takes due domains of all organizations and moves their next look to `lease_until`, so that no other process takes
 * them and a crash leaves them due again. Index: warming_due.
 */
export function claimDue(db: Query, due: { at: Date; lease_until: Date; limit: number }) {
  return db.query<{ org_id: string; domain_id: string }>(
    `update warming set next_look_at = $2
      where (org_id, domain_id) in (
        select org_id, domain_id from warming where next_look_at <= $1
         order by next_look_at limit $3 for update skip locked)
      returning org_id, domain_id`,
    [due.at, due.lease_until, due.limit],
  );
}

/** Index: warming_day_age. */
export function purgeDays(db: Query, before: Date) {
  return db.execute("delete from warming_day where date < ($1::timestamptz at time zone 'UTC')::date", [before]);
}
