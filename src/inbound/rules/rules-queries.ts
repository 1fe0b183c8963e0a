// All SQL on routing rules.
import type { AliasAction } from "../../aliases/types.ts";
import type { Query, Tx } from "../../platform/database/db.ts";
import { countUpToMax, type Total } from "../../platform/database/totals.ts";
import type { Tree } from "./conditions/types.ts";

export type RuleRecord = {
  id: string;
  org_id: string;
  domain_id: string;
  alias_id: string | null;
  name: string;
  priority: number;
  active: boolean;
  match: Tree;
  action: AliasAction;
  forward_to: string[];
  webhook_ids: string[];
  hits: number;
  last_hit_at: Date | null;
  created_at: Date;
  updated_at: Date;
};

export type RuleSettings = Pick<
  RuleRecord,
  "name" | "priority" | "active" | "match" | "action" | "forward_to" | "webhook_ids"
>;

const COLUMNS = `id, org_id, domain_id, alias_id, name, priority, active, match, action, forward_to, webhook_ids, hits,
  last_hit_at, created_at, updated_at`;
/** Rules of an alias before those of its domain, then by priority, then by age. */
const ORDER = "alias_id is null, priority, id";

export type NewRule = {
  id: string;
  domain_id: string;
  alias_id: string | null;
  environment: "live" | "test";
  created_at: Date;
};

export function insertRule(tx: Tx, orgId: string, rule: RuleSettings & NewRule) {
  return tx.execute(
    `insert into inbound_rule (org_id, id, domain_id, alias_id, name, priority, active, match, action, forward_to,
       webhook_ids, environment, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)`,
    [
      orgId,
      rule.id,
      rule.domain_id,
      rule.alias_id,
      rule.name,
      rule.priority,
      rule.active,
      JSON.stringify(rule.match),
      rule.action,
      rule.forward_to,
      rule.webhook_ids,
      rule.environment,
      rule.created_at,
    ],
  );
}

/** Serializes creations within a domain, so that the limit holds. */
export function lockDomainRules(tx: Tx, domainId: string) {
  return tx.query("select pg_advisory_xact_lock(hashtextextended('rule-create:' || $1, 0))", [domainId]);
}

/** The number of a domain's rules and the highest priority. Index: inbound_rule_in_order. */
export async function sumUpDomain(tx: Tx, orgId: string, domainId: string) {
  const [row] = await tx.query<{ total: number; last: number }>(
    `select count(*) as total, coalesce(max(priority), 0) as last from inbound_rule
      where org_id = $1 and domain_id = $2`,
    [orgId, domainId],
  );
  return row ?? { total: 0, last: 0 };
}

export type RuleFilter = {
  domain_id?: string | undefined;
  alias_id?: string | undefined;
  active?: boolean | undefined;
};

const FILTER = `org_id = $1 and ($2::uuid is null or domain_id = $2) and ($3::uuid is null or alias_id = $3)
  and ($4::boolean is null or active = $4)`;

export function listRules(tx: Tx, orgId: string, filter: RuleFilter, page: { limit: number; offset: number }) {
  return tx.query<RuleRecord>(
    `select ${COLUMNS} from inbound_rule where ${FILTER} order by domain_id, ${ORDER} limit $5 offset $6`,
    [...filterValues(orgId, filter), page.limit, page.offset],
  );
}

export function countRules(tx: Tx, orgId: string, filter: RuleFilter): Promise<Total> {
  return countUpToMax(tx, `inbound_rule where ${FILTER}`, filterValues(orgId, filter));
}

function filterValues(orgId: string, { domain_id, alias_id, active }: RuleFilter): unknown[] {
  return [orgId, domain_id ?? null, alias_id ?? null, active ?? null];
}

export function findRule(tx: Query, orgId: string, id: string) {
  return tx.query<RuleRecord>(`select ${COLUMNS} from inbound_rule where org_id = $1 and id = $2`, [orgId, id]);
}

export function findEnvironments(tx: Tx, orgId: string, ids: readonly string[]) {
  return tx.query<{ environment: "live" | "test" }>(
    "select environment from inbound_rule where org_id = $1 and id = any($2::uuid[])",
    [orgId, ids],
  );
}

/** Those of the rules that exist, locked in one order for all writers. */
export function lockRules(tx: Tx, orgId: string, ids: readonly string[]) {
  return tx.query<{ id: string; domain_id: string }>(
    "select id, domain_id from inbound_rule where org_id = $1 and id = any($2::uuid[]) order by id for update",
    [orgId, ids],
  );
}

export function updateRule(tx: Tx, orgId: string, id: string, change: RuleSettings & { at: Date }) {
  return tx.execute(
    `update inbound_rule set name = $3, priority = $4, active = $5, match = $6, action = $7, forward_to = $8,
       webhook_ids = $9, updated_at = $10, revision = revision + 1
      where org_id = $1 and id = $2`,
    [
      orgId,
      id,
      change.name,
      change.priority,
      change.active,
      JSON.stringify(change.match),
      change.action,
      change.forward_to,
      change.webhook_ids,
      change.at,
    ],
  );
}

/** Priorities `step`, 2 × `step`, … in the order of `ids`. */
export function reorderRules(tx: Tx, orgId: string, ids: readonly string[], { step, at }: { step: number; at: Date }) {
  return tx.execute(
    `update inbound_rule r set priority = k.position * $3::int, updated_at = $4, revision = r.revision + 1
       from unnest($2::uuid[]) with ordinality as k (id, position) where r.org_id = $1 and r.id = k.id`,
    [orgId, ids, step, at],
  );
}

export function deleteRule(tx: Tx, orgId: string, id: string) {
  return tx.execute("delete from inbound_rule where org_id = $1 and id = $2", [orgId, id]);
}

// --- for incoming mail -------------------------------------------------------------------------------------------------

export type RuleVersion = {
  org_id: string;
  domain_id: string;
  alias_id: string | null;
  id: string;
  revision: number;
  environment: "live" | "test";
};

/** The active rules of these domains, in the order they are asked. Index: inbound_rule_in_order. */
export function listVersions(db: Query, keys: readonly { org_id: string; domain_id: string }[]) {
  return db.query<RuleVersion>(
    `select r.org_id, r.domain_id, r.alias_id, r.id, r.revision, r.environment
       from unnest($1::uuid[], $2::uuid[]) as k (org_id, domain_id)
       join inbound_rule r on r.org_id = k.org_id and r.domain_id = k.domain_id
      where r.active order by r.alias_id is null, r.priority, r.id`,
    [keys.map(({ org_id }) => org_id), keys.map(({ domain_id }) => domain_id)],
  );
}

export function loadRules(db: Query, orgId: string, ids: readonly string[]) {
  return db.query<RuleRecord & { revision: number }>(
    `select ${COLUMNS}, revision from inbound_rule where org_id = $1 and id = any($2::uuid[])`,
    [orgId, ids],
  );
}

export type RuleHits = { org_id: string; id: string; count: number; at: Date };

/** One row a rule, in one order for all writers; rules that are gone count nothing. */
export function addHits(tx: Tx, hits: readonly RuleHits[]) {
  return tx.execute(
    `update inbound_rule r set hits = r.hits + k.count, last_hit_at = greatest(r.last_hit_at, k.at)
       from (select r.org_id, r.id, k.count, k.at
               from unnest($1::uuid[], $2::uuid[], $3::int[], $4::timestamptz[]) as k (org_id, id, count, at)
               join inbound_rule r on r.org_id = k.org_id and r.id = k.id
              order by r.org_id, r.id for update of r) k
      where r.org_id = k.org_id and r.id = k.id`,
    [
      hits.map(({ org_id }) => org_id),
      hits.map(({ id }) => id),
      hits.map(({ count }) => count),
      hits.map(({ at }) => at),
    ],
  );
}
