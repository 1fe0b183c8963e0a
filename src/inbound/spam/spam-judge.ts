// Finds out how much a mail looks like spam, once a message and engine, whoever asks: the built-in signs with lists in the
// DNS, or rspamd over HTTP. Ends in seconds; what an engine could not find out is a value. Not here: what is done about it.
import { askBlockLists, domainsIn, readBlockList } from "../../mail/spam/block-lists.ts";
import { findSymptoms, isTestText } from "../../mail/spam/spam.ts";
import type { Symptom } from "../../mail/spam/suspect.ts";
import { within } from "../../platform/clock.ts";
import type { World } from "../../platform/world.ts";
import { readMail } from "../process/findings.ts";
import { onceAMessage } from "../process/once-a-message.ts";
import type { Envelope, Examination, Origin } from "../types.ts";
import { type RspamdAnswer, rspamdAt } from "./rspamd.ts";
import { engineOf } from "./spam.ts";
import type { Engine } from "./spam-queries.ts";

export type JudgeWorld = Pick<World, "config" | "resolver" | "log" | "metrics" | "clock">;

/** A message as it came, in session or later. */
export type Suspected = { examination: Examination; origin: Origin; envelope: Envelope; recipients: readonly string[] };

export type Judgement =
  /** `insists`: spam whatever the score. */
  { kind: "judged"; symptoms: Symptom[]; insists: boolean } | { kind: "failed"; reason: string };

/** `chosen`: by the domain; null: the server's. */
export type Judge = (suspected: Suspected, chosen: Engine | null) => Promise<Judgement>;

const RSPAMD_TIMEOUT_MS = 4_000;
const LISTS_TIMEOUT_MS = 3_000;
/** So many failures in a row, and rspamd is left alone for a while: sessions must not wait for it one after another. */
const FAILURES_MAX = 5;
const REST_MS = 10_000;
/** A list that refuses us does so for every mail. */
const TELL_AGAIN_MS = 600_000;

/** The engines of this process. */
export function createJudge(world: JudgeWorld): Judge {
  const once = onceAMessage<Judgement>();
  const lookUp = listAsker(world);
  const askRspamd = rspamdAsker(world);
  return (suspected, chosen) => {
    const engine = world.config.rspamd_url === null ? "builtin" : engineOf(world.config, chosen);
    return once(suspected.examination, engine, () =>
      engine === "builtin" ? askBuiltin(lookUp, suspected, world.clock.now()) : askRspamd(suspected),
    );
  };
}

async function askBuiltin(lookUp: LookUp, suspected: Suspected, nowMs: number): Promise<Judgement> {
  const { examination, origin, recipients } = suspected;
  const [verdicts, parsed] = await Promise.all([examination.verdicts(), examination.parsed()]);
  const read = await readMail(suspected, parsed);
  const auth = { spf: verdicts.spf.result, dkim: verdicts.dkim.result, dmarc: verdicts.dmarc.result };
  const { helo, remote_ip } = origin;
  const session = { helo, remote_ip, host: examination.host, recipients, received_ms: nowMs };
  const own = findSymptoms({ ...read, auth, session });
  const authors = [...read.from.map(({ email }) => email), suspected.envelope.from];
  const listed = await lookUp(origin.remote_ip, () => domainsIn(authors, [read.text, read.html]));
  return { kind: "judged", symptoms: [...own, ...listed], insists: isTestText(own) };
}

type LookUp = (ip: string | null, domains: () => string[]) => Promise<Symptom[]>;

function listAsker(world: JudgeWorld): LookUp {
  const lists = world.config.dns_block_lists.flatMap((word) => readBlockList(word) ?? []);
  const failed = world.metrics.counter("postern_spam_list_failures_total", "Block lists that gave no use", ["why"]);
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return async (ip, domains) => {
    if (lists.length === 0) return [];
    const asked = askBlockLists(lists, { ip, domains: domains() }, world.resolver.a);
    const answer = await within(asked, LISTS_TIMEOUT_MS, null);
    if (answer === null) failed.inc({ why: "timeout" });
    if (!answer || answer.refused.length === 0) return answer?.symptoms ?? [];
    failed.inc({ why: "refused" });
    if (world.clock.monotonic() - toldAtMs > TELL_AGAIN_MS) {
      toldAtMs = world.clock.monotonic();
      world.log.warn({ lists: answer.refused }, "block lists refuse our questions, or list everybody");
    }
    return answer.symptoms;
  };
}

function rspamdAsker(world: JudgeWorld): (suspected: Suspected) => Promise<Judgement> {
  const ask = rspamdAt(world.config.rspamd_url ?? "");
  const failed = world.metrics.counter("postern_spam_engine_failures_total", "Mail that rspamd did not judge");
  let failures = 0;
  let restsUntilMs = 0;
  return async (suspected) => {
    if (world.clock.monotonic() < restsUntilMs) {
      failed.inc();
      return { kind: "failed", reason: "rspamd did not judge the last mails" };
    }
    const { examination, origin, envelope, recipients } = suspected;
    const host = world.config.mx_host;
    const reported = { ip: origin.remote_ip, helo: origin.helo, from: envelope.from, recipients, host };
    const answer = await ask(reported, await examination.bytes(), RSPAMD_TIMEOUT_MS);
    failures = answer.kind === "silent" || answer.kind === "refused" ? failures + 1 : 0;
    if (failures >= FAILURES_MAX) restsUntilMs = world.clock.monotonic() + REST_MS;
    if (answer.kind === "judged") return { kind: "judged", symptoms: answer.symptoms, insists: answer.forced };
    failed.inc();
    const reason = whyNot(answer);
    world.log.warn({ reason }, "rspamd did not judge a mail");
    return { kind: "failed", reason };
  };
}

function whyNot(answer: Exclude<RspamdAnswer, { kind: "judged" }>): string {
  switch (answer.kind) {
    case "silent":
      return `rspamd: ${answer.reason}`;
    case "refused":
      return `rspamd answered ${answer.status}`;
    case "later":
      return "rspamd wants it to come again";
    case "failed":
      return answer.reason;
  }
}
