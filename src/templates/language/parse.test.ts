import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { processorMs } from "../../../test/support/processor-time.ts";
import {
  NESTING_MAX,
  PATH_KEYS_MAX,
  SOURCE_BYTES_MAX,
  TAGS_MAX,
  type Template,
  type TemplateProblem,
} from "./nodes.ts";
import { isTemplate, parseTemplate, parseVariableName, variablesOf } from "./parse.ts";

function refused(source: string): TemplateProblem {
  const parsed = parseTemplate(source);
  assert.equal(parsed.ok, false, `should be refused: ${String(source).slice(0, 80)}`);
  return parsed as TemplateProblem;
}

function parsed(source: string): Template {
  const result = parseTemplate(source);
  assert.ok(result.ok, result.ok ? "" : `${result.message} at ${result.line}:${result.column}`);
  return result.template;
}

describe("what is not in the language is refused with line and column", () => {
  const cases: [why: string, source: string, line: number, column: number, message: RegExp][] = [
    ["a partial", "Hi\n  {{> footer}}", 2, 3, /partials/],
    ["a partial block", "{{#> layout}}x{{/layout}}", 1, 1, /partials/],
    ["an inline block", 'x{{#*inline "a"}}y{{/inline}}', 1, 2, /inline/],
    ["a decorator", "{{* foo}}", 1, 1, /decorators/],
    ["a raw block", "a\n{{{{raw}}}} {{{{/raw}}}}", 2, 1, /raw blocks/],
    ["a helper of its own", "ab{{shout name}}", 1, 3, /no helper 'shout'/],
    ["the lookup helper", "{{lookup map key}}", 1, 1, /no helper 'lookup'/],
    ["the log helper", '{{log "x"}}', 1, 1, /no helper 'log'/],
    ["the with block", "{{#with user}}{{name}}{{/with}}", 1, 1, /no block 'with'/],
    ["a section", "\n\n{{#user}}{{name}}{{/user}}", 3, 1, /no block 'user'/],
    ["an inverse section", "{{^user}}x{{/user}}", 1, 1, /no block 'user'/],
    ["a sub-expression", "{{#if (eq a b)}}x{{/if}}", 1, 7, /sub-expressions/],
    ["block parameters", "{{#each items as |item|}}x{{/each}}", 1, 18, /block parameters/],
    ["a name=value argument", '{{name class="x"}}', 1, 1, /name=value/],
    ["a name=value argument of a block", "{{#if a includeZero=true}}x{{/if}}", 1, 1, /name=value/],
    ["a lone name=value", "{{a=1}}", 1, 1, /name of a variable/],
    ["a literal to print", '{{"text"}}', 1, 3, /name of a variable/],
    ["a number to print", "{{12}}", 1, 3, /name of a variable/],
    ["a block's word as a name", "{{if}}", 1, 1, /'if' opens a block/],
    ["a word of the language as a name", "{{#each default}}{{/each}}", 1, 9, /word of the language/],
    ["default without a fallback", "{{default name}}", 1, 1, /'default' takes/],
    ["default with three arguments", "{{default a b c}}", 1, 1, /'default' takes/],
    ["default of a literal", '{{default "a" "b"}}', 1, 11, /name of a variable/],
    ["if without a name", "{{#if}}x{{/if}}", 1, 1, /exactly one/],
    ["each with two names", "{{#each a b}}x{{/each}}", 1, 1, /exactly one/],
    ["each over a literal", '{{#each "abc"}}x{{/each}}', 1, 9, /name of a variable/],
    ["each over a loop value", "{{#each a}}{{#each @index}}x{{/each}}{{/each}}", 1, 20, /list or an object/],
    ["an unknown @ name", "{{@foo}}", 1, 3, /no '@foo'/],
    ["@index outside of a loop", "{{#if a}}\n{{@index}}{{/if}}", 2, 3, /only inside/],
    ["@index of a loop that is not there", "{{#each a}}{{@../index}}{{/each}}", 1, 14, /only inside/],
    ["../ outside of a loop", "{{#if a}}{{../b}}{{/if}}", 1, 12, /leads out of a loop/],
    ["../../ in one loop", "{{#each a}}{{../../b}}{{/each}}", 1, 14, /leads out of a loop/],
    ["this in the middle of a path", "{{a.this}}", 1, 3, /Invalid path/],
    ["a private name", "{{a.#b}}", 1, 5, /a # cannot stand/],
    ["a name that runs into brackets", "{{items[0]name}}", 1, 3, /not a name/],
    ["a NUL", "line\nx\0", 2, 2, /NUL/],
  ];
  for (const [why, source, line, column, message] of cases) {
    test(why, () => {
      const problem = refused(source);
      assert.match(problem.message, message);
      assert.deepEqual([problem.line, problem.column], [line, column], problem.message);
    });
  }
});

describe("broken tags are refused with line and column", () => {
  const cases: [source: string, line: number, column: number][] = [
    ["{{", 1, 1],
    ["Hello {{name", 1, 7],
    ["Hello {{name}", 1, 13],
    ["a\r\nb {{name {{other}}", 2, 3],
    ["a\rb\r{{#if x}}", 3, 1],
    ["{{#if a}}\n{{#each b}}\n{{/if}}", 3, 1],
    ["text {{/if}}", 1, 6],
    ["{{else}}", 1, 1],
    ["{{else if a}}", 1, 1],
    ["{{^}}", 1, 1],
    ["{{#if a}}1{{else}}2{{else}}3{{/if}}", 1, 20],
    ["{{#if a}}1{{else}}2{{else if b}}3{{/if}}", 1, 20],
    ["{{{name}}", 1, 1],
    ["a{b:{{name}}}", 1, 11],
    ["{{{name}}}}", 1, 8],
    ['{{default a "b}}', 1, 13],
    ["{{default a 'b}}", 1, 13],
    ["{{items[0}}", 1, 8],
    ["{{items[]}}", 1, 8],
    ["{{items[a\nb]}}", 1, 8],
    ["{{!-- never", 1, 1],
    ["{{! never", 1, 1],
    ["{{}}", 1, 3],
    ["{{.}} {{..a}}", 1, 7],
    ["{{a,b}}", 1, 4],
    ["{{a\uE041}}", 1, 4],
    ["{{a.}}", 1, 1],
    ["{{a.1}}", 1, 5],
  ];
  for (const [source, line, column] of cases) {
    test(JSON.stringify(source), () => {
      const problem = refused(source);
      assert.deepEqual([problem.line, problem.column], [line, column], problem.message);
      assert.ok(problem.message.length > 10 && problem.message.length < 200);
    });
  }

  test("a message stays short, whatever it has to quote", () => {
    const long = "x".repeat(100_000);
    for (const source of [
      `{{a.this.${long}}}`,
      `{{#${long} a}}{{/${long}}}`,
      `{{${long} a}}`,
      `{{#if a}}{{/${long}}}`,
      `{{a "${long}`,
      `{{@${long}}}`,
      `{{a.1${long}"}}`,
    ]) {
      assert.ok(refused(source).message.length <= 300, source.slice(0, 20));
    }
  });

  test("places stay true behind comments and bracketed names", () => {
    const before = "{{!-- a }} b\n --}}{{items[0].a}}{{user.[first name]}}";
    assert.deepEqual(refused(`${before}{{nope x}}`).line, 2);
    assert.deepEqual(refused(`${before}{{nope x}}`).column, before.split("\n")[1]!.length + 1);
  });
});

describe("anything but text is refused", () => {
  const program = {
    type: "Program",
    body: [
      {
        type: "MustacheStatement",
        path: { type: "PathExpression", data: false, depth: 0, parts: ["name"], original: "name" },
        params: [{ type: "NumberLiteral", value: "process.mainModule.require('child_process').execSync('id')" }],
        escaped: true,
        strip: {},
      },
    ],
  };
  const values: unknown[] = [
    program,
    JSON.stringify,
    null,
    undefined,
    12,
    ["{{a}}"],
    new String("{{a}}"),
    Buffer.from("a"),
  ];
  for (const value of values) {
    test(`as a source: ${Object.prototype.toString.call(value)}`, () => {
      const problem = refused(value as string);
      assert.match(problem.message, /must be text/);
    });
  }

  test("a syntax tree as JSON is text like any other", () => {
    const template = parsed(JSON.stringify(program).replaceAll("}}", "} }"));
    assert.equal(template.nodes.length, 1);
    assert.equal(template.nodes[0]!.kind, "text");
  });

  test("only what came from parseTemplate is a template", () => {
    const template = parsed("{{a}}");
    assert.equal(isTemplate(template), true);
    assert.equal(isTemplate({ ...template }), false);
    assert.equal(isTemplate(structuredClone(template)), false);
    assert.equal(isTemplate(program), false);
  });
});

describe("limits of a source", () => {
  test("512 KiB of UTF-8 are taken, one byte more is not", () => {
    assert.equal(parsed("é".repeat(SOURCE_BYTES_MAX / 2)).bytes, SOURCE_BYTES_MAX);
    assert.match(refused("é".repeat(SOURCE_BYTES_MAX / 2) + "x").message, /larger than 512 KiB/);
  });

  test("10,000 tags are taken, one more is not", () => {
    assert.equal(parsed("{{a}}".repeat(TAGS_MAX)).tags, TAGS_MAX);
    assert.match(refused("{{a}}".repeat(TAGS_MAX + 1)).message, /more than 10000 tags/);
    assert.match(refused("{{!x}}".repeat(TAGS_MAX + 1)).message, /more than 10000 tags/);
  });

  test("100 blocks within each other are taken, one more is not", () => {
    const nest = (depth: number) => "{{#if a}}".repeat(depth) + "{{/if}}".repeat(depth);
    parsed(nest(NESTING_MAX));
    assert.match(refused(nest(NESTING_MAX + 1)).message, /nested deeper/);
    assert.match(refused("{{^if a}}".repeat(NESTING_MAX + 1)).message, /nested deeper/);
  });

  test("each 'else if' counts as one level, and none after the block has ended", () => {
    const chain = (branches: number) => `{{#if a}}${"{{else if b}}".repeat(branches)}{{/if}}`;
    parsed(chain(NESTING_MAX - 1).repeat(3));
    assert.match(refused(chain(NESTING_MAX)).message, /nested deeper/);
  });

  test("a path has at most 20 names and 256 characters", () => {
    const path = (names: number) => Array.from({ length: names }, () => "a").join(".");
    parsed(`{{${path(PATH_KEYS_MAX)}}}`);
    assert.match(refused(`{{${path(PATH_KEYS_MAX + 1)}}}`).message, /at most 20 names/);
    parsed(`{{${"a".repeat(256)}}}`);
    assert.match(refused(`{{${"a".repeat(257)}}}`).message, /at most 256 characters/);
  });

  test("too much inside tags is refused before the parser sees it", () => {
    assert.match(refused(`{{a ${"b ".repeat(50_000)}}}`).message, /too much inside the tags/);
    assert.match(refused(`{{a${".b".repeat(50_000)}}}`).message, /too much inside the tags/);
  });

  // Unguarded, the parser takes 17 s for the first and 19 s for the second; nesting is quadratic too.
  const units = [
    "{{!----}}",
    "{{[a]}}",
    "{{a[0]}}",
    "{{#if a}}",
    "{{#if a}}{{else if b}}",
    "\\{{a}}",
    "{{a}}",
    "(",
    "[a].",
    "'x' ",
  ];
  for (const unit of units) {
    test(`512 KiB of ${unit} end within 2 seconds of CPU`, () => {
      for (const before of ["", "{{"]) {
        const source = before + unit.repeat(Math.floor((SOURCE_BYTES_MAX - 2) / unit.length));
        const ms = processorMs(() => parseTemplate(source));
        assert.ok(ms < 2_000, `${ms} ms`);
      }
    });
  }
});

describe("the variables of a template", () => {
  const cases: [why: string, source: string, want: Record<string, boolean>][] = [
    ["a printed one is required", "{{name}} {{{raw}}}", { name: true, raw: true }],
    [
      "paths keep one spelling",
      "{{user/name}} {{user.name}} {{this.user.name}} {{./user.name}} {{@root.user.name}}",
      { "user.name": true },
    ],
    ["an index in either form is the same", "{{items[0].name}} {{items.[0].name}}", { "items[0].name": true }],
    [
      "names that need brackets keep them",
      "{{[first name]}} {{a.[b c]}} {{[if]}}",
      { "[first name]": true, "a.[b c]": true, "[if]": true },
    ],
    [
      "what stands in default may be absent",
      '{{default name "friend"}} {{default a b}}',
      { name: false, a: false, b: false },
    ],
    [
      "what stands in if and unless may be absent",
      "{{#if a}}{{b}}{{else}}{{c}}{{/if}}{{#unless d}}{{e}}{{/unless}}",
      { a: false, b: false, c: false, d: false, e: false },
    ],
    ["used outside as well, it is required", "{{#if a}}{{a}}{{/if}}{{a}}", { a: true }],
    ["required wins in either order", "{{a}}{{#if a}}{{a}}{{/if}}", { a: true }],
    ["a list is required", "{{#each items}}{{name}}{{this.x}}{{/each}}", { items: true }],
    [
      "a list with an else may be absent",
      "{{#each items}}{{name}}{{else}}{{none}}{{/each}}",
      { items: false, none: true },
    ],
    ["../ reaches the variables from a loop", "{{#each items}}{{../company}}{{/each}}", { items: true, company: true }],
    [
      "a loop in a loop",
      "{{#each a}}{{#each b}}{{../c}}{{../../d}}{{@root.e}}{{/each}}{{/each}}",
      { a: true, d: true, e: true },
    ],
    [
      "literals, loop values and comments are none",
      "{{#if true}}{{/if}}{{! x }}{{#each this}}{{@key}}{{this}}{{/each}}",
      {},
    ],
    [
      "prototype names are names like others",
      "{{constructor.name}}{{__proto__.x}}",
      { "constructor.name": true, "__proto__.x": true },
    ],
  ];
  for (const [why, source, want] of cases) {
    test(why, () => {
      const found = variablesOf(parsed(source)).map(({ name, required }) => [name, required]);
      assert.deepEqual(found, Object.entries(want));
    });
  }

  test("a template that loops over all of them says so", () => {
    assert.equal(parsed("{{#each this}}{{@key}}{{/each}}").reads_all, true);
    assert.equal(parsed("{{#each @root}}{{@key}}{{/each}}").reads_all, true);
    assert.equal(parsed("{{#each items}}{{this}}{{/each}}").reads_all, false);
  });

  test("a name is read as it stands in a tag, and nothing else is", () => {
    assert.deepEqual(parseVariableName("user.name"), { name: "user.name", keys: ["user", "name"] });
    assert.deepEqual(parseVariableName("items[0]"), { name: "items[0]", keys: ["items", "0"] });
    assert.deepEqual(parseVariableName("größe"), { name: "größe", keys: ["größe"] });
    assert.deepEqual(parseVariableName("[a\\]b]"), { name: "[a\\]b]", keys: ["a]b"] });
    const bad = [
      "",
      " ",
      "a b",
      "#if a",
      "{a}",
      "&a",
      "a}}{{b",
      "a}} {{b",
      "/if",
      "@index",
      "this",
      "..",
      "../a",
      "12",
      "if",
      "default a b",
      "!x",
      "a.",
      ">a",
      "*a",
      "\0",
      "~",
    ];
    for (const text of bad) assert.equal(parseVariableName(text), null, text);
  });

  test("the name of every variable can be read back to the same keys", () => {
    const sources = [
      "{{a.b[0].c}}",
      "{{[first name].x}}",
      "{{[a\\]b]}}",
      "{{[12]}}",
      "{{a.[if].[this]}}",
      "{{a.[x\\\\]}}",
      "{{@root.[0]}}",
    ];
    for (const source of sources) {
      const [variable] = variablesOf(parsed(source));
      assert.deepEqual(parseVariableName(variable!.name), { name: variable!.name, keys: variable!.keys }, source);
    }
  });
});
