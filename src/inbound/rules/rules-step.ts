// Routing rules on a mail's way: the first active rule that holds says what is done with it. Which rules there are is
// asked for each mail (many per round trip), so a change acts at once; compiled they are remembered by revision.

import { setImmediate as nextTurn } from "node:timers/promises";
import { domainOf } from "../../mail/address.ts";
import type { ParsedMail } from "../../mail/mime/parsed-mail.ts";
import type { Tx } from "../../platform/database/db.ts";
import { coalesceListsByOrg } from "../../platform/fair/coalesce.ts";
import { createLru, type Lru } from "../../platform/fair/lru.ts";
import { threadMs } from "../../platform/process/thread-ms.ts";
import type { World } from "../../platform/world.ts";
import { readMail } from "../process/findings.ts";
import { summarizeAuth } from "../process/payload.ts";
import type { AuthSummary, Mail, RuleHit, RulesStep } from "../types.ts";
import { type Compiled, compileTree, type Facts, holds, type Pause } from "./conditions/conditions.ts";
import * as queries from "./rules-queries.ts";

const COMPILED_MAX = 1_000;
/** For all rules of a mail, or one that is tried: then the alias decides. Harmless rules take microseconds. */
const TIME_MS_MAX = 5_000;

/** The rules were not asked to their end. */
export class RulesTookTooLong extends Error {}

/** Runs what asks rules, which awaits the pause between two expressions. */
export type Asking = <T>(task: (pause: Pause) => Promise<T>) => Promise<T>;

/**
 * Others run in the pauses; what is asked between them may take 5 s of the processor in all, for one rule can try two thousand
 * expressions, of 50 ms each. Rejects with RulesTookTooLong.
 */
export function askInTime(): Asking {
  let takenMs = 0;
  return (task) => {
    let resumedAtMs = threadMs();
    return task(async () => {
      takenMs += threadMs() - resumedAtMs;
      await nextTurn();
      resumedAtMs = threadMs();
      if (takenMs > TIME_MS_MAX) throw new RulesTookTooLong();
    });
  };
}

type Kept = { revision: number; hit: RuleHit; compiled: Compiled };

/** The step for customers' mail. */
export function rulesStep(world: Pick<World, "db" | "log">): RulesStep {
  const findVersions = versionFinder(world);
  const kept = createLru<Kept>(COMPILED_MAX);
  return async (mail, spam) => {
    const { domain_id, alias_id } = mail.route;
    const isTest = mail.environment === "test";
    if (domain_id === null) return null;
    const all = await findVersions(mail.org_id, domain_id);
    const isAsked = (rule: queries.RuleVersion) =>
      (rule.alias_id === null || rule.alias_id === alias_id) && (rule.environment === "live" || isTest);
    const versions = all.filter(isAsked);
    if (versions.length === 0) return null;
    const rules = await compiledRules(world, kept, mail.org_id, versions);
    const [verdicts, parsed] = await Promise.all([mail.examination.verdicts(), mail.examination.parsed()]);
    const facts = factsOf(mail, await readMail(mail, parsed), summarizeAuth(verdicts), spam.score);
    return firstHit(world, rules, facts, mail);
  };
}

async function firstHit(
  world: Pick<World, "log">,
  rules: readonly Kept[],
  facts: Facts,
  mail: Pick<Mail, "org_id" | "id">,
): Promise<RuleHit | null> {
  const ask = askInTime();
  for (const { hit, compiled } of rules) {
    try {
      if (await ask((pause) => holds(compiled, facts, pause))) return hit;
    } catch (error) {
      if (!(error instanceof RulesTookTooLong)) throw error;
      world.log.warn({ org_id: mail.org_id, email_id: mail.id, rule_id: hit.rule_id }, "rules took too long");
      return null;
    }
  }
  return null;
}

function versionFinder(world: Pick<World, "db">) {
  return coalesceListsByOrg<queries.RuleVersion>({
    keys_max: 500,
    lanes: 2,
    load: async (keys) => {
      const wanted = keys.map(({ org_id, key }) => ({ org_id, domain_id: key }));
      const rows = await queries.listVersions(world.db, wanted);
      return rows.map((row) => [row.org_id, row.domain_id, row]);
    },
  });
}

/** In the order of `versions`; a rule deleted a moment ago is left out. */
async function compiledRules(
  world: Pick<World, "db">,
  kept: Lru<Kept>,
  orgId: string,
  versions: readonly queries.RuleVersion[],
): Promise<Kept[]> {
  const missing = versions.filter(({ id, revision }) => kept.get(id)?.revision !== revision).map(({ id }) => id);
  const loaded = missing.length > 0 ? await queries.loadRules(world.db, orgId, missing) : [];
  const fresh = new Map<string, Kept>();
  for (const rule of loaded) {
    fresh.set(rule.id, compileRule(rule));
    // Expressions with many repetitions take milliseconds to compile.
    await nextTurn();
  }
  const found = versions.flatMap(({ id }) => fresh.get(id) ?? kept.get(id) ?? []);
  for (const one of found) kept.set(one.hit.rule_id, one);
  return found.filter(({ hit }) => fresh.has(hit.rule_id) || !missing.includes(hit.rule_id));
}

function compileRule(rule: queries.RuleRecord & { revision: number }): Kept {
  const { id: rule_id, revision, action, forward_to, webhook_ids } = rule;
  return { revision, hit: { rule_id, action, forward_to, webhook_ids }, compiled: compileTree(rule.match) };
}

/** What rules may ask of a mail. */
export function factsOf(
  mail: Pick<Mail, "envelope" | "recipient" | "route" | "size">,
  read: ParsedMail,
  auth: AuthSummary,
  spamScore: number | null,
): Facts {
  const sender = read.from.flatMap(({ email }) => email ?? []);
  return {
    sender,
    sender_domain: sender.map((email) => domainOf(email).toLowerCase()),
    envelope_sender: [mail.envelope.from],
    recipient: [mail.recipient],
    recipient_tag: mail.route.tag === null ? [] : [mail.route.tag],
    subject: read.subject === null ? [] : [read.subject],
    headers: read.headers,
    spf: auth.spf.result,
    dkim: auth.dkim.result,
    dmarc: auth.dmarc.result,
    spam_score: spamScore,
    size: mail.size,
    has_attachments: read.attachments.length > 0,
    auto_submitted: read.auto_submitted,
  };
}

/** Counts hits, in the transaction that records what became of the mail: one row a rule for many mails. */
export async function countHits(tx: Tx, hits: readonly { org_id: string; rule_id: string; at: Date }[]): Promise<void> {
  const sums = new Map<string, queries.RuleHits>();
  for (const { org_id, rule_id, at } of hits) {
    const known = sums.get(rule_id);
    const last = known && known.at > at ? known.at : at;
    sums.set(rule_id, { org_id, id: rule_id, count: (known?.count ?? 0) + 1, at: last });
  }
  if (sums.size > 0) await queries.addHits(tx, [...sums.values()]);
}
