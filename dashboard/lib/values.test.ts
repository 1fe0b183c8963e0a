// What people type or drop, on its way to the API and to files: rules, variables of templates, CSV, signatures, differences.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, it } from "node:test";
import { diffLines } from "diff";
import { checkSignature } from "./check-signature.ts";
import { toCsv } from "./csv.ts";
import { foldLines, isChanged, toLines } from "./difference.ts";
import { sayOfField, splitAddresses } from "./fields.ts";
import { change, isGroup, newLeaf, sayTree, toDraft, toMatch } from "./rule-tree.ts";
import { samplesOf } from "./samples.ts";
import { toVariables } from "./template-values.ts";

const leaf = (field: string, comparator: string, value: unknown) => ({ field, comparator, value });

describe("the conditions of a rule", () => {
  const TREES = [
    { all: [leaf("subject", "contains", "invoice"), leaf("size", "gt", 1_000)] },
    {
      any: [
        leaf("spf", "equals", "pass"),
        { all: [leaf("has_attachments", "equals", true), leaf("sender", "exists", false)] },
      ],
    },
    { all: [{ not: leaf("recipient_tag", "exists", true) }] },
    { all: [{ not: { any: [leaf("sender", "equals", "a@b.example"), leaf("sender", "equals", "c@d.example")] } }] },
    { all: [{ field: "header", comparator: "contains", value: "x", header_name: "List-Id" }] },
    { all: [leaf("subject", "in", ["Order", "Lind, Maja", 'the "best"', '"quoted"', " padded "])] },
  ];
  for (const tree of TREES) {
    it(`come back from the editor as they were: ${sayTree(tree)}`, () => {
      assert.deepEqual(toMatch(toDraft(tree)), tree);
    });
  }

  it("several values are split at commas, but for those in quotes", () => {
    const typed = { ...newLeaf(), field: "subject", comparator: "in", value: 'one,  two , "three, four",, ' };
    assert.deepEqual(toMatch(typed), leaf("subject", "in", ["one", "two", "three, four"]));
  });

  it("are a sentence with brackets where they are needed", () => {
    const match = {
      all: [leaf("subject", "contains", "invoice"), { any: [leaf("spf", "equals", "pass"), leaf("size", "gt", 10)] }],
    };
    assert.equal(sayTree(match), "Subject contains “invoice” and (SPF is “pass” or Size in bytes is more than 10)");
    assert.equal(sayTree({ not: leaf("sender", "exists", true) }), "none of: Sender is there");
  });

  it("one is changed or taken out, and the others stay", () => {
    const tree = toDraft({ all: [leaf("subject", "contains", "a"), leaf("subject", "contains", "b")] });
    const [first, second] = tree.children;
    assert.ok(first && second && !isGroup(first));
    const changed = change(tree, first.id, () => ({ ...first, value: "c" }));
    assert.deepEqual(toMatch(changed), { all: [leaf("subject", "contains", "c"), leaf("subject", "contains", "b")] });
    assert.deepEqual(toMatch(change(tree, first.id, () => null)), { all: [leaf("subject", "contains", "b")] });
  });
});

describe("a field of a form", () => {
  it("with addresses is split at commas, semicolons, line ends and spaces, and names stay whole", () => {
    assert.deepEqual(
      splitAddresses(' a@x.example b@x.example;c@x.example,\n"Lind, Ada" <d@x.example>, Ada Lind <e@x.example> '),
      [...["a@x.example", "b@x.example", "c@x.example", '"Lind, Ada" <d@x.example>', "Ada Lind <e@x.example>"]],
    );
    assert.deepEqual(splitAddresses('open" quote, <open'), ['open"', "quote", "<open"]);
    assert.deepEqual(splitAddresses(" ,; "), []);
  });

  it("that is wrong is not called by the name that programs use, and a wrong entry is named", () => {
    const sentence = "The 'to[3]' field is not an e-mail address: has no @.";
    assert.equal(sayOfField(sentence, "nonsense"), "“nonsense” is not an e-mail address: has no @.");
    assert.equal(sayOfField(sentence), "Is not an e-mail address: has no @.");
    assert.equal(sayOfField("The 'url' field is not allowed: This is not a URL."), "This is not a URL.");
    const path = "The 'match.all[0].value' field is no expression.";
    assert.equal(sayOfField(path), path);
    assert.equal(sayOfField("The domain was added already.", "x"), "The domain was added already.");
  });
});

describe("the variables of a template", () => {
  it("are nested by their names, and numbers, lists and truth are what they look like", () => {
    const typed = {
      "user.name": "Maja",
      total: "12.5",
      paid: "true",
      code: "007",
      "items[0].name": "Tea",
      list: '["a", 1]',
    };
    assert.deepEqual(toVariables({ ...typed, empty: "" }), {
      ...{ user: { name: "Maja" }, total: 12.5, paid: true, code: "007", items: [{ name: "Tea" }], list: ["a", 1] },
    });
    assert.deepEqual(toVariables({ broken: "[1," }), { broken: "[1," });
    const asWritten = { price: "12.50", order: "12345678901234567890", version: "1.2.3", sign: "-" };
    assert.deepEqual(toVariables(asWritten), asWritten);
  });

  it("cannot change what all objects have", () => {
    toVariables({ "__proto__.polluted": "yes", "constructor.prototype.polluted": "yes" });
    assert.equal(({} as Record<string, unknown>).polluted, undefined);
    assert.deepEqual(toVariables({ "constructor.name": "Ada" }), { constructor: { name: "Ada" } });
  });
});

describe("a table as CSV", () => {
  it("quotes what needs it, and a spreadsheet runs nothing of it", () => {
    const text = toCsv(
      ["name", "total"],
      [
        ['Lind, "M"', 1],
        ["=1+1", -5],
        ["@SUM(A1)", null],
        ["+49 30", 0],
      ],
    );
    assert.deepEqual(text.split("\r\n"), ["name,total", '"Lind, ""M""",1', "'=1+1,-5", "'@SUM(A1),", "'+49 30,0", ""]);
  });
});

describe("a signature", () => {
  const [secret, body, id, timestamp] = ["whsec_c2VjcmV0LWtleQ==", '{"a":1}', "evt_1", "1764150000"];
  const own = createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex");
  const standard = createHmac("sha256", Buffer.from("c2VjcmV0LWtleQ==", "base64"))
    .update(`${id}.${timestamp}.${body}`)
    .digest("base64");
  const check = (signature: string, change: object = {}) =>
    checkSignature({ secret, signature, id, timestamp, body, ...change });

  it("of this secret and body is right, in both forms, also pasted with its header's name", async () => {
    for (const signature of [
      `t=${timestamp},v1=${own}`,
      `X-Service-Signature: t=${timestamp}, v1=${own}`,
      `v1,AAAA v1,${standard}`,
    ]) {
      const { isRight, at } = await check(signature);
      assert.deepEqual([isRight, at], [true, "2025-11-26T09:40:00.000Z"], signature);
    }
  });

  it("of another body or secret is wrong, and what is none is said", async () => {
    const signature = `t=${timestamp},v1=${own}`;
    assert.equal((await check(signature, { body: '{"a": 1}' })).isRight, false);
    assert.equal((await check(signature, { secret: "whsec_other" })).isRight, false);
    assert.match((await check("sha256=abc")).reason, /has the form/);
    assert.match((await check(`v1,${standard}`, { id: " " })).reason, /needs webhook-id/);
  });
});

describe("a difference", () => {
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, n) => `line ${from + n}\n`).join("");
  const shown = (before: string, after: string) =>
    foldLines(toLines(diffLines(before, after))).map(({ line }) => (line === null ? "…" : line.sign + line.text));

  it("shows three lines around a change and folds the rest, once a stretch", () => {
    const before = lines(1, 30);
    const after = before.replace("line 10\n", "changed\n");
    assert.deepEqual(shown(before, after), [
      ...["…", " line 7", " line 8", " line 9", "-line 10", "+changed", " line 11", " line 12", " line 13", "…"],
    ]);
  });

  it("of two equal texts is none", () => {
    assert.equal(isChanged(toLines(diffLines(lines(1, 3), lines(1, 3)))), false);
    assert.equal(isChanged(toLines(diffLines("", "a"))), true);
  });
});

describe("the first mail as code", () => {
  const given = { origin: "https://mail.example.eu", key: "svc_test_abc", from: "hello@shop.example" };

  it("says the same mail with the same key in each language", () => {
    const samples = samplesOf(given);
    assert.deepEqual(
      samples.map(({ language }) => language),
      ["curl", "Node", "Python", "Ruby", "PHP", "Go"],
    );
    for (const { language, code } of samples) {
      for (const part of [...Object.values(given), "you@example.com", "Hello", "<p>Hello</p>"])
        assert.ok(code.includes(part), `${language}: ${part}`);
    }
  });

  it("curl sends JSON of the API's own fields", () => {
    const [, body = ""] = /-d '(.*)'$/s.exec(samplesOf(given)[0]?.code ?? "") ?? [];
    assert.deepEqual(JSON.parse(body), {
      ...{ from: given.from, to: ["you@example.com"], subject: "Hello", html_body: "<p>Hello</p>" },
    });
  });
});
