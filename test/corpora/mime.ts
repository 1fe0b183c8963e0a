// MIME suites through the parser of received mail: no crash, no mail over a second, and the fields that the suites state.
// Differences that a person looked at stand in src/mail/mime/parse.differences.json with their reasons.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  corpusFiles,
  type Found,
  mime4jDifferences,
  type PythonMail,
  pythonDifferences,
  stalwartDifferences,
} from "../../src/mail/mime/parse-corpora.fixture.ts";
import { parseMessage } from "../../src/mail/mime/parse-message.ts";
import { type Corpus, createTally, type Tally } from "./tally.ts";

type Difference = { corpus: string; file: string; field: string; reason: string };

const PARSE_MS_MAX = 1_000;
const LOOKED_AT = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../src/mail/mime/parse.differences.json"), "utf8"),
) as Difference[];

export const mimeStalwart: Corpus = {
  name: "mime-stalwart",
  async run(dir) {
    const tally = createTally();
    for (const file of corpusFiles("**/*.eml", `${dir}/`)) {
      judgeMail(tally, { corpus: "mime-stalwart", dir, file }, () => stalwartDifferences(join(dir, file)));
    }
    return tally;
  },
};

export const mimeMime4j: Corpus = {
  name: "mime-mime4j",
  async run(dir) {
    const tally = createTally();
    for (const file of corpusFiles("*.msg", `${dir}/`)) {
      judgeMail(tally, { corpus: "mime-mime4j", dir, file }, () => mime4jDifferences(join(dir, file)));
    }
    return tally;
  },
};

export const mimeMisc: Corpus = {
  name: "mime-misc",
  async run(dir) {
    const tally = createTally();
    const baseline = join(dir, "baseline-python-email.json");
    const wanted = existsSync(baseline)
      ? (JSON.parse(readFileSync(baseline, "utf8")) as Record<string, PythonMail>)
      : {};
    for (const [file, want] of Object.entries(wanted)) {
      const differences = () => pythonDifferences(readFileSync(join(dir, file)), want);
      judgeMail(tally, { corpus: "mime-misc", dir, file }, differences, PYTHON);
    }
    return tally;
  },
};

const PYTHON = "a second opinion (CPython's email), not a standard: it keeps raw bytes and rejects what readers repair";

type Mail = { corpus: string; dir: string; file: string };

function judgeMail(
  tally: Tally,
  { corpus, dir, file }: Mail,
  differences: () => Found[],
  general: string | null = null,
): void {
  const startedAt = performance.now();
  const mail = parseMessage(readFileSync(join(dir, file)));
  const isQuick = performance.now() - startedAt < PARSE_MS_MAX;
  const isWellFormed = JSON.stringify([mail.subject, mail.text, mail.html, mail.headers]).isWellFormed();
  const found = differences();
  const reasons = found.map(({ field }) => reasonOf(corpus, file, field) ?? general);
  const reason = reasons.every((one) => one !== null) && reasons.length > 0 ? (reasons[0] as string) : null;
  tally.judge(file, { isQuick: true, isWellFormed: true, found: [] }, { isQuick, isWellFormed, found }, reason);
}

function reasonOf(corpus: string, file: string, field: string): string | null {
  return LOOKED_AT.find((one) => one.corpus === corpus && one.file === file && one.field === field)?.reason ?? null;
}
