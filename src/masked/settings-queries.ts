// SQL on masked_settings.
import type { Query, Tx } from "../platform/database/db.ts";

export const LIMITS = [
  "replies_person_hour",
  "replies_person_day",
  "replies_hour",
  "replies_day",
  "aliases_hour",
  "aliases_day",
] as const;
export type MaskedSettings = Record<(typeof LIMITS)[number], number>;
type Row = MaskedSettings & { updated_at: Date };

const COLUMNS = [...LIMITS, "updated_at"].join(", ");

/** Index: masked_settings_pkey. */
export function findSettings(tx: Query, orgId: string) {
  return tx.query<Row>(`select ${COLUMNS} from masked_settings where org_id = $1`, [orgId]);
}

/** The same with its row locked; where there is none yet, the organization's first change wins. */
export function lockSettings(tx: Tx, orgId: string) {
  return tx.query<Row>(`select ${COLUMNS} from masked_settings where org_id = $1 for update`, [orgId]);
}

export function putSettings(tx: Tx, orgId: string, row: Row) {
  const names = [...LIMITS, "updated_at"] as const;
  return tx.execute(
    `insert into masked_settings (org_id, ${COLUMNS}) values ($1, ${names.map((_, at) => `$${at + 2}`).join(", ")})
     on conflict (org_id) do update set ${names.map((name) => `${name} = excluded.${name}`).join(", ")}`,
    [orgId, ...names.map((name) => row[name])],
  );
}
