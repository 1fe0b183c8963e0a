// The data files of the bounce reader: every rule has its own id, a reason, and an example that it recognizes.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startProcessorTime } from "../../../test/support/processor-time.ts";
import { anyOf } from "../any-of.ts";
import { addressSource } from "./address-text.ts";

type Rule = {
  id: string;
  match: string | string[];
  words?: Record<string, string[]>;
  reason: string;
  example: string;
  unless?: string | string[];
};

const files = ["footers", "intros", "report-texts", "sentences", "separators", "stages", "subjects"];
const read = (name: string): Rule[] => JSON.parse(readFileSync(join(import.meta.dirname, `${name}.json`), "utf8"));

function expressionOf({ match, words = {} }: Rule): RegExp {
  const meanings = Object.entries({ ADDRESS: addressSource, ...mapped(words) });
  return new RegExp(
    meanings.reduce((text, [word, meaning]) => text.replaceAll(word, meaning), anyOf(match)),
    "iu",
  );
}

function mapped(words: Record<string, string[]>): Record<string, string> {
  return Object.fromEntries(Object.entries(words).map(([word, of]) => [word, `(?:${anyOf(of)})`]));
}

for (const name of files) {
  test(`every rule of ${name}.json has an id of its own, a reason, and recognizes its example`, () => {
    const rules = read(name);
    assert.equal(new Set(rules.map(({ id }) => id)).size, rules.length);
    for (const rule of rules) {
      const { id, reason, example, unless } = rule;
      assert.match(id, /^[a-z0-9-]+$/);
      assert.ok(reason.length > 3, id);
      assert.match(example, expressionOf(rule), id);
      if (unless !== undefined) assert.doesNotMatch(example, new RegExp(anyOf(unless), "iu"), id);
    }
  });
}

test("every sentence rule finds the address in its example", () => {
  for (const rule of read("sentences")) {
    const found = expressionOf(rule).exec(rule.example);
    assert.match(found?.slice(1).find((group) => group !== undefined) ?? "", /^user@example\.com\.?$/, rule.id);
  }
});

test("no rule takes more than a moment for 64 KiB of its own words", () => {
  for (const name of files) {
    for (const rule of read(name)) {
      const { id, example } = rule;
      const regexp = expressionOf(rule);
      // As the readers use them: on lines of 1,000 characters.
      const line = `${example.slice(0, -1)} `.repeat(40).slice(0, 1_000);
      const used = startProcessorTime();
      for (let lines = 0; lines < 66; lines++) regexp.test(line);
      assert.ok(used() < 500, `${name} ${id}`);
    }
  }
});

test("every expression of the tables is short enough to be read", () => {
  const tables = globSync("../{dsn,smtp,spam}/*.json", { cwd: import.meta.dirname });
  assert.ok(tables.length >= 11, tables.join(" "));
  for (const name of tables) {
    const rows = JSON.parse(readFileSync(join(import.meta.dirname, name), "utf8"));
    if (!Array.isArray(rows)) continue;
    for (const { id, match = [], unless = [], pattern = [], all = [] } of rows) {
      for (const source of [match, unless, pattern, all].flat(2)) {
        assert.ok(String(source).length <= 200, `${name} ${id}: ${source}`);
      }
    }
  }
});
