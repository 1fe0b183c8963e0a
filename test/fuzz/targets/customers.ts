// What customers give us: templates, routing rules, patterns, bodies of requests.
import assert from "node:assert/strict";
import Fastify from "fastify";
import { readJsonBodies } from "../../../src/api/body/json-body.ts";
import { compileTree, holds, trace } from "../../../src/inbound/rules/conditions/conditions.ts";
import { compileExpression } from "../../../src/inbound/rules/conditions/expression.ts";
import { LEAVES_MAX, readConditions, readTree } from "../../../src/inbound/rules/conditions/read-tree.ts";
import { COMPARATORS, type Facts, FIELDS } from "../../../src/inbound/rules/conditions/types.ts";
import { compilePattern } from "../../../src/mail/glob-pattern.ts";
import { createClock } from "../../../src/platform/clock.ts";
import { createWorkMeter } from "../../../src/platform/process/thread-ms.ts";
import { Refusal } from "../../../src/platform/refusal.ts";
import { OUTPUT_BYTES_MAX } from "../../../src/templates/language/nodes.ts";
import { parseTemplate } from "../../../src/templates/language/parse.ts";
import { renderTemplate } from "../../../src/templates/language/render.ts";
import { assertStorableAll, assertUnpolluted } from "../invariants.ts";
import type { Target } from "../target.ts";

const MARK = "<zqx7&\"'>";
const VARIABLES = {
  ...{ name: MARK, empty: "", zero: 0, yes: true, no: false, nothing: null, user: { name: MARK, age: 30 } },
  ...{
    items: [
      { name: MARK, qty: 1 },
      { name: "b", items: [1, 2] },
    ],
    words: ["a", MARK],
    deep: { a: { b: { c: MARK } } },
  },
};
const TEMPLATE_WORDS = [
  ...[
    "{{name}}",
    "{{{name}}}",
    "{{&name}}",
    "{{#if yes}}",
    "{{else}}",
    "{{/if}}",
    "{{#each items}}",
    "{{/each}}",
    "{{#unless no}}",
    "{{/unless}}",
  ],
  ...[
    "{{this}}",
    "{{../name}}",
    "{{@index}}",
    "{{@root.name}}",
    "{{user.name}}",
    "{{constructor}}",
    "{{__proto__}}",
    "{{items.[0].name}}",
    "{{items.length}}",
  ],
  ...[
    "{{! c }}",
    "{{!-- c --}}",
    "{{~name~}}",
    "\\{{name}}",
    '{{default name "x"}}',
    "{{toString}}",
    "{{#each words}}",
    "{{lookup . 'constructor'}}",
    "{{#with user}}",
  ],
];

const template: Target = {
  name: "template",
  holds:
    "a template is refused with a place or renders within its limits, escapes, reaches no prototype, and twice the same",
  seeds: { lines: "template.jsonl" },
  words: TEMPLATE_WORDS,
  bytes_max: 64 * 1_024,
  check(input) {
    const source = input.toString("utf8");
    const parsed = parseTemplate(source);
    if (!parsed.ok) {
      assert.ok(parsed.line >= 1 && parsed.column >= 1 && parsed.message.length <= 300, parsed.message);
      return parsed.message.replace(/'.*?'/g, "").slice(0, 40);
    }
    const render = () => renderTemplate(parsed.template, VARIABLES, { escape: "html", processorMs: () => 0 });
    const rendered = render();
    assert.deepEqual(render(), rendered);
    if (!rendered.ok) return rendered.reason;
    assert.ok(Buffer.byteLength(rendered.text) <= OUTPUT_BYTES_MAX);
    const isRaw = /\{\{~?\{|\{\{~?&/.test(source) || source.includes(MARK);
    if (!isRaw) assert.ok(!rendered.text.includes("<zqx7"), "a value was not escaped");
    if (!/native|function|object/.test(source)) assert.doesNotMatch(rendered.text, /native code|\[object|function/);
    assertUnpolluted();
    return `${parsed.template.tags > 0} ${parsed.template.reads_all} ${Math.min(4, parsed.template.variables.length)}`;
  },
};

const FACTS: Facts = {
  ...{
    sender: ["alice@example.com"],
    sender_domain: ["example.com"],
    envelope_sender: ["b@bounce.example"],
    recipient: ["in@shop.example"],
  },
  ...{
    recipient_tag: ["x"],
    subject: [`Re: Ünïcode ${"a".repeat(200)}`],
    headers: [{ name: "X-A", value: "aaaaaaaaaaaaaaaaaaaaaaaa!" }],
  },
  ...{
    spf: "pass",
    dkim: "fail",
    dmarc: "none",
    spam_score: 3.5,
    size: 1_000,
    has_attachments: true,
    auto_submitted: false,
  },
};
const RULE_WORDS = [
  ...[
    '{"all":[',
    '{"any":[',
    '{"not":',
    "]}",
    '{"field":"subject","comparator":"contains","value":"a"}',
    '"header_name":"x-a"',
    '"matches"',
    '"(a+)+$"',
  ],
  ...[
    '{"field":"header","header_name":"X-A","comparator":"matches","value":"(a|a)*b"}',
    '"__proto__":',
    "null",
    "1e999",
    '"in","value":["a"]',
  ],
  ...FIELDS.map((field) => `"${field}"`),
  ...COMPARATORS.map((comparator) => `"${comparator}"`),
];

function json(input: Buffer): { value: unknown } | null {
  try {
    // RFC 8259 §8.1: a byte order mark may be passed over.
    return { value: JSON.parse(input.toString("utf8").replace(/^\ufeff/, "")) };
  } catch {
    return null;
  }
}

const rules: Target = {
  name: "rules",
  holds:
    "any JSON is refused with a path or is a tree whose answer is that of its trace, and the opposite of its negation",
  seeds: { lines: "rules.jsonl" },
  words: RULE_WORDS,
  bytes_max: 16_384,
  async check(input) {
    const given = json(input);
    if (given === null) return "no JSON";
    const read = Array.isArray(given.value) ? readConditions(given.value, "match") : readTree(given.value, "match");
    if (!read.ok) {
      assert.ok(read.field.startsWith("match") && read.field.length <= 200, read.field);
      return read.problem.slice(0, 30);
    }
    const pause = async () => undefined;
    const compiled = compileTree(read.tree);
    const answer = await holds(compiled, FACTS, pause);
    const { matched, steps } = await trace(compiled, FACTS, pause);
    assert.equal(matched, answer, "the trace says otherwise");
    assert.ok(steps.length <= LEAVES_MAX);
    assert.equal(await holds(compileTree({ not: read.tree }), FACTS, pause), !answer);
    assertUnpolluted();
    return `${answer} ${steps.map(({ field, comparator }) => `${field} ${comparator}`).join()}`.slice(0, 80);
  },
};

const LONG = `${"a".repeat(2_040)}!`;

const ruleExpression: Target = {
  name: "rule-expression",
  holds: "an expression is refused or matched in linear time, and agrees with JavaScript on plain ones",
  seeds: { lines: "rule-expression.jsonl", shared: ["regex-redos/*"] },
  words: [
    "(",
    ")",
    "*",
    "+",
    "?",
    "{1,64}",
    "{1000}",
    "|",
    "[a-z]",
    "\\w",
    "(?i)",
    "^",
    "$",
    ".",
    "(a+)+",
    "(?:",
    "\\pL",
    "[^",
    "\\1",
    "(?=a)",
  ],
  bytes_max: 256,
  check(input) {
    const source = input.toString("utf8");
    const compiled = compileExpression(source);
    if (compiled.kind === "problem") return compiled.problem.slice(0, 50);
    compiled.expression.matches(LONG);
    const isPlain = /^[a-z0-9 ]*(?:[.?*+]?[a-z0-9 ])*$/.test(source) && source.length < 30;
    for (const text of ["alice@example.com", "hello world", ""]) {
      if (isPlain) assert.equal(compiled.expression.matches(text), new RegExp(source, "u").test(text));
    }
    return `${compiled.expression.matches(LONG)} ${isPlain}`;
  },
};

/** By definition, in a table of prefixes. */
function globMatches(glob: string, text: string): boolean {
  const [wanted, given] = [[...glob.toLowerCase()], [...text.toLowerCase()]];
  let row = [true, ...given.map(() => false)];
  for (const one of wanted) {
    const next = [one === "*" && row[0] === true];
    for (let at = 0; at < given.length; at += 1) {
      const step = one === "*" ? row[at + 1] || next[at] : row[at] && (one === "?" || one === given[at]);
      next.push(step === true);
    }
    row = next;
  }
  return row.at(-1) === true;
}

const glob: Target = {
  name: "glob",
  holds: "a glob matches what its definition says, and expressions behind re: take no longer than their limit",
  seeds: { lines: "glob.jsonl" },
  words: ["*", "?", "**", "@example.com", "re:", "+", ".", "é", "İ", "😀", "(a*)*", "{255}"],
  bytes_max: 512,
  check(input) {
    const [pattern = "", text = ""] = input.toString("utf8").split("\n");
    const compiled = compilePattern(pattern);
    if (compiled.kind === "problem") return compiled.problem.slice(0, 30);
    const answer = compiled.pattern.matches(text);
    compiled.pattern.matches(LONG);
    if (!pattern.startsWith("re:")) assert.equal(answer, globMatches(pattern, text));
    return `${answer} ${pattern.startsWith("re:")}`;
  },
};

const app = Fastify({ bodyLimit: 1024 * 1024 });
readJsonBodies(app, createWorkMeter(createClock({})));
app.setErrorHandler((error, _request, answer) => {
  if (!(error instanceof Refusal)) throw error;
  return answer.code(400).send({ error: error.kind });
});
app.post("/", async (request) => ({ body: request.body ?? null }));

const jsonBody: Target = {
  name: "json-body",
  holds:
    "a body is 400, or exactly what JSON.parse reads, no deeper than 32 and without a key that reaches a prototype",
  seeds: { lines: "json-body.jsonl" },
  words: [
    '"__proto__":{"polluted":true}',
    '"constructor":{"prototype":{}}',
    "[[[[[[[[",
    "]]]]]]]]",
    "{",
    "}",
    "\\u0000",
    "\\ud800",
    '"\\u005f_proto__":1',
    "1e400",
    "\ufeff",
  ],
  bytes_max: 32_768,
  async check(input) {
    const reply = await app.inject({
      method: "POST",
      url: "/",
      payload: input,
      headers: { "content-type": "application/json" },
    });
    assertUnpolluted();
    if (reply.statusCode !== 200) {
      assert.equal(reply.statusCode, 400, reply.body);
      return `400 ${reply.json().error}`;
    }
    if (input.length === 0) return "empty";
    const wanted = json(input);
    assert.ok(wanted !== null, "what is not JSON was taken");
    assert.deepEqual(reply.json().body, JSON.parse(JSON.stringify(wanted.value)));
    const text = JSON.stringify(wanted.value) ?? "";
    assert.doesNotMatch(text, /"__proto__":/);
    assertStorableAll("body", wanted.value);
    return `200 ${typeof wanted.value}`;
  },
};

export const CUSTOMER_TARGETS: readonly Target[] = [template, rules, ruleExpression, glob, jsonBody];
