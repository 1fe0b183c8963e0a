// Feedback reports, mailed to the feedback address of mail that was really sent: a complaint becomes `email.complained` with
// the report's type and source and a suppression, an authentication failure (RFC 6591) nothing, an opt-out an unsubscribe.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { wantedOfFeedback, wordsOf } from "./bounces.ts";
import { answerTo, caseFiles, noteAbsent, readSide, withCrlf } from "./case-files.ts";
import { playReturned, type ReturnedCase, type Verdict } from "./returned-stage.ts";
import type { Corpus, Tally } from "./tally.ts";

type Row = { feedbacktype: string; recipient: string };
type Upstream = { feedback_type: string; source_ip: string | null };
type Opinions = Record<string, Row[]>;
type Case = ReturnedCase & { type: string | null; source_ip: string | null | undefined };

export const arfFeedback: Corpus = {
  name: "arf-feedback",
  slow: true,
  async run(dir, tally) {
    const opinions = readSide<Opinions>(tally, join(dir, "second-opinion.json")) ?? {};
    const files = caseFiles(dir);
    noteAbsent(tally, files, Object.keys(opinions));
    const cases = files.map((file) => toCase(tally, { dir, file, opinions }));
    await playReturned(tally, cases, (one, verdict) => judge(tally, one, verdict));
  },
};

function toCase(tally: Tally, { dir, file, opinions }: { dir: string; file: string; opinions: Opinions }): Case {
  const [opinion] = opinions[file] ?? [];
  const sidecar = join(dir, file.replace(/\.[a-z]+$/i, ".json"));
  const upstream = existsSync(sidecar) ? readSide<Upstream>(tally, sidecar) : null;
  return {
    name: file,
    mail: withCrlf(readFileSync(join(dir, file))),
    to: "feedback",
    recipients: opinion ? [opinion.recipient] : [],
    // mail-auth writes types as Rust names.
    type: upstream?.feedback_type?.replace(/(?<!^)([A-Z])/g, "-$1").toLowerCase() ?? opinion?.feedbacktype ?? null,
    source_ip: upstream?.source_ip,
  };
}

function judge(tally: Tally, { name, mail, type, source_ip }: Case, verdict: Verdict): void {
  const [recipient] = verdict.recipients;
  if (type === null) {
    // Nobody says what such a report is.
    tally.judge(name, answerTo(mail), verdict.answer.slice(0, 3));
    return;
  }
  const outcome = wantedOfFeedback(type);
  const entry =
    { complained: { reason: "complaint", feedback_type: type }, unsubscribed: UNSUBSCRIBED }[outcome] ?? null;
  const [event] = verdict.events;
  const hasSource = outcome === "complained" && source_ip !== undefined;
  const expected = { outcome, suppression: entry, webhooks: outcome === "complained" ? 1 : 0 };
  const got = {
    outcome: wordsOf(verdict)[0]?.split(" ").at(-1),
    suppression: recipient?.suppression ?? null,
    webhooks: verdict.events.length,
  };
  const [wanted, shown] = hasSource ? [{ source_ip }, { source_ip: event?.source_ip ?? null }] : [{}, {}];
  tally.judge(name, { ...expected, ...wanted }, { ...got, ...shown });
}

const UNSUBSCRIBED = { reason: "unsubscribe", feedback_type: null };
