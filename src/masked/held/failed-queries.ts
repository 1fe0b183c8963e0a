// SQL on masked_held: mail that failed for good and waits to be sent again.
import type { Query, Tx } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { countUpToMax, type Total } from "../../platform/database/totals.ts";
import type { Environment } from "../types.ts";
import { ALIAS_IS_THERE, type HeldRow } from "./held-queries.ts";

export const FAILED_KINDS = ["forward", "reply"] as const;
export type FailedKind = (typeof FAILED_KINDS)[number];

/** `owner_id`: the mailbox that wrote the reply, or that the forward was for. */
export type FailedRow = HeldRow & { kind: FailedKind; reason: string; size: number };

const COLUMNS =
  "org_id, id, alias_id, contact_id, owner_id, environment, message_id, created_at, kind, reason, size, cleared";

export function insertFailed(tx: Tx, orgId: string, row: FailedRow) {
  return tx.execute(
    `insert into masked_held (${COLUMNS}, sealed, blob_key)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
    [
      orgId,
      row.id,
      row.alias_id,
      row.contact_id,
      row.owner_id,
      row.environment,
      row.message_id,
      row.created_at,
      row.kind,
      row.reason,
      row.size,
      row.cleared,
      row.sealed,
      row.blob_key,
    ],
  );
}

/** One that is not over, of an alias that is not deleted; null for none. */
export async function findFailed(tx: Query, orgId: string, id: string, since: Date): Promise<FailedRow | null> {
  const [row] = await tx.query<FailedRow>(
    `select ${COLUMNS}, sealed, blob_key from masked_held h
      where org_id = $1 and id = $2 and kind <> 'leak' and created_at > $3 and ${ALIAS_IS_THERE}`,
    [orgId, id, since],
  );
  return row ?? null;
}

/** Index: masked_held_by_alias. */
export async function countFailedOfAlias(tx: Query, orgId: string, aliasId: string): Promise<number> {
  const [row] = await tx.query<{ total: number }>(
    "select count(*)::int as total from masked_held where org_id = $1 and alias_id = $2 and kind <> 'leak'",
    [orgId, aliasId],
  );
  return row?.total ?? 0;
}

export type FailedFilter = {
  environment: Environment;
  since: Date;
  alias_id?: string | undefined;
  kind?: FailedKind | undefined;
};

export type ListedFailed = Omit<FailedRow, "sealed" | "blob_key" | "cleared"> & {
  alias: string;
  contact_sealed: Buffer | null;
  destination_sealed: Buffer | null;
};

const FILTER = `h.org_id = $1 and h.kind <> 'leak' and h.environment = $2 and h.created_at > $3
  and ($4::uuid is null or h.alias_id = $4) and ($5::text is null or h.kind = $5) and ${ALIAS_IS_THERE}`;

function filterValues(orgId: string, { environment, since, alias_id, kind }: FailedFilter): unknown[] {
  return [orgId, environment, since, alias_id ?? null, kind ?? null];
}

/** The newest first. Index: masked_held_failed. */
export function listFailed(tx: Tx, orgId: string, filter: FailedFilter, page: Page) {
  return tx.query<ListedFailed>(
    `select h.org_id, h.id, h.alias_id, h.contact_id, h.owner_id, h.environment, h.message_id, h.created_at, h.kind, h.reason,
            h.size, a.local_part || '@' || a.domain as alias, c.sealed as contact_sealed, d.sealed as destination_sealed
       from masked_held h
       join masked_alias a on a.org_id = h.org_id and a.id = h.alias_id
       left join masked_contact c on c.org_id = h.org_id and c.id = h.contact_id
       left join masked_destination d on d.org_id = h.org_id and d.id = h.owner_id
      where ${FILTER} and h.id < $8 order by h.id desc limit $6 offset $7`,
    [...filterValues(orgId, filter), page.limit, page.offset, page.below],
  );
}

export function countFailed(tx: Tx, orgId: string, filter: FailedFilter): Promise<Total> {
  return countUpToMax(tx, `masked_held h where ${FILTER}`, filterValues(orgId, filter));
}

/** Takes those of all organizations that are over, or whose alias or contact is gone. It reads the table, which is small. */
export function purgeFailed(db: Query, before: Date, limit: number) {
  return db.query<{ org_id: string; id: string; blob_key: string | null }>(
    `delete from masked_held where (org_id, id) in (
       select h.org_id, h.id from masked_held h
        where h.kind <> 'leak'
          and (h.created_at <= $1
               or not exists (select 1 from masked_contact c where c.org_id = h.org_id and c.id = h.contact_id)
               or not exists (select 1 from masked_alias a where a.org_id = h.org_id and a.id = h.alias_id))
        order by h.created_at limit $2)
     returning org_id, id, blob_key`,
    [before, limit],
  );
}
