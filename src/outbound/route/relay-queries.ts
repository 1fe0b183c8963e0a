// All SQL on relay and port_closed.
import type { Query, Tx } from "../../platform/database/db.ts";

export type RelayRow = {
  org_id: string;
  domain_id: string;
  host: string;
  port: number;
  username: string | null;
  password: Buffer | null;
  tls: "starttls" | "implicit" | "none";
  mode: "always" | "fallback";
  created_at: Date;
  updated_at: Date;
};

const COLUMNS = "org_id, domain_id, host, port, username, password, tls, mode, created_at, updated_at";

export function findRelay(tx: Tx, orgId: string, domainId: string) {
  return tx.query<RelayRow>(`select ${COLUMNS} from relay where org_id = $1 and domain_id = $2`, [orgId, domainId]);
}

/** Batched over organizations: for the engine and for placing mail. Index: primary key. */
export function findRelays(db: Query, keys: { org_id: string; domain_id: string }[]) {
  return db.query<RelayRow>(
    `select ${COLUMNS} from unnest($1::uuid[], $2::uuid[]) as wanted (org_id, domain_id)
       join relay using (org_id, domain_id)`,
    [keys.map((key) => key.org_id), keys.map((key) => key.domain_id)],
  );
}

export function storeRelay(tx: Tx, orgId: string, row: RelayRow) {
  return tx.query<RelayRow>(
    `insert into relay (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     on conflict (org_id, domain_id) do update
       set host = excluded.host, port = excluded.port, username = excluded.username, password = excluded.password,
           tls = excluded.tls, mode = excluded.mode, updated_at = excluded.updated_at
     returning ${COLUMNS}`,
    [
      orgId,
      row.domain_id,
      row.host,
      row.port,
      row.username,
      row.password,
      row.tls,
      row.mode,
      row.created_at,
      row.updated_at,
    ],
  );
}

export function deleteRelay(tx: Tx, orgId: string, domainId: string) {
  return tx.execute("delete from relay where org_id = $1 and domain_id = $2", [orgId, domainId]);
}

/** Mail that was parked for this relay is looked at again at `at`, if that is sooner. */
export function wakeRelayed(tx: Tx, orgId: string, domainId: string, at: Date) {
  return tx.execute(
    `update lane set paused_until = $3, next_at = $3, reason = null
      where org_id = $1 and relay_domain_id = $2 and paused_until > $3`,
    [orgId, domainId, at],
  );
}

// --- is port 25 closed? -----------------------------------------------------------------------------------------------

export function findClosed(db: Query, machine: string) {
  return db.query<{ since: Date; targets: string[] }>("select since, targets from port_closed where machine = $1", [
    machine,
  ]);
}

/** Also clears away what machines wrote that have not been seen for a day. */
export function noteClosed(db: Query, closed: { machine: string; at: Date; targets: string[] }) {
  return db.execute(
    `with gone as (delete from port_closed where seen_at < $2::timestamptz - interval '1 day' and machine <> $1)
     insert into port_closed (machine, since, seen_at, targets) values ($1, $2, $2, $3)
     on conflict (machine) do update set seen_at = excluded.seen_at`,
    [closed.machine, closed.at, closed.targets],
  );
}

export function noteOpen(db: Query, machine: string) {
  return db.execute("delete from port_closed where machine = $1", [machine]);
}

/** Whether no process that sends is on a machine with port 25 open. */
export function isClosedEverywhere(db: Query) {
  return db.query<{ closed: boolean }>(
    `select exists (select 1 from node where 'mta' = any(roles))
        and not exists (select 1 from node n where 'mta' = any(n.roles)
                           and not exists (select 1 from port_closed p where p.machine = n.machine)) as closed`,
  );
}
