// Dangerous and harmless expressions as customers' rules. Each is saved over HTTP, tried by a mail over SMTP whose subject
// attacks it, and matched in inbound/rules/conditions against long attacks with the processor time between two turns of the event loop
// watched. Harmless real-world ones must be accepted, and all that are must match as in JavaScript.
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { compileTree, type Facts, holds, readTree } from "../../src/inbound/rules/conditions/conditions.ts";
import { startProcessorTime } from "../support/processor-time.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import { readSide } from "./case-files.ts";
import { type MxStage, mxStage } from "./mx-stage.ts";
import type { Corpus } from "./tally.ts";

type Case = {
  set: string;
  pattern: string;
  attack_input: string | null;
  recheck?: { status: string; attack_pattern?: string };
  node20_ms: number;
};

const DOMAIN = "rules-in.example";
const HELD_UP_MS_MAX = 50;
const ATTACK_CHARS_MAX = 60_000;
const SUBJECT_CHARS_MAX = 900;
/** JavaScript is only asked about what it answers at once. */
const HARMLESS_MS_MAX = 20;
const PROCESSED_WITHIN_MS = 20_000;
const POLL_MS = 20;

const RULE_CHARS_MAX = 256;

/** Why a rule may be refused on save: by the answer, and by what the pattern must then hold. */
const REASONS: [error: RegExp, isSo: (pattern: string) => boolean, reason: string][] = [
  [
    /not a valid RE2/,
    (pattern) => /\(\?(?:[=!]|<[=!]|>)|\\[1-9]|\\k<|[*+?}]\+|\\[cu]|\{\d/.test(pattern),
    "RE2 has no such syntax (look-around, back-references), as the README allows",
  ],
  [
    /too large/,
    (pattern) => /\{\d+/.test(pattern),
    "its repetitions written out are larger than our limit, as the README allows",
  ],
  [
    /at most 256 characters/,
    (pattern) => pattern.length > RULE_CHARS_MAX,
    "longer than a rule may be, by the contract",
  ],
];

export const regexRedos: Corpus = {
  name: "regex-redos",
  slow: true,
  async run(dir, tally) {
    const cases = readSide<Case[]>(tally, join(dir, "patterns.json")) ?? [];
    if (cases.length === 0) return;
    const stage = await mxStage();
    const domain = await furnish(stage);
    for (const one of cases.slice(0, 3)) await heldUpMs(one); // the first turns compile our own code
    await lateMs(stage);
    let longest = 0;
    for (const one of cases) {
      await tally.attempt(one.pattern, async () => {
        const ms = await heldUpMs(one);
        longest = Math.max(longest, ms);
        const refusal = await tryRule(stage, domain, one);
        const got = { ...refusal, held_up: ms >= HELD_UP_MS_MAX };
        tally.judge(one.pattern, { saved: true, as_in_javascript: true, held_up: false }, got, reasonFor(one, got));
      });
    }
    tally.notes.push(`the event loop was held up for ${Math.round(longest)} ms of processor time at most`);
    tally.notes.push(`in the process: ${await lateMs(stage)} ms late at most, with all else that this machine does`);
  },
};

/** The event loop's delay since it was last asked for, by the process's own metrics. */
async function lateMs({ settings }: MxStage): Promise<string> {
  const answer = await fetch(`http://${settings.env.POSTERN_INTERNAL}/metrics`);
  const seconds = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(await answer.text())?.[1];
  return seconds === undefined ? "unknown" : String(Math.round(Number(seconds) * 1_000));
}

type Tried = { saved: boolean; as_in_javascript: boolean; error?: string };

function reasonFor({ set, pattern }: Case, got: Tried & { held_up: boolean }): string | null {
  if (got.saved || got.held_up) return null;
  const found = REASONS.find(([error, isSo]) => error.test(got.error ?? "") && isSo(pattern));
  const isLong = pattern.length > RULE_CHARS_MAX;
  return found && (set !== "real" || isLong) ? `refused on save: ${found[2]}` : null;
}

async function furnish(stage: MxStage): Promise<string> {
  const { id } = await addVerifiedDomain(stage, stage.dns, DOMAIN, { type: "inbound" });
  await stage.ask("PUT", `/v1/domains/${id}/spam`, { enabled: false });
  const { status, body } = await stage.ask("POST", "/v1/aliases", { domain_id: id, local_part: "*", action: "store" });
  if (status !== 201) throw new Error(`the alias could not be made: ${JSON.stringify(body)}`);
  return id;
}

/** Saves the rule, sends it a mail, and compares what it matched with JavaScript. */
async function tryRule(stage: MxStage, domain: string, one: Case): Promise<Tried> {
  const condition = { field: "subject", comparator: "matches", value: one.pattern };
  const rule = { name: "case", conditions: [condition], action: "drop" };
  const saved = await stage.ask("POST", `/v1/domains/${domain}/rules`, rule);
  if (saved.status !== 201) {
    return { saved: false, as_in_javascript: true, error: `${saved.status} ${JSON.stringify(saved.body)}` };
  }
  const { id } = saved.body.rule as unknown as { id: string };
  const subject = subjectOf(one);
  const mail = await receive(stage, subject);
  const matched = mail.rule_ids.includes(id);
  await stage.ask("DELETE", `/v1/inbound-rules/${id}`);
  const isHarmless = one.node20_ms <= HARMLESS_MS_MAX && one.recheck?.status !== "vulnerable";
  return { saved: true, as_in_javascript: !isHarmless || matched === new RegExp(one.pattern).test(mail.subject ?? "") };
}

/** The attack, as far as a Subject field can carry it. */
function subjectOf({ attack_input }: Case): string {
  return (attack_input ?? "").replace(/[^\x21-\x7e]/g, "").slice(0, SUBJECT_CHARS_MAX) || "a";
}

async function receive(stage: MxStage, subject: string): Promise<{ subject: string | null; rule_ids: string[] }> {
  const bytes = Buffer.from(`From: a@sender.example\r\nTo: x@${DOMAIN}\r\nSubject: ${subject}\r\n\r\nx\r\n`);
  const { text } = await stage.send({ bytes, recipient: `x@${DOMAIN}`, mail_from: "a@sender.example" });
  const id = /taken as (\S+)/.exec(text)?.[1];
  if (!id) throw new Error(`the mail was not taken: ${text}`);
  const until = performance.now() + PROCESSED_WITHIN_MS;
  for (;;) {
    const { body } = await stage.ask("GET", `/v1/inbound-emails/${id}`);
    const email = body.email as unknown as { status: string; subject: string | null; rule_ids: string[] };
    if (!["received", "processing"].includes(email.status)) return email;
    if (performance.now() > until) throw new Error(`the mail ${id} is not processed`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** The most processor time between two turns of the event loop, from reading the rule to matching its attacks. */
async function heldUpMs({ pattern, attack_input, recheck }: Case): Promise<number> {
  let used = startProcessorTime();
  let longest = 0;
  const breathe = async () => {
    longest = Math.max(longest, used());
    await turn();
    used = startProcessorTime();
  };
  const read = readTree({ field: "subject", comparator: "matches", value: pattern }, "match");
  await breathe();
  if (!read.ok) return longest;
  const compiled = compileTree(read.tree);
  await breathe();
  const attack = attack_input || "a";
  const long = attack.repeat(Math.ceil(ATTACK_CHARS_MAX / attack.length)).slice(0, ATTACK_CHARS_MAX);
  for (const subject of [attack, long, `${long}\n`, writtenOut(recheck?.attack_pattern ?? "")]) {
    await holds(compiled, { ...FACTS, subject: [subject] }, breathe);
    await breathe();
  }
  return longest;
}

/** `'a' + 'bc'.repeat(29) + '\x00'`, as far as it is wanted. */
function writtenOut(expression: string): string {
  let text = "";
  for (const [, quoted = "", times = "1"] of expression.matchAll(/'((?:[^'\\]|\\.)*)'(?:\.repeat\((\d+)\))?/g)) {
    const piece = quoted.replace(/\\x([0-9a-f]{2})|\\n|\\(.)/gi, (_, hex, other) =>
      hex ? String.fromCharCode(Number.parseInt(hex, 16)) : (other ?? "\n"),
    );
    text += piece.repeat(Math.min(Number(times), Math.ceil(ATTACK_CHARS_MAX / (piece.length || 1))));
    if (text.length > ATTACK_CHARS_MAX) return text.slice(0, ATTACK_CHARS_MAX);
  }
  return text;
}

const FACTS: Facts = {
  ...{ sender: [], sender_domain: [], envelope_sender: [], recipient: [], recipient_tag: [], subject: [], headers: [] },
  ...{ spf: "none", dkim: "none", dmarc: "none", spam_score: null, size: 0 },
  ...{ has_attachments: false, auto_submitted: false },
};
