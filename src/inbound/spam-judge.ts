// Finds out how much a mail looks like spam, once a message and engine, whoever asks: the built-in signs with lists in the
// DNS, or rspamd over HTTP. Ends in seconds; what an engine could not find out is a value. Not here: what is done about it.
import { askBlockLists, domainsIn, readBlockList } from "../mail/spam/block-lists.ts";
import { REPLY_BYTES_MAX, readRspamdReply, rspamdHeaders } from "../mail/spam/rspamd.ts";
import { findSymptoms, isTestText, type Symptom } from "../mail/spam/spam.ts";
import { createOperatorPost, type OperatorPost } from "../platform/operator-post.ts";
import type { World } from "../platform/world.ts";
import { readMail } from "./findings.ts";
import type { Engine } from "./spam-queries.ts";
import type { Envelope, Examination, Origin } from "./types.ts";

export type JudgeWorld = Pick<World, "config" | "resolver" | "log" | "metrics" | "clock">;

/** A message as it came, in session or later. */
export type Suspected = { examination: Examination; origin: Origin; envelope: Envelope; recipients: readonly string[] };

export type Judgement =
  /** `insists`: spam whatever the score. */
  { kind: "judged"; symptoms: Symptom[]; insists: boolean } | { kind: "failed"; reason: string };

export type Judge = (suspected: Suspected, engine: Engine) => Promise<Judgement>;

const RSPAMD_TIMEOUT_MS = 4_000;
const LISTS_TIMEOUT_MS = 3_000;
/** So many failures in a row, and rspamd is left alone for a while: sessions must not wait for it one after another. */
const FAILURES_MAX = 5;
const REST_MS = 10_000;
/** A list that refuses us does so for every mail. */
const TELL_AGAIN_MS = 600_000;

/** The engines of this process. */
export function createJudge(world: JudgeWorld): Judge {
  const known = new WeakMap<Examination, Map<Engine, Promise<Judgement>>>();
  const lookUp = listAsker(world);
  const askRspamd = rspamdAsker(world);
  return (suspected, wanted) => {
    const engine = world.config.rspamd_url === null ? "builtin" : wanted;
    const ofMessage = known.get(suspected.examination) ?? new Map<Engine, Promise<Judgement>>();
    known.set(suspected.examination, ofMessage);
    const before = ofMessage.get(engine);
    if (before) return before;
    const judging = engine === "builtin" ? askBuiltin(lookUp, suspected) : askRspamd(suspected);
    ofMessage.set(engine, judging);
    return judging;
  };
}

async function askBuiltin(lookUp: LookUp, suspected: Suspected): Promise<Judgement> {
  const { examination, origin } = suspected;
  const [verdicts, parsed] = await Promise.all([examination.verdicts(), examination.parsed()]);
  const read = await readMail(suspected, parsed);
  const auth = { spf: verdicts.spf.result, dkim: verdicts.dkim.result, dmarc: verdicts.dmarc.result };
  const own = findSymptoms({ ...read, auth });
  const authors = [...read.from.map(({ email }) => email), suspected.envelope.from];
  const about = { ip: origin.remote_ip, domains: domainsIn(authors, [read.text, read.html]) };
  const listed = await lookUp(about);
  return { kind: "judged", symptoms: [...own, ...listed], insists: isTestText(own) };
}

type LookUp = (about: { ip: string | null; domains: string[] }) => Promise<Symptom[]>;

function listAsker(world: JudgeWorld): LookUp {
  const lists = world.config.dns_block_lists.flatMap((word) => readBlockList(word) ?? []);
  const failed = world.metrics.counter("postern_spam_list_failures_total", "Block lists that gave no use", ["why"]);
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return async (about) => {
    if (lists.length === 0) return [];
    const answer = await within(askBlockLists(lists, about, world.resolver.a), LISTS_TIMEOUT_MS);
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

/** Null when it takes longer. */
export async function within<T>(work: Promise<T>, ms: number): Promise<T | null> {
  const late = Promise.withResolvers<null>();
  const timer = setTimeout(() => late.resolve(null), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function rspamdAsker(world: JudgeWorld): (suspected: Suspected) => Promise<Judgement> {
  const post = createOperatorPost();
  const failed = world.metrics.counter("postern_spam_engine_failures_total", "Mail that rspamd did not judge");
  let failures = 0;
  let restsUntilMs = 0;
  return async (suspected) => {
    if (world.clock.monotonic() < restsUntilMs) {
      failed.inc();
      return { kind: "failed", reason: "rspamd did not judge the last mails" };
    }
    const judgement = await askRspamd(world, post, suspected);
    failures = judgement.kind === "failed" && !judgement.answered ? failures + 1 : 0;
    if (failures >= FAILURES_MAX) restsUntilMs = world.clock.monotonic() + REST_MS;
    if (judgement.kind !== "failed") return judgement;
    failed.inc();
    world.log.warn({ reason: judgement.reason }, "rspamd did not judge a mail");
    return { kind: "failed", reason: judgement.reason };
  };
}

type Asked = Exclude<Judgement, { kind: "failed" }> | { kind: "failed"; reason: string; answered: boolean };

async function askRspamd(world: JudgeWorld, post: OperatorPost, suspected: Suspected): Promise<Asked> {
  const { examination, origin, envelope, recipients } = suspected;
  const told = { ip: origin.remote_ip, helo: origin.helo, from: envelope.from, recipients, host: world.config.mx_host };
  const answer = await post({
    url: `${world.config.rspamd_url}/checkv2`,
    headers: rspamdHeaders(told),
    body: await examination.bytes(),
    timeout_ms: RSPAMD_TIMEOUT_MS,
    response_bytes_max: REPLY_BYTES_MAX,
  });
  if (answer.kind === "failed") return { kind: "failed", reason: `rspamd: ${answer.reason}`, answered: false };
  if (answer.status !== 200) return { kind: "failed", reason: `rspamd answered ${answer.status}`, answered: false };
  const reply = readRspamdReply(answer.body);
  if (reply.kind === "judged") return { kind: "judged", symptoms: reply.symptoms, insists: reply.forced };
  const reason = reply.kind === "later" ? "rspamd wants it to come again" : reply.reason;
  return { kind: "failed", reason, answered: true };
}
