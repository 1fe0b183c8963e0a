// Feedback reports, mailed to the feedback address of mail that was really sent: a complaint becomes `email.complained` with
// the report's type and source and a suppression, an authentication failure (RFC 6591) nothing, an opt-out an unsubscribe.
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { wantedOfFeedback, withCrlf, wordsOf } from "./bounces.ts";
import { type ReturnedCase, returnedStage, type Verdict } from "./returned-stage.ts";
import { type Corpus, createTally, type Tally } from "./tally.ts";

type Row = { feedbacktype: string; recipient: string };
type Upstream = { feedback_type: string; source_ip: string | null };
type Case = ReturnedCase & { type: string | null; source_ip: string | null | undefined };

export const arfFeedback: Corpus = {
  name: "arf-feedback",
  async run(dir) {
    const cases = globSync("**/*", { cwd: dir })
      .filter((name) => isMail(dir, name))
      .sort()
      .map((file) => toCase(dir, file));
    const tally = createTally();
    const stage = await returnedStage();
    const verdicts = await stage.run(cases);
    for (const one of cases) judge(tally, one, verdicts.get(one.name) as Verdict);
    tally.judge("addresses suppressed that no case sent to", [], await stage.leftSuppressed());
    return tally;
  },
};

function toCase(dir: string, file: string): Case {
  const opinions = JSON.parse(readFileSync(join(dir, "second-opinion.json"), "utf8")) as Record<string, Row[]>;
  const [opinion] = opinions[file] ?? [];
  const sidecar = join(dir, file.replace(/\.[a-z]+$/i, ".json"));
  const upstream = existsSync(sidecar) ? (JSON.parse(readFileSync(sidecar, "utf8")) as Upstream) : null;
  return {
    name: file,
    mail: withCrlf(readFileSync(join(dir, file))),
    to: "feedback",
    recipients: opinion ? [opinion.recipient] : [],
    // mail-auth writes types as Rust names.
    type: upstream?.feedback_type.replace(/(?<!^)([A-Z])/g, "-$1").toLowerCase() ?? opinion?.feedbacktype ?? null,
    source_ip: upstream?.source_ip,
  };
}

function judge(tally: Tally, { name, type, source_ip }: Case, verdict: Verdict): void {
  const [recipient] = verdict.recipients;
  if (type === null) {
    // Nobody says what such a report is.
    tally.judge(name, "250", verdict.answer.slice(0, 3));
    return;
  }
  const outcome = wantedOfFeedback(type);
  const entry =
    { complained: { reason: "complaint", feedback_type: type }, unsubscribed: UNSUBSCRIBED }[outcome] ?? null;
  const expected = { outcome, suppression: entry, webhooks: outcome === "complained" ? 1 : 0 };
  const got = {
    outcome: wordsOf(verdict)[0]?.split(" ").at(-1),
    suppression: recipient?.suppression ?? null,
    webhooks: verdict.events.length,
  };
  tally.judge(name, expected, got);
  const [event] = verdict.events;
  if (event && source_ip !== undefined) tally.judge(`${name}: source`, source_ip, event.source_ip);
}

const UNSUBSCRIBED = { reason: "unsubscribe", feedback_type: null };

function isMail(dir: string, name: string): boolean {
  if (!/\.(eml|txt|msg)$/i.test(name)) return false;
  return /^[\x21-\x39\x3b-\x7e]+:/m.test(readFileSync(join(dir, name), "latin1").slice(0, 2_000));
}
