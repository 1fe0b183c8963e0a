// What is done about spam, each recipient by the settings of its domain: refused or deferred in session, when everybody
// whom the message is for wants that, else kept in quarantine or marked. In session there are a few seconds for it; a
// message that takes longer is taken, and what would have been refused then lies in quarantine.
import { compileSenders } from "../../mail/spam/senders.ts";
import { addUp } from "../../mail/spam/spam.ts";
import type { Symptom } from "../../mail/spam/suspect.ts";
import { rule } from "../../mail/spam/verdict.ts";
import { within } from "../../platform/clock.ts";
import type { World } from "../../platform/world.ts";
import { readMail } from "../process/findings.ts";
import { onceAMessage } from "../process/once-a-message.ts";
import type { AcceptCheck, Kind, Refused, Route, SenderVerdicts, SpamReport, SpamStep } from "../types.ts";
import { DEFAULTS, type SpamSettings, settingsFinder } from "./spam.ts";
import { createJudge, type Judge, type JudgeWorld, type Suspected } from "./spam-judge.ts";

/** A client waits ten minutes for the answer to its dot (RFC 5321 §4.5.3.2.6); ours to many must not take seconds each. */
const SESSION_MS = 6_000;
const LISTED_SCORE = 100;
/** Whose recipients are people: reports and bounces are read by machines that look at something else. */
const JUDGED: readonly Kind[] = ["alias", "catch_all", "masked", "pattern", "reverse"];

export type SpamFilter = {
  /** Judges in session. */
  check: AcceptCheck;
  /** For mail that was taken. */
  step: SpamStep;
};

type Action = "pass" | "quarantine" | "reject" | "defer";
type Decision = { report: SpamReport; action: Action; reason: string | null };
type Owner = Pick<Route, "kind" | "org_id" | "domain_id">;

const NOT_JUDGED: Decision = { report: { score: null, verdict: null, symbols: [] }, action: "pass", reason: null };

/** The filter of this process. What was decided about a message in session is not decided again. */
export function createSpamFilter(world: JudgeWorld & Pick<World, "db">): SpamFilter {
  const settingsOf = ownersSettings(settingsFinder(world));
  const decide = rememberingDecider(createJudge(world), settingsOf);
  const verdicts = world.metrics.counter("postern_spam_verdicts_total", "Mail by what was done about spam", ["action"]);
  return {
    async check(incoming, examination) {
      const { recipients, origin, envelope } = incoming;
      if (!recipients.every(({ route }) => JUDGED.includes(route.kind))) return null;
      const suspected = { examination, origin, envelope, recipients: recipients.map(({ recipient }) => recipient) };
      const owners = new Map(recipients.map(({ route }) => [keyOf(route), route]));
      const work = Promise.all([...owners.values()].map((owner) => decide(suspected, owner)));
      const decisions = await within(work, SESSION_MS, null);
      const refused = decisions ? refusalFor(decisions) : await refusalOfLate(settingsOf, [...owners.values()]);
      if (refused) verdicts.inc({ action: refused.code < 500 ? "defer" : "reject" });
      return refused;
    },
    async step(mail) {
      const { examination, origin, envelope, recipient, route } = mail;
      const decision = await decide({ examination, origin, envelope, recipients: [recipient] }, route);
      const isKept = decision.action !== "pass";
      verdicts.inc({ action: isKept ? "quarantine" : (decision.report.verdict ?? "unjudged") });
      return { report: decision.report, quarantine: isKept ? decision.reason : null };
    },
  };
}

function keyOf({ kind, org_id, domain_id }: Owner): string {
  return `${org_id} ${domain_id}${kind === "reverse" ? " outgoing" : ""}`;
}

const UNWANTED: Omit<Refused, "text"> = { kind: "refuse", code: 550, enhanced: "5.7.1" };
const LATER: Refused = {
  kind: "refuse",
  code: 451,
  enhanced: "4.7.1",
  text: "the message cannot be judged at the moment, try again later",
};

/** Only what all recipients want: nobody's mail is refused for another's settings. */
function refusalFor(decisions: readonly Decision[]): Refused | null {
  const [first] = decisions;
  if (!first || decisions.some(({ action }) => action === "pass" || action === "quarantine")) return null;
  // A client that comes again may still be refused then; one that was refused does not come again.
  if (decisions.some(({ action }) => action === "defer")) return LATER;
  return { ...UNWANTED, text: `the message is refused: ${first.reason}` };
}

type SettingsOf = (owner: Owner) => Promise<SpamSettings>;

/** Mail for the service's own domain has no domain of a customer, and the settings that everybody starts with. */
function ownersSettings(find: ReturnType<typeof settingsFinder>): SettingsOf {
  return async ({ kind, org_id, domain_id }) => {
    const own = domain_id === null ? DEFAULTS : await find(org_id, domain_id);
    return kind === "reverse" ? outgoing(own) : own;
  };
}

/**
 * Mail through a reverse address goes out to others: what a domain wants to receive, and from whom, does not matter there. It
 * cannot wait in quarantine, because its author would wait for an answer.
 */
function outgoing({ engine, on_error }: SpamSettings): SpamSettings {
  return {
    ...DEFAULTS,
    engine,
    on_error,
    thresholds: { tag: null, quarantine: null, reject: DEFAULTS.thresholds.quarantine },
  };
}

/** Nobody knows yet what it is. */
async function refusalOfLate(settingsOf: SettingsOf, owners: readonly Owner[]): Promise<Refused | null> {
  const all = await Promise.all(owners.map(settingsOf));
  return all.every(({ enabled, on_error }) => enabled && on_error === "defer") ? LATER : null;
}

function rememberingDecider(judge: Judge, settingsOf: SettingsOf) {
  const once = onceAMessage<Decision>();
  return (suspected: Suspected, owner: Owner): Promise<Decision> =>
    once(suspected.examination, keyOf(owner), async () => decideBy(await settingsOf(owner), judge, suspected));
}

async function decideBy(settings: SpamSettings, judge: Judge, suspected: Suspected): Promise<Decision> {
  if (!settings.enabled) return NOT_JUDGED;
  const judged = await judge(suspected, settings.engine);
  if (judged.kind === "judged") return conclude(settings, suspected, judged);
  if (settings.on_error === "defer") return { ...NOT_JUDGED, action: "defer", reason: judged.reason };
  const instead = await judge(suspected, "builtin");
  if (instead.kind === "failed") return NOT_JUDGED;
  const note = { name: "RSPAMD_UNAVAILABLE", score: 0, description: "Judged by the built-in engine instead" };
  return conclude(settings, suspected, { ...instead, symptoms: [...instead.symptoms, note] });
}

async function conclude(
  settings: SpamSettings,
  suspected: Suspected,
  { symptoms, insists }: { symptoms: Symptom[]; insists: boolean },
): Promise<Decision> {
  const verdicts = await suspected.examination.verdicts();
  const standing = await standingOf(settings, suspected, verdicts);
  const symbols = [...symptoms, ...listedSymptom(standing)];
  const score = addUp(symbols);
  const { dmarc } = verdicts;
  const asks = dmarc.result === "fail" && dmarc.applied !== "none" ? dmarc.applied : null;
  const { verdict, reason } = rule({ score, insists, dmarc_asks: asks, blocked: standing === "blocked" }, settings);
  const report = { score, verdict, symbols };
  if (verdict === "quarantine" || verdict === "reject") return { report, action: verdict, reason };
  const doubt = doubtOf(dmarc, settings);
  return doubt === null ? { report, action: "pass", reason } : { report, action: "defer", reason: doubt };
}

/**
 * What DNS did not answer might have proven the author, and anybody can sign with a name that DNS does not answer for: where the
 * domain would keep the mail out, its sender is to come again (RFC 6376 §6.1.2).
 */
function doubtOf({ result, policy }: SenderVerdicts["dmarc"], { dmarc_action }: SpamSettings): string | null {
  if (result !== "temperror" || (policy !== "reject" && policy !== "quarantine")) return null;
  const action = dmarc_action[policy];
  if (action !== "reject" && action !== "quarantine") return null;
  return `DNS did not answer for DMARC, which asks for ${policy}`;
}

type Standing = "allowed" | "blocked" | null;

/** The domain's own word on the sender; the more exact entry wins, and between equals the one that keeps out. */
async function standingOf(settings: SpamSettings, { examination, envelope }: Suspected, verdicts: SenderVerdicts) {
  if (settings.allow.length === 0 && settings.block.length === 0) return null;
  const { from } = await readMail({ examination }, await examination.parsed());
  const authors = from.flatMap(({ email }) => email ?? []);
  const blockRank = compileSenders(settings.block);
  const allowRank = compileSenders(settings.allow);
  const blocked = Math.max(0, ...[...authors, envelope.from].filter((email) => email !== "").map(blockRank));
  const allowed = authors.length > 0 && !isDisowned(verdicts) ? Math.min(...authors.map(allowRank)) : 0;
  const standing: Standing = blocked === 0 && allowed === 0 ? null : allowed > blocked ? "allowed" : "blocked";
  return standing;
}

/**
 * True if the author's domain says that this mail is not from it, or that is unknown. Where it says nothing the list
 * decides.
 */
function isDisowned({ spf, dkim, dmarc }: SenderVerdicts): boolean {
  if (dmarc.result === "pass" || dkim.from_aligned || spf.from_aligned) return false;
  return dmarc.result !== "none" || !["none", "pass", "neutral"].includes(spf.result);
}

function listedSymptom(standing: Standing): Symptom[] {
  if (standing === null) return [];
  return standing === "allowed"
    ? [{ name: "ALLOW_LISTED", score: -LISTED_SCORE, description: "The domain lets this sender through" }]
    : [{ name: "BLOCK_LISTED", score: LISTED_SCORE, description: "The domain blocks this sender" }];
}
