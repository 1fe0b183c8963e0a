// Third-party cases in the normal run: the corpora that are quick; `npm run corpora`, a step of the proof run, plays all.
// Skipped where ../shared/data is not there.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, describe, it } from "node:test";
import { CORPORA } from "./all.ts";
import { closeMxStage } from "./mx-stage.ts";
import { closeReturnedStage } from "./returned-stage.ts";
import { playCorpus } from "./tally.ts";

const DATA = resolve(import.meta.dirname, "../../../shared/data");

after(closeMxStage);
after(closeReturnedStage);

describe("third-party cases", () => {
  for (const corpus of CORPORA.filter(({ slow }) => !slow)) {
    const { name } = corpus;
    const dir = join(DATA, name);
    const skip = existsSync(dir) ? false : `${dir} is not there`;
    it(`of ${name} pass, or are explained`, { skip }, async () => {
      const { cases, passed, explained, failed } = await playCorpus(corpus, dir);
      assert.deepEqual(failed, []);
      assert.ok(cases > 0 && passed + explained.length === cases, `${passed} of ${cases} passed`);
    });
  }
});

describe("SPF cases that nobody has seen yet", () => {
  const tests = {
    "a name in EHLO with a space is no domain": { helo: "JUMPIN' JUPITER", result: "fail" },
    "the host's own name": { helo: "mx.example.com", result: "pass" },
    "an empty name": { helo: "", result: "fail" },
  };
  const zonedata = { "example.com": [{ SPF: "v=spf1 a:%{h} -all" }], "mx.example.com": [{ A: "192.0.2.1" }] };

  it("are played whatever the client calls itself", async () => {
    const dir = mkdtempSync(join(tmpdir(), "spf-cases-"));
    try {
      const client = { host: "192.0.2.1", mailfrom: "a@example.com" };
      const cases = Object.entries(tests).map(([name, one]) => [name, { ...one, ...client }]);
      const suite = [{ description: "EHLO", zonedata, tests: Object.fromEntries(cases) }];
      writeFileSync(join(dir, "rfc7208-tests.json"), JSON.stringify(suite));
      const corpus = CORPORA.find(({ name }) => name === "spf-rfc7208")!;
      const { passed, failed, notes } = await playCorpus(corpus, dir);
      assert.deepEqual([passed, failed], [cases.length, []]);
      assert.ok(notes.includes("2 over SMTP"), notes.join());
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});
