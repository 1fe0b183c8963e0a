// SQL of mail that may not leave before tomorrow: finding it, and saying so of its recipients. It stays due in its lane.
import type { Query, Tx } from "../../platform/database/db.ts";
import type { ClaimedRow } from "../queries.ts";

export type WaitingRow = Omit<ClaimedRow, "owner"> & { due_at: Date };
export type Untold = { id: number; since: Date; k: number };

/** Up to `k` due rows of each lane, later ones than `since`, of which nothing was said since `day` began. Index: delivery_claim. */
export function findUntold(db: Query, lanes: Untold[], { now, day }: { now: Date; day: Date }) {
  return db.query<WaitingRow>(
    `select c.*
       from unnest($1::bigint[], $2::timestamptz[], $3::int[]) as l (id, since, k)
       cross join lateral (
         select org_id, message_id, position, lane_id, email, attempts, created_at, expires_at, deferred_event_at,
                absent_since, return_path_host, charged_at, due_at
           from delivery
          where lane_id = l.id and owner is null and due_at <= $4 and due_at > l.since
            and (deferred_event_at is null or deferred_event_at < $5)
          order by due_at limit l.k) c`,
    [lanes.map(({ id }) => id), lanes.map(({ since }) => since), lanes.map(({ k }) => k), now, day],
  );
}

type Reported = Pick<WaitingRow, "org_id" | "message_id" | "position"> & { next_attempt_at: Date | null };

/** Says of these recipients that they wait, and until when; what a server said stays said. Returns those that still wait. */
export function tellWaiting(tx: Tx, rows: Reported[], { now, day, why }: { now: Date; day: Date; why: string }) {
  return tx.query<{ message_id: string; position: number }>(
    `with noted as (
       update delivery d set deferred_event_at = $5
         from unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::timestamptz[]) as t (org_id, message_id, position, next)
        where d.org_id = t.org_id and d.message_id = t.message_id and d.position = t.position and d.owner is null
          and d.due_at <= $5 and (d.deferred_event_at is null or d.deferred_event_at < $6)
       returning d.org_id, d.message_id, d.position, t.next)
     update recipient r
        set status = 'deferred', next_attempt_at = t.next, bounce_class = coalesce(r.bounce_class, 'local'),
            diag_code = case when r.diag_message is null then '4.3.0' else r.diag_code end,
            diag_message = coalesce(r.diag_message, $7)
       from noted t
      where r.org_id = t.org_id and r.message_id = t.message_id and r.position = t.position
     returning r.message_id, r.position`,
    [
      rows.map((row) => row.org_id),
      rows.map((row) => row.message_id),
      rows.map((row) => row.position),
      rows.map((row) => row.next_attempt_at),
      now,
      day,
      why,
    ],
  );
}
