// SQL of outcomes: what an attempt came to, in its place in the queue, its recipient and its e-mail.
import type { Query, Tx } from "../../platform/database/db.ts";
import { OWNED_AS } from "../queries.ts";

const OPEN = "('queued', 'deferred', 'scheduled')";

/** Messages with several recipients are finished one batch at a time, so that their fold sees all recipients. */
export function lockMessages(tx: Tx, keys: { org_id: string; message_id: string }[]) {
  return tx.query(
    `select 1 from message m join unnest($1::uuid[], $2::uuid[]) as k (org_id, id) on m.org_id = k.org_id and m.id = k.id
      order by m.id for update of m`,
    [keys.map((key) => key.org_id), keys.map((key) => key.message_id)],
  );
}

export type FinishRow = {
  /** Under which node id the delivery was taken: the fence. A process that was declared dead has another one since. */
  owner: number;
  /**
   * The attempts that it had when it was taken: the fence against a commit that is repeated because its answer was lost, when
   * the same node has taken the delivery again meanwhile. Where `attempts` is no more, none was made.
   */
  had_attempts: number;
  org_id: string;
  message_id: string;
  position: number;
  final: boolean;
  status: string;
  attempts: number;
  next_attempt_at: Date | null;
  delivered_at: Date | null;
  bounce_type: string | null;
  bounce_code: string | null;
  diag_code: string | null;
  diag_message: string | null;
  bounce_class: string | null;
  isp: string | null;
  deferred_event_at: Date | null;
  absent_since: Date | null;
};

export type Finished = Pick<FinishRow, "message_id" | "position" | "bounce_code" | "diag_code" | "diag_message">;

/** As finishDeliveries takes them. */
const FINISHED = [
  "owner",
  "org_id",
  "message_id",
  "position",
  "final",
  "status",
  "attempts",
  "next_attempt_at",
  "delivered_at",
  "bounce_type",
  "bounce_code",
  "diag_code",
  "diag_message",
  "bounce_class",
  "isp",
  "deferred_event_at",
  "absent_since",
  "had_attempts",
] as const;

/**
 * Writes the outcomes: final ones leave the queue, others wait for their next attempt; recipients take the state, and so do
 * e-mails that have one recipient (of others: foldMessages). Each is
 * one attempt, or none (out of time, suppressed): a delivery that is sent again by hand counts from one (back-off,
 * statistics), its recipient goes on. Returns the rows that still belonged to the owner they were taken under, with what is
 * said of each now.
 */
export function finishDeliveries(tx: Tx, rows: FinishRow[], now: Date) {
  return tx.query<Finished>(
    `with r as (
       select * from unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::smallint[], $5::bool[], $6::text[], $7::smallint[],
         $8::timestamptz[], $9::timestamptz[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[],
         $15::text[], $16::timestamptz[], $17::timestamptz[], $18::smallint[]) as r (${FINISHED.join(", ")})),
     gone as (
       delete from delivery d using r
        where r.final and d.org_id = r.org_id and d.message_id = r.message_id and d.position = r.position
          and ${OWNED_AS} = r.owner and d.attempts = r.had_attempts
       returning r.*),
     again as (
       update delivery d set owner = null, attempts = r.attempts, due_at = r.next_attempt_at,
              deferred_event_at = r.deferred_event_at, absent_since = r.absent_since
         from r
        where not r.final and d.org_id = r.org_id and d.message_id = r.message_id and d.position = r.position
          and ${OWNED_AS} = r.owner and d.attempts = r.had_attempts
       returning r.*, d.lane_id, d.due_at),
     sleepers as (
       update lane l set next_at = a.due_at
         from (select lane_id, min(due_at) as due_at from again group by lane_id order by lane_id) a
        where l.id = a.lane_id and l.next_at > a.due_at),
     mine as (select * from gone union all select ${FINISHED.join(", ")} from again),
     alone as (
       update message m
          set status = fold_status(array[r.status]), completed_at = case when r.status in ${OPEN} then null else $19::timestamptz end
         from mine r
        where m.org_id = r.org_id and m.id = r.message_id and m.recipient_count = 1)
     update recipient x
        set status = r.status, attempts = x.attempts + r.attempts - r.had_attempts, next_attempt_at = r.next_attempt_at,
            delivered_at = r.delivered_at, bounce_type = r.bounce_type, bounce_class = r.bounce_class,
            bounce_code = ${said("bounce_code")}, diag_code = ${said("diag_code")},
            diag_message = ${said("diag_message")}, isp = ${said("isp")}
       from mine r
      where x.org_id = r.org_id and x.message_id = r.message_id and x.position = r.position
      returning x.message_id, x.position, x.bounce_code, x.diag_code, x.diag_message`,
    [...columnsOf(rows), now],
  );
}

/** Where no attempt was made, what was said at the last one stays; but not where it failed for another reason, which is ours. */
function said(column: string): string {
  const stays = "r.attempts = r.had_attempts and r.status <> 'failed' and x.diag_message is not null";
  return `case when ${stays} then x.${column} else r.${column} end`;
}

function columnsOf(rows: FinishRow[]): unknown[] {
  return FINISHED.map((name) => rows.map((row) => row[name]));
}

/** The status of e-mails with several recipients from these; `completed_at` once none is open. */
export function foldMessages(tx: Query, keys: { org_id: string; message_id: string }[], now: Date) {
  return tx.execute(
    `update message m
        set status = f.status, completed_at = case when f.open then null else $3::timestamptz end
       from (select k.org_id, k.id, fold_status(array_agg(r.status)) as status,
                    bool_or(r.status in ${OPEN}) as open
               from (select distinct org_id, id from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)) k
               join recipient r on r.org_id = k.org_id and r.message_id = k.id
              group by k.org_id, k.id order by k.id) f
      where m.org_id = f.org_id and m.id = f.id`,
    [keys.map((key) => key.org_id), keys.map((key) => key.message_id), now],
  );
}
