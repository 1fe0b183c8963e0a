// SQL on node and lease. Lease times are the database's own clock (reliability rule 4), never a process's.
import type { Query, Tx } from "../../platform/database/db.ts";

export function registerNode(db: Query, machine: string, pid: number, roles: string[]) {
  return db.query<{ id: number }>("insert into node (machine, pid, roles) values ($1, $2, $3) returning id", [
    machine,
    pid,
    roles,
  ]);
}

/** Says "alive"; zero rows means: declared dead, stop and register again. */
export function heartbeat(db: Query, node: number) {
  return db.execute("update node set seen_at = statement_timestamp() where id = $1", [node]);
}

/** One node at a time moves leases. */
export function lockLeases(tx: Tx) {
  return tx.query("select pg_advisory_xact_lock(1886352238)");
}

/**
 * Declares dead the nodes silent for `seconds`, and the named ones at once. While the database itself was away no node could report:
 * silence counts only once it has been up for as long.
 */
export function declareNodesDead(tx: Tx, seconds: number, ids: number[]) {
  return tx.query<{ id: number; machine: string }>(
    `delete from node
      where (greatest(seen_at, pg_postmaster_start_time()) < statement_timestamp() - $1 * interval '1 second')
         or id = any($2::bigint[])
      returning id, machine`,
    [seconds, ids],
  );
}

/** Frees what belongs to nodes that are no more, and wakes its lanes. Index: delivery_owned. */
export function freeOrphans(tx: Tx) {
  return tx.execute(
    `with freed as (
       update delivery set owner = null where owner is not null and owner not in (select id from node)
       returning lane_id, due_at)
     update lane l set next_at = f.due_at
       from (select lane_id, min(due_at) as due_at from freed group by lane_id order by lane_id) f
      where l.id = f.lane_id and l.next_at > f.due_at`,
  );
}

export function freeLeases(tx: Tx) {
  return tx.execute(
    "update lease set node_id = null where node_id is not null and node_id not in (select id from node)",
  );
}

export type NodeRow = { machine: string; pid: number; roles: string[]; started_at: Date; seen_at: Date };

/** The processes that send, with what each last wrote of itself; a machine by its name alone, without boot and process-id space. */
export function listNodes(db: Query) {
  return db.query<NodeRow>(
    "select split_part(machine, '/', 1) as machine, pid, roles, started_at, seen_at from node order by machine, id",
  );
}

export function sendingNodes(tx: Query) {
  return tx.query<{ id: number; machine: string; pid: number }>(
    "select id, machine, pid from node where 'mta' = any(roles) order by id",
  );
}

export function allLeases(tx: Query) {
  return tx.query<{ source_id: string; slot: number; node_id: number | null }>(
    "select source_id, slot, node_id from lease order by source_id, slot",
  );
}

export function setLeases(tx: Query, node: number | null, slots: { source_id: string; slot: number }[]) {
  return tx.execute(
    `update lease l set node_id = $1 from unnest($2::uuid[], $3::smallint[]) as s (source_id, slot)
      where l.source_id = s.source_id and l.slot = s.slot`,
    [node, slots.map((s) => s.source_id), slots.map((s) => s.slot)],
  );
}

/** Leaves in good order: deliveries free, leases free, row gone. */
export function leaveNode(tx: Tx, node: number) {
  return tx.execute("delete from node where id = $1", [node]);
}
