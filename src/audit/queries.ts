// All SQL on the audit log.

import type { Query, Tx } from "../platform/database/db.ts";
import { FIRST_ID, LAST_ID, type Page } from "../platform/database/page.ts";
import { countUpToMax, type Total } from "../platform/database/totals.ts";
import { uuidFloor } from "../platform/random.ts";
import type { Change } from "./changes.ts";

export type AuditEntry = {
  id: string;
  at: Date;
  actor: "key" | "person" | "command";
  key_id: string | null;
  person_id: string | null;
  name: string;
  ip: string | null;
  operation: string;
  target: Record<string, string>;
  fields: string[];
  changes: Change[];
  request_id: string | null;
};

const COLUMNS = "id, at, actor, key_id, person_id, name, ip, operation, target, fields, changes, request_id";

export function insertEntry(tx: Tx, orgId: string, entry: AuditEntry) {
  return tx.execute(
    `insert into audit_entry (org_id, ${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
    [
      ...[orgId, entry.id, entry.at, entry.actor, entry.key_id, entry.person_id, entry.name],
      ...[entry.ip, entry.operation, JSON.stringify(entry.target), entry.fields, JSON.stringify(entry.changes)],
      entry.request_id,
    ],
  );
}

/** One entry in the logs of several organizations, each with an id of its own. */
export function insertEntryInAll(
  db: Query,
  owners: readonly { org_id: string; id: string }[],
  entry: Omit<AuditEntry, "id">,
) {
  return db.execute(
    `insert into audit_entry (org_id, ${COLUMNS})
     select k.org_id, k.id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
       from unnest($1::uuid[], $2::uuid[]) as k (org_id, id) on conflict (org_id, id) do nothing`,
    [
      ...[owners.map(({ org_id }) => org_id), owners.map(({ id }) => id), entry.at, entry.actor, entry.key_id],
      ...[entry.person_id, entry.name, entry.ip, entry.operation, JSON.stringify(entry.target), entry.fields],
      ...[JSON.stringify(entry.changes), entry.request_id],
    ],
  );
}

export type AuditFilter = { operation?: string; key_id?: string; from?: Date; to?: Date };

const DAY_MS = 86_400_000;
const FILTER = `org_id = $1 and ($2::text is null or operation = $2) and ($3::uuid is null or key_id = $3)
  and at >= $4 and at < $5 and id >= $6 and id < $7`;

/** Newest first. Index: audit_entry_pkey. */
export function listEntries(tx: Tx, orgId: string, filter: AuditFilter, page: Page) {
  return tx.query<AuditEntry>(
    `select ${COLUMNS} from audit_entry where ${FILTER} and id < $10 order by id desc limit $8 offset $9`,
    [...values(orgId, filter), page.limit, page.offset, page.below],
  );
}

export function countEntries(tx: Tx, orgId: string, filter: AuditFilter): Promise<Total> {
  return countUpToMax(tx, `audit_entry where ${FILTER}`, values(orgId, filter));
}

/** What a person with this address did. */
export async function countNamed(tx: Tx, orgId: string, email: string): Promise<number> {
  const rows = await tx.query<{ n: number }>(
    "select count(*) as n from audit_entry where org_id = $1 and actor = 'person' and lower(name) = lower($2)",
    [orgId, email],
  );
  return rows[0]?.n ?? 0;
}

/** An id is made within moments of the time: a day further it bounds what is read. */
function values(orgId: string, { operation, key_id, from, to }: AuditFilter): unknown[] {
  const times = [from ?? "-infinity", to ?? "infinity"];
  const ids = [from ? uuidFloor(from.getTime() - DAY_MS) : FIRST_ID, to ? uuidFloor(to.getTime() + DAY_MS) : LAST_ID];
  return [orgId, operation ?? null, key_id ?? null, ...times, ...ids];
}

/** Index: audit_entry_age. */
export function purgeEntries(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from audit_entry where (org_id, id) in (
       select org_id, id from audit_entry where at < $1 order by at limit $2 for update skip locked)`,
    [before, limit],
  );
}
