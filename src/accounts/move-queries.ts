// All SQL on organization_move and organization_move_seen, and on the state of an organization that moves to another cell. Not here: what
// the move is (src/moving/).
import type { Query, Tx } from "../platform/database/db.ts";
import type { OrganizationRow } from "./types.ts";

export type Move = {
  org_id: string;
  state_before: Exclude<OrganizationRow["state"], "moving">;
  began_at: Date;
  /** When the file was written whole; null before. */
  exported_at: Date | null;
  /** Sent and received ones that are in the file. */
  exported_mails: number | null;
};

export type Moving = Pick<Move, "org_id" | "began_at"> & { is_seen: boolean };

/** Those that move; `is_seen`: this process has said that it does nothing more for it. */
export function findMoving(db: Query, process: string) {
  return db.query<Moving>(
    `select m.org_id, m.began_at, s.process is not null as is_seen
       from organization_move m left join organization_move_seen s on s.org_id = m.org_id and s.process = $1`,
    [process],
  );
}

export function findMove(db: Query, orgId: string) {
  return db.query<Move>(
    "select org_id, state_before, began_at, exported_at, exported_mails from organization_move where org_id = $1",
    [orgId],
  );
}

/** From here on it moves; nothing where there is no such organization. */
export async function beginMove(tx: Tx, orgId: string, at: Date): Promise<void> {
  const [row] = await tx.query<Pick<OrganizationRow, "state">>(
    "select state from organization where id = $1 for update",
    [orgId],
  );
  if (!row) return;
  await tx.execute("update organization set state = 'moving' where id = $1", [orgId]);
  await tx.execute("insert into organization_move (org_id, state_before, began_at) values ($1, $2, $3)", [
    ...[orgId, row.state, at],
  ]);
}

export async function endMove(tx: Tx, { org_id, state_before }: Pick<Move, "org_id" | "state_before">): Promise<void> {
  await tx.execute("delete from organization_move where org_id = $1", [org_id]);
  await tx.execute("update organization set state = $2 where id = $1", [org_id, state_before]);
}

export function noteExported(db: Query, orgId: string, { at, mails }: { at: Date; mails: number }) {
  return db.execute("update organization_move set exported_at = $2, exported_mails = $3 where org_id = $1", [
    ...[orgId, at, mails],
  ]);
}

/**
 * This process does nothing more for them. One whose move has ended meanwhile, or began again, is passed over. In this form, as Citus writes a plain
 * `insert … select … on conflict` wrongly for its servers.
 */
export function noteSeen(db: Query, moves: Moving[], process: string) {
  return db.execute(
    `with moving as (
       select m.org_id, $3::uuid from organization_move m
         join unnest($1::uuid[], $2::timestamptz[]) as k (org_id, began_at) on k.org_id = m.org_id and k.began_at = m.began_at)
     insert into organization_move_seen (org_id, process) select * from moving on conflict do nothing returning 1`,
    [moves.map(({ org_id }) => org_id), moves.map(({ began_at }) => began_at), process],
  );
}

/** Processes that do nothing more for it. */
export function findSeen(db: Query, orgId: string) {
  return db.query<{ process: string }>("select process from organization_move_seen where org_id = $1", [orgId]);
}

/** The organization itself, when nothing refers to it any more but its move. */
export async function deleteMoved(tx: Query, orgId: string): Promise<void> {
  await tx.execute("delete from organization_move_seen where org_id = $1", [orgId]);
  await tx.execute("delete from organization_move where org_id = $1", [orgId]);
  await tx.execute("delete from organization where id = $1", [orgId]);
}
