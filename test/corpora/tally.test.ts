// The runner's own rules, on folders made here: what counts as a case, what fails, what is only said.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { signatureHeader } from "../../src/webhooks/sign.ts";
import { addressSyntax } from "./address-syntax.ts";
import { answerTo, caseFiles, readSide } from "./case-files.ts";
import { playData } from "./play-data.ts";
import { publicSuffixList } from "./public-suffix-list.ts";
import { createTally, playCorpus } from "./tally.ts";
import { webhookSignature } from "./webhook-signature.ts";

const dir = mkdtempSync(join(tmpdir(), "postern-corpora-rules-"));
after(() => rmSync(dir, { recursive: true, force: true }));

function folder(name: string, files: Record<string, string>): string {
  const path = join(dir, name);
  mkdirSync(path, { recursive: true });
  for (const [file, content] of Object.entries(files)) writeFileSync(join(path, file), content);
  return path;
}

const SECRET = "whsec_0123456789abcdef0123456789abcdef";
const VECTOR = {
  ...{ name: "ours", secret: SECRET, now: 1_795_000_000, tolerance_s: 300, body_base64: "e30=", seed_rule: "accept" },
  header: signatureHeader([SECRET], 1_795_000_000, Buffer.from("{}")),
};
const WRONG = { ...VECTOR, name: "of another second", header: VECTOR.header.replace("t=1795000000", "t=1795000001") };

/** What `npm run corpora` makes of a data folder, with two corpora that need no server. */
async function run(data: string, ...names: string[]) {
  const silent = { begins: () => undefined, ended: () => undefined };
  const played = await playData(data, [publicSuffixList, webhookSignature], names, silent);
  const counts = played.results.map(({ name, tally }) => [name, tally.cases, tally.passed, tally.failed.length]);
  return { ...played, counts };
}

describe("a tally", () => {
  it("without a case has failed", async () => {
    const tally = await playCorpus({ name: "x", run: () => undefined }, dir);
    assert.deepEqual([tally.cases, tally.failed.length], [0, 1]);
  });

  it("of checks alone has no case, and has failed", async () => {
    const tally = await playCorpus({ name: "x", run: (_dir, { check }) => check("memory", true, true) }, dir);
    assert.deepEqual([tally.cases, tally.passed, tally.failed.length], [0, 0, 1]);
  });

  it("counts a check only when it fails, and never as a case", () => {
    const tally = createTally();
    tally.judge("one", 1, 1);
    tally.check("held", true, true);
    tally.check("not held", true, false);
    assert.deepEqual([tally.cases, tally.passed, tally.failed.map((one) => one.case)], [1, 1, ["not held"]]);
  });

  it("keeps what was counted when a case throws or the runner breaks off", async () => {
    const tally = await playCorpus(
      {
        name: "x",
        async run(_dir, { judge, attempt }) {
          judge("first", 1, 1);
          await attempt("second", () => Promise.reject(new Error("refused")));
          await attempt("third", () => judge("third", 1, 1));
          throw new Error("the stage is gone");
        },
      },
      dir,
    );
    assert.deepEqual([tally.cases, tally.passed, tally.explained.length], [3, 2, 0]);
    assert.deepEqual(
      tally.failed.map((one) => one.case),
      ["second", "the whole folder"],
    );
    assert.match(String(tally.failed[0]?.got), /refused/);
  });
});

describe("a side file", () => {
  it("that is not there leaves the other's cases as they are", async () => {
    const given = [{ set: "x", id: "1", address: "a@example.com", category: "ISEMAIL_VALID_CATEGORY", diagnosis: "" }];
    const tally = await playCorpus(addressSyntax, folder("isemail-alone", { "isemail.json": JSON.stringify(given) }));
    assert.deepEqual([tally.cases, tally.passed, tally.failed], [1, 1, []]);
    assert.deepEqual(tally.notes, ["without flanker.json"]);
  });

  it("that cannot be read fails and stands for no expectations", () => {
    const tally = createTally();
    assert.equal(readSide(tally, join(folder("broken", { "expected.json": "{" }), "expected.json")), null);
    assert.deepEqual([tally.cases, tally.failed.length], [0, 1]);
  });

  it("and the collection's own papers are no cases; every other file is", () => {
    const path = folder("papers", {
      ...{
        "README.md": "",
        "UPSTREAM-README.md": "",
        LICENSE: "",
        "LICENSE.txt": "",
        COPYING: "",
        ".gitattributes": "",
      },
      ...{ "expected.json": "{}", "licence-renewal.eml": "", "007": "", "mail.raw": "" },
    });
    assert.deepEqual(caseFiles(path), ["007", "licence-renewal.eml", "mail.raw"]);
    assert.deepEqual(caseFiles(join(path, "not-there")), []);
  });
});

describe("what the MX must answer", () => {
  for (const [bytes, code] of [
    ["a\r\n\r\nb\r\n", "250"],
    ["a\r\n\r\nb\rc\r\n", "554"],
    ["a\r\n\nb\r\n", "554"],
    ["a\r\n\r\n\0\r\n", "554"],
  ] as const) {
    it(`to ${JSON.stringify(bytes)} is ${code}`, () => assert.equal(answerTo(Buffer.from(bytes)), code));
  }
});

describe("a data folder", () => {
  it("with folders that nobody knows, and without some that we do, passes with what it has", async () => {
    const data = join(dir, "one-unknown");
    folder("one-unknown/webhook-signature", { "vectors.json": JSON.stringify([VECTOR]) });
    folder("one-unknown/carrier-pigeons", { "1.eml": "From: a@example.com\r\n\r\n" });
    folder("one-unknown/LICENSES", {});
    const { counts, without_runner, missing, is_wrong } = await run(data);
    assert.deepEqual(counts, [["webhook-signature", 1, 1, 0]]);
    assert.deepEqual([without_runner, missing, is_wrong], [["carrier-pigeons"], ["public-suffix-list"], false]);
    assert.equal((await run(data, "public-suffix-list")).is_wrong, true, "it was asked for");
  });

  it("fails with a corpus without cases, and plays the others", async () => {
    const data = join(dir, "one-empty");
    folder("one-empty/webhook-signature", { "vectors.json": JSON.stringify([VECTOR]) });
    folder("one-empty/public-suffix-list", { "README.md": "no cases" });
    const { counts, is_wrong } = await run(data);
    assert.deepEqual(counts, [
      ["public-suffix-list", 0, 0, 1],
      ["webhook-signature", 1, 1, 0],
    ]);
    assert.equal(is_wrong, true);
  });

  it("fails with a difference, which is one of the cases", async () => {
    folder("wrong/webhook-signature", { "vectors.json": JSON.stringify([WRONG, VECTOR]) });
    const { counts, is_wrong } = await run(join(dir, "wrong"));
    assert.deepEqual([counts, is_wrong], [[["webhook-signature", 2, 1, 1]], true]);
  });

  it("without any corpus fails", async () => {
    folder("bare/carrier-pigeons", {});
    assert.equal((await run(join(dir, "bare"))).is_wrong, true);
  });
});
