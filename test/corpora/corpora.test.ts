// Third-party cases in the normal run: every corpus that is quick, as `npm run corpora` plays it. Skipped where
// ../shared/data is not there.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
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
  for (const corpus of CORPORA) {
    const { name, slow } = corpus;
    const dir = join(DATA, name);
    const why = existsSync(dir) ? "it takes long: npm run corpora plays it" : `${dir} is not there`;
    it(`of ${name} pass, or are explained`, { skip: existsSync(dir) && !slow ? false : why }, async () => {
      const { cases, passed, explained, failed } = await playCorpus(corpus, dir);
      assert.deepEqual(failed, []);
      assert.ok(cases > 0 && passed + explained.length === cases, `${passed} of ${cases} passed`);
    });
  }
});
