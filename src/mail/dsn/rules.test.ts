// The data files of the bounce reader: every rule has its own id, a reason, and an example that it recognizes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startProcessorTime } from "../../../test/support/processor-time.ts";
import { addressSource } from "./address-text.ts";

type Rule = { id: string; match: string; reason: string; example: string; unless?: string };

const files = ["intros", "report-texts", "sentences", "separators", "stages", "subjects"];
const read = (name: string): Rule[] => JSON.parse(readFileSync(join(import.meta.dirname, `${name}.json`), "utf8"));

for (const name of files) {
  test(`every rule of ${name}.json has an id of its own, a reason, and recognizes its example`, () => {
    const rules = read(name);
    assert.equal(new Set(rules.map(({ id }) => id)).size, rules.length);
    for (const { id, match, reason, example, unless } of rules) {
      assert.match(id, /^[a-z0-9-]+$/);
      assert.ok(reason.length > 3, id);
      assert.match(example, new RegExp(match.replaceAll("ADDRESS", addressSource), "iu"), id);
      if (unless !== undefined) assert.doesNotMatch(example, new RegExp(unless, "iu"), id);
    }
  });
}

test("every sentence rule finds the address in its example", () => {
  for (const { id, match, example } of read("sentences")) {
    const found = new RegExp(match.replaceAll("ADDRESS", addressSource), "iu").exec(example);
    assert.match(found?.slice(1).find((group) => group !== undefined) ?? "", /^user@example\.com\.?$/, id);
  }
});

test("no rule takes more than a moment for 64 KiB of its own words", () => {
  for (const name of files) {
    for (const { id, match, example } of read(name)) {
      const regexp = new RegExp(match.replaceAll("ADDRESS", addressSource), "iu");
      // As the readers use them: on lines of 1,000 characters.
      const line = `${example.slice(0, -1)} `.repeat(40).slice(0, 1_000);
      const used = startProcessorTime();
      for (let lines = 0; lines < 66; lines++) regexp.test(line);
      assert.ok(used() < 500, `${name} ${id}`);
    }
  }
});
