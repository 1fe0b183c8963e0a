// SQL on masked_settings.
import type { Query, Tx } from "../platform/database/db.ts";

export const LIMITS = [
  "replies_person_hour",
  "replies_person_day",
  "replies_hour",
  "replies_day",
  "aliases_hour",
  "aliases_day",
  "pattern_aliases",
] as const;
export const FORGED_MAIL = ["quarantine", "warn"] as const;
export const MARK_UNPROVEN = ["asked", "always"] as const;
export type MaskedLimits = Record<(typeof LIMITS)[number], number>;
/** `arc_sealers` is null in the row of an organization that set none. */
export type MaskedSettings<S = string[]> = MaskedLimits & {
  forged_mail: (typeof FORGED_MAIL)[number];
  mark_unproven: (typeof MARK_UNPROVEN)[number];
  arc_sealers: S;
};
export type Row = MaskedSettings<string[] | null> & { updated_at: Date };

const NAMES = [...LIMITS, "forged_mail", "mark_unproven", "arc_sealers", "updated_at"] as const;
const COLUMNS = NAMES.join(", ");

/** Index: masked_settings_pkey. */
export function findSettings(tx: Query, orgId: string) {
  return tx.query<Row>(`select ${COLUMNS} from masked_settings where org_id = $1`, [orgId]);
}

/** The same with its row locked; where there is none yet, the organization's first change wins. */
export function lockSettings(tx: Tx, orgId: string) {
  return tx.query<Row>(`select ${COLUMNS} from masked_settings where org_id = $1 for update`, [orgId]);
}

export function putSettings(tx: Tx, orgId: string, row: Row) {
  return tx.execute(
    `insert into masked_settings (org_id, ${COLUMNS}) values ($1, ${NAMES.map((_, at) => `$${at + 2}`).join(", ")})
     on conflict (org_id) do update set ${NAMES.map((name) => `${name} = excluded.${name}`).join(", ")}`,
    [orgId, ...NAMES.map((name) => row[name])],
  );
}
