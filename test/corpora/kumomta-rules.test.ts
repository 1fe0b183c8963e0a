import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { plainest, readRules } from "./kumomta-rules.ts";

describe("rules in TOML", () => {
  it("are read from all four kinds of strings, whatever quotes stand within", () => {
    const toml = `[rules]
# a comment with "quotes"
InvalidRecipient = [
  "^550 (user doesn't exist|unknown)", # it's a comment
  '^550 "no" such user',
  """^551 a "quoted" word""",
  '''^551 it's gone''',
]
"QuotaIssues" = ["^552 \\\\d+ \\"full\\""]
`;
    assert.deepEqual(readRules(toml), [
      { group: "InvalidRecipient", pattern: "^550 (user doesn't exist|unknown)" },
      { group: "InvalidRecipient", pattern: '^550 "no" such user' },
      { group: "InvalidRecipient", pattern: '^551 a "quoted" word' },
      { group: "InvalidRecipient", pattern: "^551 it's gone" },
      { group: "QuotaIssues", pattern: '^552 \\d+ "full"' },
    ]);
  });
});

describe("a reply that a rule means", () => {
  for (const [pattern, reply] of [
    ["^550 (user doesn't exist|unknown)", "550 user doesn't exist"],
    ["(?i)^550 5\\.1\\.1 No such user", "550 5.1.1 No such user"],
    ["^(451|550) [45]\\.1\\.[1234] ", "451 4.1.1 "],
    ["^\\d{3} [45]\\.7\\.27 ", "450 4.7.27 "],
    ["^5\\d{2} [45]\\.7\\.17 ", "500 5.7.17 "],
    ["^554 \\(RTR:[A-Z]+\\) .+", "554 (RTR:A)  "],
    ["^550 <[^>]+> (?P<what>unknown|gone)$", "550 <x> unknown"],
  ] as const) {
    it(`of ${pattern} is ${reply}`, () => assert.equal(plainest(pattern), reply));
  }

  it("is none where the expression is none of JavaScript's, or matches nothing so plain", () => {
    assert.equal(plainest("(?<=a)++"), null);
    assert.equal(plainest("^550 (?=x)y"), null);
  });
});
