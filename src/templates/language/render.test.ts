import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseTemplate } from "./parse.ts";
import { escapeHtml, renderTemplate, valueAt } from "./render.ts";

type Values = Record<string, unknown>;

function render(source: string, variables: Values = {}, mode: "html" | "none" = "html"): string {
  const parsed = parseTemplate(source);
  assert.ok(parsed.ok, parsed.ok ? "" : parsed.message);
  const rendered = renderTemplate(parsed.template, variables, { escape: mode, processorMs: () => 0 });
  assert.ok(rendered.ok, rendered.ok ? "" : rendered.message);
  return rendered.text;
}

function table(title: string, cases: [source: string, variables: Values, want: string][]): void {
  describe(title, () => {
    for (const [source, variables, want] of cases) {
      test(JSON.stringify(source), () => assert.equal(render(source, variables), want));
    }
  });
}

const shop = {
  name: "Anna & <Bo>",
  user: { name: "Anna", tags: ["a", "b"] },
  items: [
    { name: "one", price: 1.5, parts: ["x", "y"] },
    { name: "two", price: 0, parts: [] },
  ],
  prices: { apple: 1, pear: 2 },
  yes: true,
  no: false,
  zero: 0,
  empty: "",
  nothing: null,
  none: [],
  "first name": "Zoë",
};

table("printing", [
  ["Hi {{name}}!", shop, "Hi Anna &amp; &lt;Bo&gt;!"],
  ["{{{name}}}|{{&name}}", shop, "Anna & <Bo>|Anna & <Bo>"],
  ["{{ user.name }}{{user/name}}{{this.user.name}}{{./user.name}}", shop, "AnnaAnnaAnnaAnna"],
  ["{{items[0].name}} {{items.[1].name}} {{items[0].parts[1]}}", shop, "one two y"],
  ["{{items.length}} {{user.tags.length}}", shop, "2 2"],
  ["{{[first name]}} {{this.[first name]}}", shop, "Zoë Zoë"],
  ["{{yes}} {{no}} {{zero}} {{items[0].price}}", shop, "true false 0 1.5"],
  ["[{{missing}}{{nothing}}{{empty}}{{user.missing.deeper}}{{name.length}}]", shop, "[]"],
  ["\\{{name}} and \\\\{{user.name}}", shop, "{{name}} and \\Anna"],
  ["a{{! note }}b{{!-- }} note --}}c{{!--}}d", shop, "abcd"],
  ["{{default name 'friend'}}", {}, "friend"],
  ["{{default name 'friend'}}", { name: "" }, "friend"],
  ["{{default name 'friend'}}", { name: null }, "friend"],
  ["{{default name 'friend'}}", { name: 0 }, "0"],
  ["{{default name 'friend'}}", { name: false }, "false"],
  ["{{default nick user.name}}{{default nick 12}}{{default nick nick}}", { user: { name: "A" } }, "A12"],
  ['{{default name "<i>"}}{{{default name "<i>"}}}', {}, "&lt;i&gt;<i>"],
  ['{{default name "a \\"b\\""}}', {}, "a &quot;b&quot;"],
  ['{{default name "}} {{x"}}', {}, "}} {{x"],
]);

table("conditions", [
  ["{{#if yes}}1{{else}}2{{/if}}", shop, "1"],
  ["{{#if no}}1{{else}}2{{/if}}", shop, "2"],
  [
    "{{#if zero}}1{{/if}}{{#if empty}}2{{/if}}{{#if nothing}}3{{/if}}{{#if none}}4{{/if}}{{#if missing}}5{{/if}}",
    shop,
    "",
  ],
  ["{{#if user}}1{{/if}}{{#if items}}2{{/if}}{{#if name}}3{{/if}}", shop, "123"],
  ["{{#if no}}1{{else if zero}}2{{else if yes}}3{{else}}4{{/if}}", shop, "3"],
  ["{{#if no}}1{{else if zero}}2{{else if none}}3{{else}}4{{/if}}", shop, "4"],
  ["{{#if no}}1{{else unless no}}2{{/if}}", shop, "2"],
  ["{{#if no}}1{{else each items}}{{name}},{{/if}}", shop, "one,two,"],
  ["{{#unless no}}1{{else}}2{{/unless}}{{#unless yes}}3{{else}}4{{/unless}}", shop, "14"],
  ["{{^if no}}1{{/if}}{{#if no}}2{{^}}3{{/if}}", shop, "13"],
  ['{{#if true}}1{{/if}}{{#if false}}2{{/if}}{{#if "x"}}3{{/if}}{{#if 0}}4{{/if}}{{#if null}}5{{/if}}', shop, "13"],
]);

table("loops", [
  ["{{#each items}}{{name}} {{this.price}};{{/each}}", shop, "one 1.5;two 0;"],
  ["{{#each user.tags}}{{@index}}{{this}}{{@first}}{{@last}}{{@key}} {{/each}}", shop, "0atruefalse0 1bfalsetrue1 "],
  ["{{#each prices}}{{@key}}={{this}}{{#unless @last}}, {{/unless}}{{/each}}", shop, "apple=1, pear=2"],
  [
    "{{#each none}}x{{else}}empty{{/each}}{{#each missing}}x{{else}}absent{{/each}}{{#each name}}x{{^}}text{{/each}}",
    shop,
    "emptyabsenttext",
  ],
  [
    "{{#each items}}{{name}}:{{#each parts}}{{.}}{{../name}}{{../../user.name}}{{@../index}} {{/each}};{{/each}}",
    shop,
    "one:xoneAnna0 yoneAnna0 ;two:;",
  ],
  ["{{#each items}}{{#if price}}{{../user.name}}{{name}}{{/if}}{{/each}}", shop, "Annaone"],
  ["{{#each items}}{{@root.user.name}}{{user.name}}{{/each}}", shop, "AnnaAnna"],
  ["{{#each this}}{{@key}} {{/each}}", { a: 1, b: 2 }, "a b "],
  ["{{#each a}}{{#each this}}{{this}}{{/each}}|{{/each}}", { a: [[1, 2], [3], []] }, "12|3||"],
  ["{{#each a}}[{{this}}]{{/each}}", { a: ["", null, 0, "x"] }, "[][][0][x]"],
]);

table("white space", [
  ["a {{~yes~}} b", shop, "atrueb"],
  ["a {{~{yes}~}} b {{~! c ~}} d", shop, "atruebd"],
  ["a\n{{#if yes}}\nb\n{{else}}\nc\n{{/if}}\nd\n", shop, "a\nb\nd\n"],
  ["a\n  {{! note }}\nb\n  {{!-- note --}}\nc", shop, "a\nb\nc"],
  [
    "<ul>\n  {{#each user.tags}}\n  <li>{{this}}</li>\n  {{/each}}\n</ul>",
    shop,
    "<ul>\n  <li>a</li>\n  <li>b</li>\n</ul>",
  ],
  ["a {{#if yes~}} b {{~else~}} c {{~/if}} d", shop, "a b d"],
  ["a\r\n{{#if yes}}\r\nb\r\n{{/if}}\r\n", shop, "a\r\nb\r\n"],
]);

describe("escaping", () => {
  test("for HTML, all that Handlebars escapes", () => {
    assert.equal(
      escapeHtml(`<a href="x" b='y'>&\`=`),
      "&lt;a href&#x3D;&quot;x&quot; b&#x3D;&#x27;y&#x27;&gt;&amp;&#x60;&#x3D;",
    );
    assert.equal(escapeHtml("plain – text"), "plain – text");
  });

  test("none in a subject or a text part", () => {
    assert.equal(render("{{name}} {{{name}}}", shop, "none"), "Anna & <Bo> Anna & <Bo>");
  });

  test("what the author wrote is never escaped", () => {
    assert.equal(render("<p>&amp;</p>", {}), "<p>&amp;</p>");
  });
});

test("a default fills in for a variable that is absent or null, in prints, conditions and loops' outsides", () => {
  const parsed = parseTemplate("{{name}}{{#if vip}}!{{/if}}{{#each list}}{{../name}}{{name}}{{/each}}{{user.plan}}");
  assert.ok(parsed.ok);
  const defaults = new Map<string, string | boolean>([
    ["name", "friend"],
    ["vip", true],
    ["user.plan", "free"],
  ]);
  const options = { escape: "html" as const, processorMs: () => 0, defaults };
  const with_ = (variables: Values) => renderTemplate(parsed.template, variables, options);
  assert.deepEqual(with_({ list: [{}], vip: null }), { ok: true, text: "friend!friendfree" });
  assert.deepEqual(with_({ name: "", vip: false, user: { plan: "pro" } }), { ok: true, text: "pro" });
});

test("a list or an object is not printed; the answer names it and its place", () => {
  const parsed = parseTemplate("Hi\n {{user}}");
  assert.ok(parsed.ok);
  const options = { escape: "html" as const, processorMs: () => 0 };
  const object = renderTemplate(parsed.template, { user: {} }, options);
  assert.deepEqual(object, {
    ok: false,
    reason: "not_text",
    message: "'user' is an object, which cannot be printed",
    line: 2,
    column: 2,
  });
  const list = renderTemplate(parsed.template, { user: ["a"] }, options);
  assert.match(list.ok ? "" : list.message, /'user' is a list/);
});

test("valueAt follows own data properties only", () => {
  const value = {
    a: [{ b: 1 }],
    get trap() {
      throw new Error("a getter was called");
    },
  };
  assert.equal(valueAt(value, ["a", "0", "b"]), 1);
  assert.equal(valueAt(value, ["trap"]), undefined);
  assert.equal(valueAt(value, ["a", "map"]), undefined);
  assert.equal(valueAt("text", ["length"]), undefined);
  assert.equal(valueAt(null, ["x"]), undefined);
});
