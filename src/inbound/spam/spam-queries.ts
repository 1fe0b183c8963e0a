// All SQL on the spam settings of domains.
import type { DmarcAction } from "../../mail/spam/verdict.ts";
import type { Query, Tx } from "../../platform/database/db.ts";

export const ENGINES = ["builtin", "rspamd"] as const;
export type Engine = (typeof ENGINES)[number];

export const ON_ERROR = ["accept", "defer"] as const;
export type OnError = (typeof ON_ERROR)[number];

export type SpamRow = {
  org_id: string;
  domain_id: string;
  enabled: boolean;
  /** Null: the server's. */
  engine: Engine | null;
  tag_from: number | null;
  quarantine_from: number | null;
  reject_from: number | null;
  on_error: OnError;
  dmarc_reject: DmarcAction;
  dmarc_quarantine: DmarcAction;
  allow: string[];
  block: string[];
  updated_at: Date;
};

const COLUMNS = `org_id, domain_id, enabled, engine, tag_from, quarantine_from, reject_from, on_error, dmarc_reject,
  dmarc_quarantine, allow, block, updated_at`;

/** Index: primary key. */
export function findSettings(db: Query, orgId: string, domainId: string) {
  return db.query<SpamRow>(`select ${COLUMNS} from domain_spam where org_id = $1 and domain_id = $2`, [
    orgId,
    domainId,
  ]);
}

export function putSettings(tx: Tx, orgId: string, row: Omit<SpamRow, "org_id">) {
  return tx.execute(
    `insert into domain_spam (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
     on conflict (org_id, domain_id) do update set enabled = $3, engine = $4, tag_from = $5, quarantine_from = $6,
       reject_from = $7, on_error = $8, dmarc_reject = $9, dmarc_quarantine = $10, allow = $11, block = $12,
       updated_at = $13`,
    [
      orgId,
      row.domain_id,
      row.enabled,
      row.engine,
      row.tag_from,
      row.quarantine_from,
      row.reject_from,
      row.on_error,
      row.dmarc_reject,
      row.dmarc_quarantine,
      row.allow,
      row.block,
      row.updated_at,
    ],
  );
}

/** For incoming mail, many domains per round trip. Index: primary key. */
export function loadSettings(db: Query, keys: readonly { org_id: string; domain_id: string }[]) {
  return db.query<SpamRow>(
    `select ${COLUMNS} from unnest($1::uuid[], $2::uuid[]) as k (org_id, domain_id)
       join domain_spam using (org_id, domain_id)`,
    [keys.map(({ org_id }) => org_id), keys.map(({ domain_id }) => domain_id)],
  );
}
