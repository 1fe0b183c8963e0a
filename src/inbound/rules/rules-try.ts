// A rule tried out on stored mail: which mails it would have matched, and why, condition by condition. Nothing is changed,
// and what processing found out once (verdicts, spam) is not asked for again.

import { protectLive } from "../../accounts/accounts.ts";
import type { Account } from "../../http/http.ts";
import { isUuid } from "../../platform/database/db.ts";
import { LAST_ID } from "../../platform/database/page.ts";
import { invalid, notFound, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import type { Inbound } from "../inbound.ts";
import { readMail } from "../process/findings.ts";
import { findBytes } from "../process/raw.ts";
import { NO_FINDINGS } from "../read/emails.ts";
import * as list from "../read/list-queries.ts";
import { compileTree, type TraceStep, type Tree, trace } from "./conditions/conditions.ts";
import { type Conditions, getRule, readMatch } from "./rules.ts";
import { askInTime, factsOf, RulesTookTooLong } from "./rules-step.ts";

const LIMIT_DEFAULT = 10;

export type TryRequest = Conditions & { rule_id?: string; email_id?: string; domain_id?: string; limit?: number };

export type Tried = { email_id: string; matched: boolean; steps: TraceStep[] };

/**
 * Runs a rule, stored or given, over one mail or over the newest of the rule's domain (and alias). 404 for a rule or mail
 * that is not the organization's; mail whose message is gone is left out.
 */
export async function tryRule(
  world: Pick<World, "db" | "blobs">,
  inbound: Pick<Inbound, "toMail">,
  account: Pick<Account, "org_id" | "acts_on_live">,
  request: TryRequest,
): Promise<{ results: Tried[]; tested: number; matched: number }> {
  const orgId = account.org_id;
  const { tree, ...scope } = await ruleOf(world, orgId, request);
  const compiled = compileTree(tree, request.conditions === undefined ? "match" : "conditions");
  const rows = await findRows(world, account, request, scope);
  const results: Tried[] = [];
  const ask = askInTime();
  for (const row of rows) {
    if (!(await findBytes(world, orgId, row.raw_id))) continue;
    const mail = inbound.toMail({ ...row, kind: row.route.kind, recipient: row.to_address });
    const read = await readMail(mail, await mail.examination.parsed());
    const facts = factsOf(mail, read, (row.findings ?? NO_FINDINGS).auth, row.spam_score);
    const { matched, steps } = await ask((pause) => trace(compiled, facts, pause)).catch(tellTooLong);
    results.push({ email_id: row.id, matched, steps: steps.map((step) => flatPath(step, request)) });
  }
  return { results, tested: results.length, matched: results.filter(({ matched }) => matched).length };
}

function tellTooLong(error: unknown): never {
  if (!(error instanceof RulesTookTooLong)) throw error;
  throw new Refusal("unavailable", "the rule took too long; try it on fewer mails, or with simpler expressions");
}

type Scope = Pick<list.EmailFilter, "domain_id" | "alias_id">;

async function ruleOf(world: Pick<World, "db">, orgId: string, request: TryRequest): Promise<Scope & { tree: Tree }> {
  const given = readMatch(request);
  const domain = request.domain_id === undefined ? {} : { domain_id: request.domain_id };
  if (request.rule_id === undefined) {
    if (given) return { tree: given, ...domain };
    throw invalid("rule_id", "the 'rule_id' field, the 'match' field or the 'conditions' field is required");
  }
  if (given) throw invalid("rule_id", "the 'rule_id' field cannot stand beside 'match' or 'conditions'");
  const rule = await getRule(world, orgId, request.rule_id);
  const alias = rule.alias_id === null ? {} : { alias_id: rule.alias_id };
  return { tree: rule.match, domain_id: rule.domain_id, ...alias, ...domain };
}

async function findRows(
  world: Pick<World, "db">,
  account: Pick<Account, "org_id" | "acts_on_live">,
  { email_id, limit = LIMIT_DEFAULT }: TryRequest,
  scope: Scope,
): Promise<list.EmailRow[]> {
  const orgId = account.org_id;
  return world.db.asOrg(orgId, async (tx) => {
    if (email_id !== undefined) {
      const found = isUuid(email_id) ? await list.findEmail(tx, orgId, email_id) : [];
      if (found.length === 0) throw notFound("inbound e-mail");
      // What a condition holds for tells what the mail says.
      await protectLive(account, "try a rule on live mail", async () => found[0]?.environment ?? null);
      return found;
    }
    const order = { sort: "received_at", direction: "desc" } as const;
    const rows: list.EmailRow[] = [];
    const filter = account.acts_on_live ? scope : { ...scope, environment: "test" };
    for (const { id } of await list.listEmails(tx, orgId, filter, { ...order, limit, offset: 0, below: LAST_ID })) {
      rows.push(...(await list.findEmail(tx, orgId, id)));
    }
    return rows;
  });
}

/** The flat form is `{all: […]}` inside; its paths have no `all`. */
function flatPath(step: TraceStep, { conditions }: TryRequest): TraceStep {
  return conditions === undefined ? step : { ...step, path: step.path.replace("conditions.all", "conditions") };
}
