import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { startProcessorTime } from "../../../test/support/processor-time.ts";
import {
  corpusFiles,
  type Found,
  mime4jDifferences,
  mimeData,
  type PythonMail,
  pythonDifferences,
  stalwartDifferences,
} from "./parse-corpora.fixture.ts";
import { parseMessage } from "./parse-message.ts";

type Difference = { corpus: string; file: string; field: string; reason: string };

const differencesFile = fileURLToPath(new URL("./parse.differences.json", import.meta.url));
const differences = JSON.parse(readFileSync(differencesFile, "utf8")) as Difference[];
const missing = (corpus: string) =>
  existsSync(mimeData + corpus) ? false : `third-party mails are not here (../shared/data/${corpus})`;

/** Both ways: a new difference fails, and so does an entry that is no longer needed. */
function checkFields(corpus: string, file: string, found: Found[]): void {
  const known = differences.filter((one) => one.corpus === corpus && one.file === file).map(({ field }) => field);
  const unexplained = found.filter(({ field }) => !known.includes(field));
  assert.deepEqual(unexplained, []);
  const stale = known.filter((field) => !found.some((one) => one.field === field));
  assert.deepEqual(stale, [], "these differences are gone: take them out of the list");
}

describe("mime-stalwart", { skip: missing("mime-stalwart") }, () => {
  for (const path of corpusFiles("mime-stalwart/**/*.eml")) {
    const file = path.slice("mime-stalwart/".length);
    it(`${file} reads as its source reads it`, () =>
      checkFields("mime-stalwart", file, stalwartDifferences(mimeData + path)));
  }
});

describe("mime-mime4j", { skip: missing("mime-mime4j") }, () => {
  for (const path of corpusFiles("mime-mime4j/*.msg")) {
    const file = path.slice("mime-mime4j/".length);
    it(`${file} has the parts its source expects`, () =>
      checkFields("mime-mime4j", file, mime4jDifferences(mimeData + path)));
  }
});

describe("mime-misc", { skip: missing("mime-misc") }, () => {
  const baselineFile = `${mimeData}mime-misc/baseline-python-email.json`;
  const baseline = missing("mime-misc")
    ? {}
    : (JSON.parse(readFileSync(baselineFile, "utf8")) as Record<string, PythonMail>);
  for (const [file, want] of Object.entries(baseline)) {
    it(`${file} reads as in CPython, or better for a reason`, () => {
      checkFields("mime-misc", file, pythonDifferences(readFileSync(`${mimeData}mime-misc/${file}`), want));
    });
  }
});

describe("every mail of the corpora", () => {
  const files = corpusFiles(
    "{mime-*,dkim-messages,dmarc-evaluation,spam-and-ham,bounce-*,dsn-misc,arf-feedback}/**/*.{eml,msg,txt,raw}",
  );
  it(`reads within a second as well-formed text and plain JSON (${files.length} files)`, {
    skip: files.length === 0,
  }, () => {
    for (const path of files) {
      const bytes = readFileSync(mimeData + path);
      const used = startProcessorTime();
      const mail = parseMessage(bytes);
      assert.ok(used() < 1_000, path);
      const { attachments, ...rest } = mail;
      const json = JSON.stringify([rest, attachments.map(({ content, ...attachment }) => attachment)]);
      assert.ok(json.isWellFormed() && !json.includes("\\u0000"), path);
      for (const { content, size, filename } of attachments)
        assert.ok(content.length === size && filename !== "", path);
    }
  });
});
