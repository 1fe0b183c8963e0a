// SQL on masked_pattern.
import type { Query, Tx } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { countUpToMax, type Total } from "../../platform/database/totals.ts";
import type { DestinationStatus, Environment } from "../types.ts";

export type PatternRow = {
  org_id: string;
  id: string;
  environment: Environment;
  destination_id: string;
  domain: string;
  local_pattern: string;
  aliases_hour: number;
  aliases_day: number;
  created_at: Date;
};

const COLUMNS = "org_id, id, environment, destination_id, domain, local_pattern, aliases_hour, aliases_day, created_at";

/** False when somebody of the organization has this pattern. */
export async function insertPattern(tx: Tx, orgId: string, row: Omit<PatternRow, "org_id">): Promise<boolean> {
  const touched = await tx.execute(
    `insert into masked_pattern (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict on constraint masked_pattern_text do nothing`,
    [
      orgId,
      row.id,
      row.environment,
      row.destination_id,
      row.domain,
      row.local_pattern,
      row.aliases_hour,
      row.aliases_day,
      row.created_at,
    ],
  );
  return touched === 1;
}

const COUNTED = `${COLUMNS}, (select count(*) from masked_alias a where a.org_id = p.org_id
    and a.environment = p.environment and a.pattern = p.local_pattern || '@' || p.domain and a.deleted_at is null) as aliases`;

export type CountedPattern = PatternRow & { aliases: number };

/** Index: masked_pattern_by_destination, masked_alias_by_pattern. */
export function listPatterns(tx: Tx, orgId: string, destinationId: string, page: Page) {
  return tx.query<CountedPattern>(
    `select ${COUNTED} from masked_pattern p where org_id = $1 and destination_id = $2 and id < $5
      order by id desc limit $3 offset $4`,
    [orgId, destinationId, page.limit, page.offset, page.below],
  );
}

/** All patterns of a mailbox: it has few. */
export function listPatternsOf(tx: Query, orgId: string, destinationId: string) {
  return tx.query<PatternRow>(
    `select ${COLUMNS} from masked_pattern where org_id = $1 and destination_id = $2 order by id desc`,
    [orgId, destinationId],
  );
}

export function countPatterns(tx: Tx, orgId: string, destinationId: string): Promise<Total> {
  return countUpToMax(tx, "masked_pattern where org_id = $1 and destination_id = $2", [orgId, destinationId]);
}

/** Index: masked_pattern_text. */
export async function countOfDomain(tx: Tx, orgId: string, environment: Environment, domain: string): Promise<number> {
  const [row] = await tx.query<{ total: number }>(
    "select count(*) as total from masked_pattern where org_id = $1 and environment = $2 and domain = $3",
    [orgId, environment, domain],
  );
  return row?.total ?? 0;
}

export function deletePattern(tx: Tx, orgId: string, key: { destination_id: string; id: string }) {
  return tx.execute("delete from masked_pattern where org_id = $1 and destination_id = $2 and id = $3", [
    orgId,
    key.destination_id,
    key.id,
  ]);
}

export type PatternOfDomain = PatternRow & { sealed: Buffer; status: DestinationStatus };
export type DomainKey = { org_id: string; environment: Environment; domain: string };

/** The patterns of domains of any organizations, with their mailboxes. Index: masked_pattern_text. */
export function findPatternsOfDomains(db: Query, keys: readonly DomainKey[]) {
  return db.query<PatternOfDomain>(
    `select p.*, d.sealed, d.status
       from unnest($1::uuid[], $2::text[], $3::text[]) as k (org_id, environment, domain)
       join masked_pattern p on p.org_id = k.org_id and p.environment = k.environment and p.domain = k.domain
       join masked_destination d on d.org_id = p.org_id and d.id = p.destination_id`,
    [keys.map(({ org_id }) => org_id), keys.map(({ environment }) => environment), keys.map(({ domain }) => domain)],
  );
}

/** A pattern with its mailbox, both held until the end of the transaction. */
export function holdPattern(tx: Tx, orgId: string, id: string) {
  return tx.query<PatternRow>(
    `select ${COLUMNS.split(", ")
      .map((name) => `p.${name}`)
      .join(", ")}
       from masked_pattern p join masked_destination d on d.org_id = p.org_id and d.id = p.destination_id
      where p.org_id = $1 and p.id = $2 for share`,
    [orgId, id],
  );
}

/** Aliases that patterns made for a mailbox, deleted ones not counted. Index: masked_alias_destination_back. */
export async function countMade(tx: Tx, orgId: string, destinationId: string): Promise<number> {
  const [row] = await tx.query<{ total: number }>(
    `select count(*) as total from masked_alias_destination ad
       join masked_alias a on a.org_id = ad.org_id and a.id = ad.alias_id and a.pattern is not null and a.deleted_at is null
      where ad.org_id = $1 and ad.destination_id = $2`,
    [orgId, destinationId],
  );
  return row?.total ?? 0;
}
