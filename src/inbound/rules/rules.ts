// Routing rules as their owners keep them: create, list, change, order, try out on stored mail. What they do to mail on
// its way is in rules-step.ts; the conditions themselves are in rules/conditions.
import { getAlias, readDestination, refuseUnknownWebhooks } from "../../aliases/aliases.ts";
import type { AliasAction } from "../../aliases/types.ts";
import { findDomain, requireDomain } from "../../domains/domains.ts";
import type { Account } from "../../http/http.ts";
import { readName } from "../../http/one-line.ts";
import { isUuid, type Tx } from "../../platform/database/db.ts";
import { invalid, notFound, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { type Problem, readConditions, readTree, type Tree } from "./conditions/conditions.ts";
import type { RuleRecord, RuleSettings } from "./rules-queries.ts";
import * as queries from "./rules-queries.ts";

export const PER_DOMAIN_MAX = 100;
export const NAME_CHARS_MAX = 200;
export const PRIORITY_MAX = 1_000_000;
const STEP = 10;

type RuleWorld = Pick<World, "db" | "clock" | "random">;

/** The conditions in one of their two forms. */
export type Conditions = { match?: unknown; conditions?: unknown };

export type RuleRequest = Conditions & {
  name: string;
  domain_id?: string;
  alias_id?: string | null;
  priority?: number;
  active?: boolean;
  action: AliasAction;
  forward_to?: string[];
  webhook_ids?: string[];
};

/**
 * Creates a rule of a domain or of an alias. 404 for one that is not the organization's, 403 when the domain has 100. The
 * priority left out puts it last. A test key's rules are asked about test mail only.
 */
export async function createRule(
  world: RuleWorld,
  { org_id: orgId, acts_on_live }: Pick<Account, "org_id" | "acts_on_live">,
  request: RuleRequest,
): Promise<RuleRecord> {
  const match = readMatch(request);
  if (!match) throw invalid("match", "the 'match' field or the 'conditions' field is required");
  const alias = await findAlias(world, orgId, request.alias_id ?? null);
  const domainName = request.domain_id ?? alias?.domain_id;
  if (domainName === undefined) throw invalid("domain_id", "the 'domain_id' field or the 'alias_id' field is required");
  const id = world.random.uuid();
  const created_at = new Date(world.clock.now());
  return world.db.asOrg(orgId, async (tx) => {
    const domain = await findDomain(tx, orgId, domainName);
    if (!domain) throw unknownReference("domain_id", "domain");
    if (alias && alias.domain_id !== domain.id) {
      throw invalid("alias_id", "the 'alias_id' field names an alias of another domain");
    }
    await queries.lockDomainRules(tx, domain.id);
    const { total, last } = await queries.sumUpDomain(tx, orgId, domain.id);
    if (total >= PER_DOMAIN_MAX)
      throw new Refusal("plan_limit_reached", `a domain has at most ${PER_DOMAIN_MAX} rules`);
    const settings = readSettings({
      name: readName("name", request.name, NAME_CHARS_MAX),
      priority: request.priority ?? Math.min(last + STEP, PRIORITY_MAX),
      active: request.active ?? true,
      match,
      action: request.action,
      forward_to: request.forward_to ?? [],
      webhook_ids: request.webhook_ids ?? [],
    });
    await refuseUnknownWebhooks(tx, orgId, settings.webhook_ids);
    const place = { id, domain_id: domain.id, alias_id: alias?.id ?? null, created_at };
    const environment = acts_on_live ? "live" : "test";
    await queries.insertRule(tx, orgId, { ...settings, ...place, environment });
    return mustFind(tx, orgId, id);
  });
}

/** The tree of either form, null when neither is given; 400 with the path of what is wrong. */
export function readMatch({ match, conditions }: Conditions): Tree | null {
  if (match !== undefined && conditions !== undefined) {
    throw invalid("conditions", "the 'conditions' field cannot stand beside 'match'");
  }
  if (match === undefined && conditions === undefined) return null;
  const read = match === undefined ? readConditions(conditions, "conditions") : readTree(match, "match");
  if (read.ok) return read.tree;
  const { field, problem }: Problem = read;
  throw invalid(field, `the '${field}' field ${problem}`);
}

async function findAlias(world: RuleWorld, orgId: string, id: string | null) {
  if (id === null) return null;
  try {
    return await getAlias(world, orgId, id);
  } catch (error) {
    if (error instanceof Refusal && error.kind === "not_found") throw unknownReference("alias_id", "alias");
    throw error;
  }
}

function unknownReference(field: string, what: string): Refusal {
  return new Refusal("not_found", `the '${field}' field names no ${what} of this organization`, { field });
}

function readSettings(given: RuleSettings): RuleSettings {
  const forward_to = [...new Set(given.forward_to.map(readDestination))];
  if (given.action === "forward" && forward_to.length === 0) {
    throw invalid("forward_to", "the 'forward_to' field is required when the action is forward");
  }
  return { ...given, forward_to };
}

async function mustFind(tx: Tx, orgId: string, id: string): Promise<RuleRecord> {
  const [row] = isUuid(id) ? await queries.findRule(tx, orgId, id) : [];
  if (!row) throw notFound("inbound rule");
  return row;
}

/** One page of the rules in the order they are asked, domain by domain, with the total. */
export async function listRules(
  world: Pick<World, "db">,
  orgId: string,
  filter: queries.RuleFilter,
  page: { limit: number; offset: number },
) {
  return world.db.asOrg(orgId, (tx) => listPage(tx, orgId, filter, page));
}

/** The same for one domain, by id or name, or 404. */
export async function listDomainRules(
  world: Pick<World, "db">,
  orgId: string,
  domain: string,
  page: { limit: number; offset: number },
) {
  return world.db.asOrg(orgId, async (tx) => {
    const { id } = await requireDomain(tx, orgId, domain);
    return listPage(tx, orgId, { domain_id: id }, page);
  });
}

async function listPage(tx: Tx, orgId: string, filter: queries.RuleFilter, page: { limit: number; offset: number }) {
  const rules = await queries.listRules(tx, orgId, filter, page);
  return { rules, ...(await queries.countRules(tx, orgId, filter)), ...page };
}

/** Creates a rule of the domain in the path, by id or name, or 404. */
export async function createDomainRule(
  world: RuleWorld,
  account: Pick<Account, "org_id" | "acts_on_live">,
  domain: string,
  request: Omit<RuleRequest, "domain_id">,
): Promise<RuleRecord> {
  const { org_id } = account;
  const { id } = await world.db.asOrg(org_id, (tx) => requireDomain(tx, org_id, domain));
  return createRule(world, account, { ...request, domain_id: id });
}

/** Live when one of them is of a live key; null when none is there. */
export async function environmentOf(world: Pick<World, "db">, orgId: string, ids: readonly string[]) {
  const rows = await world.db.asOrg(orgId, (tx) => queries.findEnvironments(tx, orgId, ids.filter(isUuid)));
  return rows.find(({ environment }) => environment === "live")?.environment ?? rows[0]?.environment ?? null;
}

/** One rule, or 404. */
export async function getRule(world: Pick<World, "db">, orgId: string, id: string): Promise<RuleRecord> {
  return world.db.asOrg(orgId, (tx) => mustFind(tx, orgId, id));
}

export type RuleChanges = Partial<Omit<RuleRequest, "domain_id" | "alias_id">>;

/** Changes what is given, or 404. */
export async function changeRule(
  world: RuleWorld,
  orgId: string,
  id: string,
  changes: RuleChanges,
): Promise<RuleRecord> {
  const { match: _match, conditions: _conditions, ...given } = changes;
  if (given.name !== undefined) given.name = readName("name", given.name, NAME_CHARS_MAX);
  const at = new Date(world.clock.now());
  return world.db.asOrg(orgId, async (tx) => {
    if (isUuid(id)) await queries.lockRules(tx, orgId, [id]);
    const before = await mustFind(tx, orgId, id);
    const settings = readSettings({ ...before, ...given, match: readMatch(changes) ?? before.match });
    await refuseUnknownWebhooks(tx, orgId, changes.webhook_ids ?? [], before.webhook_ids);
    await queries.updateRule(tx, orgId, id, { ...settings, at });
    return mustFind(tx, orgId, id);
  });
}

/** Deletes a rule, or 404. Mail that it decided keeps its id. */
export async function deleteRule(world: Pick<World, "db">, orgId: string, id: string): Promise<void> {
  const touched = isUuid(id) ? await world.db.asOrg(orgId, (tx) => queries.deleteRule(tx, orgId, id)) : 0;
  if (touched === 0) throw notFound("inbound rule");
}

/** Puts rules of one domain in this order (priorities 10, 20, …); its other rules keep theirs. 404 for an unknown one. */
export async function reorderRules(
  world: Pick<World, "db" | "clock">,
  orgId: string,
  ids: readonly string[],
): Promise<RuleRecord[]> {
  const at = new Date(world.clock.now());
  return world.db.asOrg(orgId, async (tx) => {
    const found = new Map((await queries.lockRules(tx, orgId, ids)).map((row) => [row.id, row]));
    const [first = ""] = ids;
    for (const [index, id] of ids.entries()) {
      const field = `ids[${index}]`;
      const rule = found.get(id.toLowerCase());
      if (!rule) throw unknownReference(field, "rule");
      if (rule.domain_id !== found.get(first.toLowerCase())?.domain_id) {
        throw invalid(field, `the '${field}' field names a rule of another domain than the first`);
      }
    }
    await queries.reorderRules(tx, orgId, ids, { step: STEP, at });
    const rules: RuleRecord[] = [];
    for (const id of ids) rules.push(await mustFind(tx, orgId, id));
    return rules;
  });
}
