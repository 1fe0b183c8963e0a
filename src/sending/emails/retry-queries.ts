// SQL that only sending again by hand needs.
import type { Query, Tx } from "../../platform/database/db.ts";
import { insertSuppressed } from "../../stats/stats.ts";

export type Placement = { class: number; ip_pool: string | null; origin: string; unsubscribe_list: string | null };

/** Which way the message went the first time, and whose it is. */
export function findPlacement(tx: Query, orgId: string, id: string) {
  return tx.query<Placement>(
    "select class, ip_pool, origin, unsubscribe_list from message where org_id = $1 and id = $2",
    [orgId, id],
  );
}

export type NewDelivery = {
  position: number;
  lane_id: number;
  email: string;
  due_at: Date;
  expires_at: Date;
  return_path_host: string;
};

/** Fails (isLaneGone) where a lane is not there any more. */
export function insertDeliveries(tx: Tx, orgId: string, id: string, { rows, now }: { rows: NewDelivery[]; now: Date }) {
  return tx.execute(
    `with known as (
       select $1::uuid, $2::uuid, u.position, (select id from lane where id = u.lane_id and retired_xid is null), u.email, u.due_at,
              $3::timestamptz, $3::timestamptz, u.expires_at, u.return_path_host
         from unnest($4::smallint[], $5::bigint[], $6::text[], $7::timestamptz[], $8::timestamptz[], $9::text[])
           as u (position, lane_id, email, due_at, expires_at, return_path_host)),
     d as (
       insert into delivery (org_id, message_id, position, lane_id, email, due_at, created_at, charged_at, expires_at, return_path_host)
       select * from known returning lane_id, due_at)
     update lane set next_at = w.due_at
       from (select lane_id, min(due_at) as due_at from d group by lane_id order by lane_id) w
      where lane.id = w.lane_id and lane.next_at > w.due_at`,
    [
      orgId,
      id,
      now,
      rows.map((row) => row.position),
      rows.map((row) => row.lane_id),
      rows.map((row) => row.email),
      rows.map((row) => row.due_at),
      rows.map((row) => row.expires_at),
      rows.map((row) => row.return_path_host),
    ],
  );
}

type Window = { scope_id: string; kind: string; starts_at: Date; ceiling: number };

/** Counts so many recipients in each window, in the order of accept.ts; beyond a ceiling: allowance_not_exceeded. */
export function raiseAllowances(tx: Tx, orgId: string, { windows, count }: { windows: Window[]; count: number }) {
  const nameOf = ({ scope_id, kind, starts_at }: Window): string => `${scope_id}/${kind}/${starts_at.getTime()}`;
  const sorted = windows.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  return tx.execute(
    `insert into allowance as a (org_id, scope_id, kind, starts_at, used, ceiling)
     select $1, u.scope_id, u.kind, u.starts_at, $2, u.ceiling
       from unnest($3::uuid[], $4::text[], $5::timestamptz[], $6::bigint[]) as u (scope_id, kind, starts_at, ceiling)
     on conflict (org_id, scope_id, kind, starts_at)
     do update set used = a.used + excluded.used, ceiling = excluded.ceiling`,
    [
      orgId,
      count,
      sorted.map((window) => window.scope_id),
      sorted.map((window) => window.kind),
      sorted.map((window) => window.starts_at),
      sorted.map((window) => window.ceiling),
    ],
  );
}

const COUNT_SUPPRESSED = insertSuppressed(
  "select $1::uuid as org_id, $2::uuid as domain_id, $3::timestamptz as at, $4::bigint as recipients",
);

export function countSuppressed(tx: Tx, row: { org_id: string; domain_id: string; at: Date; recipients: number }) {
  return tx.execute(COUNT_SUPPRESSED, [row.org_id, row.domain_id, row.at, row.recipients]);
}
