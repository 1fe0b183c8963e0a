// Templates and variables made to break out, to run for ever or to eat memory.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { processorMs } from "../../../test/support/processor-time.ts";
import { rounds } from "../../../test/support/rounds.ts";
import { OUTPUT_BYTES_MAX, RENDER_MS_MAX, STEPS_MAX, type Template } from "./nodes.ts";
import { parseTemplate } from "./parse.ts";
import { type Rendered, renderTemplate } from "./render.ts";

const ROUNDS = rounds(400, 4_000);

const now = () => performance.now();
/** For what must end by its own limits, not by the clock. */
const standing = () => 0;

function parsed(source: string): Template {
  const result = parseTemplate(source);
  assert.ok(result.ok, result.ok ? "" : result.message);
  return result.template;
}

function run(source: string, variables: Record<string, unknown> = {}, clock = standing): Rendered {
  return renderTemplate(parsed(source), variables, { escape: "html", processorMs: clock });
}

function textOf(source: string, variables: Record<string, unknown> = {}): string {
  const rendered = run(source, variables);
  assert.ok(rendered.ok, rendered.ok ? "" : rendered.message);
  return rendered.text;
}

function reasonOf(rendered: Rendered): string {
  return rendered.ok ? `rendered ${rendered.text.length} characters` : rendered.reason;
}

describe("prototypes, functions and getters are out of reach", () => {
  const paths = [
    "constructor",
    "constructor.constructor",
    "user.constructor.prototype",
    "__proto__",
    "user.__proto__.polluted",
    "user.toString",
    "user.hasOwnProperty",
    "user.__defineGetter__",
    "user.__lookupGetter__",
    "list.map",
    "list.constructor",
    "list.__proto__.push",
    "text.constructor.constructor",
    "text.at",
    "[__proto__].[constructor]",
    "user.[constructor].[constructor]",
    "this.constructor",
    "./__proto__",
    "@root.constructor",
    "@root.__proto__.constructor",
    "list[constructor]",
    "fn",
    "fn.name",
    "fn.constructor",
    "getter",
    "user.getter",
    "symbol",
  ];
  const variables = {
    user: {
      get getter() {
        throw new Error("a getter was called");
      },
    },
    list: [1],
    text: "x",
    fn: () => "called",
    symbol: Symbol("x"),
  };
  Object.defineProperty(variables, "getter", {
    enumerable: true,
    get: () => {
      throw new Error("a getter was called");
    },
  });
  for (const path of paths) {
    test(`{{${path}}} prints nothing`, () => {
      assert.equal(textOf(`{{${path}}}`, variables), "");
      assert.equal(textOf(`{{{${path}}}}`, variables), "");
      assert.equal(textOf(`{{#if ${path}}}reached{{/if}}`, variables), "");
      assert.equal(textOf(`{{#each ${path}}}reached{{/each}}`, variables), "");
      assert.equal(
        textOf(`{{#each list}}{{../${path.replace(/^@root\.|^\.\/|^this\./, "")}}}{{/each}}`, variables),
        "",
      );
    });
  }

  test("an object with a getter can be looped over without calling it", () => {
    assert.equal(textOf("{{#each user}}{{@key}}:{{this}}{{/each}}", variables), "getter:");
  });

  test("own properties of those names, as JSON can have them, are values like others", () => {
    const json = JSON.parse('{"__proto__":{"admin":true,"x":"own"},"constructor":"ACME","a":{"__proto__":"p"}}');
    assert.equal(textOf("{{__proto__.x}} {{constructor}} {{a.__proto__}}", json), "own ACME p");
    assert.equal(textOf("{{admin}}{{a.admin}}{{a.x}}{{x}}", json), "");
    assert.equal(({} as Record<string, unknown>).admin, undefined);
  });

  test("a variable with a toString of its own is not called", () => {
    const json = JSON.parse('{"a":{"toString":"x","valueOf":"y","length":3},"b":[{"toString":null}]}');
    assert.equal(reasonOf(run("{{a}}", json)), "not_text");
    assert.equal(textOf("{{a.toString}}{{a.length}}", json), "x3");
    assert.equal(textOf("{{#each a}}{{this}}{{/each}}", json), "xy3");
  });
});

describe("a tree that parseTemplate did not make is not rendered", () => {
  const real = parsed("{{a}}");
  const forged: unknown[] = [
    { ...real },
    structuredClone(real),
    JSON.parse('{"type":"Program","body":[]}'),
    { nodes: [{ kind: "print", value: { kind: "path", up: 0, keys: ["constructor"], name: "x" } }] },
    null,
    "{{a}}",
  ];
  for (const template of forged) {
    test(JSON.stringify(template)?.slice(0, 60) ?? "undefined", () => {
      assert.throws(() => renderTemplate(template as Template, {}, { escape: "html", processorMs: now }), TypeError);
    });
  }
});

describe("bombs end early", () => {
  const list = (length: number) => Array.from({ length }, (_, index) => index);

  test("three nested loops of 250 stop after 10,000 steps", () => {
    const source = "{{#each a}}{{#each ../a}}{{#each ../../a}}x{{/each}}{{/each}}{{/each}}";
    const ms = processorMs(() => assert.equal(reasonOf(run(source, { a: list(250) })), "too_many_steps"));
    assert.ok(ms < 250, `${ms} ms`);
  });

  test("exactly 10,000 steps are carried out, one more is not", () => {
    const source = "{{#each a}}x{{/each}}";
    assert.equal(reasonOf(run(source, { a: list(STEPS_MAX - 1) })), `rendered ${STEPS_MAX - 1} characters`);
    assert.equal(reasonOf(run(source, { a: list(STEPS_MAX) })), "too_many_steps");
    assert.equal(reasonOf(run("{{x}}".repeat(STEPS_MAX))), "rendered 0 characters");
  });

  test("a loop over a million is not begun", () => {
    const variables = { a: list(1_000_000), o: Object.fromEntries(list(100_000).map((i) => [`k${i}`, i])) };
    const ms = processorMs(() => {
      assert.equal(reasonOf(run("{{#each a}}{{/each}}", variables)), "too_many_steps");
      assert.equal(reasonOf(run("{{#each o}}{{/each}}", variables)), "too_many_steps");
    });
    assert.ok(ms < 250, `${ms} ms`);
  });

  test("a billion laughs through variables stop at 2 MiB", () => {
    const variables = { a: list(10), lol: "lol".repeat(1_000) };
    const source = "{{#each a}}{{#each ../a}}{{#each ../../a}}{{../../../lol}}{{/each}}{{/each}}{{/each}}";
    assert.equal(reasonOf(run(source, variables)), "output_too_large");
  });

  test("the author's own text in a loop stops at 2 MiB", () => {
    assert.equal(reasonOf(run(`{{#each a}}${"x".repeat(1_000)}{{/each}}`, { a: list(9_000) })), "output_too_large");
  });

  test("2 MiB are given, one byte more is not, counted in UTF-8", () => {
    const text = "x".repeat(OUTPUT_BYTES_MAX);
    assert.equal(reasonOf(run("{{a}}", { a: text })), `rendered ${OUTPUT_BYTES_MAX} characters`);
    assert.equal(reasonOf(run("{{a}}x", { a: text })), "output_too_large");
    assert.equal(
      reasonOf(run("{{a}}", { a: "é".repeat(OUTPUT_BYTES_MAX / 2) })),
      `rendered ${OUTPUT_BYTES_MAX / 2} characters`,
    );
    assert.equal(reasonOf(run("{{a}}x", { a: "é".repeat(OUTPUT_BYTES_MAX / 2) })), "output_too_large");
  });

  test("what grows by escaping counts as it has grown", () => {
    assert.equal(reasonOf(run("{{a}}", { a: "'".repeat(OUTPUT_BYTES_MAX / 2) })), "output_too_large");
    const huge = "'".repeat(20 * OUTPUT_BYTES_MAX);
    const ms = processorMs(() => assert.equal(reasonOf(run("{{a}}", { a: huge })), "output_too_large"));
    assert.ok(ms < 250, `${ms} ms`);
  });

  test("after 200 ms of the processor it stops", () => {
    let ms = 0;
    const rendered = run("{{#each a}}{{this}}{{/each}}", { a: list(4_000) }, () => {
      ms += RENDER_MS_MAX / 2;
      return ms;
    });
    assert.equal(reasonOf(rendered), "too_slow");
  });

  test("an object that holds itself is no way round", () => {
    const self: Record<string, unknown> = { name: "x" };
    self.self = self;
    assert.equal(textOf("{{self.self.self.name}}", self), "x");
    const loop = "{{#each self}}".repeat(90) + "x" + "{{/each}}".repeat(90);
    assert.equal(reasonOf(run(loop, self)), "rendered 2 characters");
    const all = "{{#each this}}".repeat(90) + "x" + "{{/each}}".repeat(90);
    self.again = self;
    assert.equal(reasonOf(run(all, self)), "too_many_steps");
  });

  test("variables nested 10,000 deep are walked no deeper than the path", () => {
    let deep: unknown = "bottom";
    for (let level = 0; level < 10_000; level += 1) deep = { a: deep };
    assert.equal(textOf("{{a.a.a.missing}}{{#if a.a}}y{{/if}}", deep as Record<string, unknown>), "y");
  });
});

describe("whatever the template and the variables", () => {
  const tag = fc.constantFrom(
    ...["{{a}}", "{{{b}}}", "{{a.b}}", "{{this}}", "{{.}}", "{{../a}}", "{{@index}}", "{{@key}}", "{{items[0].a}}"],
    ...["{{#if a}}", "{{#unless b}}", "{{#each a}}", "{{#each this}}", "{{#each ../a}}", "{{else}}", "{{else if b}}"],
    ...[
      "{{/if}}",
      "{{/unless}}",
      "{{/each}}",
      '{{default a "x"}}',
      "{{default b a}}",
      "{{!-- c --}}",
      "{{! c }}",
      "{{~a~}}",
    ],
    ...[
      "{{> p}}",
      "{{constructor.constructor}}",
      "{{__proto__}}",
      "{{{{",
      "}}}}",
      "{{",
      "}}",
      "\\{{",
      "\\",
      "'",
      "\n",
      "{{[",
      "]",
    ],
  );
  const source = fc.array(fc.oneof({ weight: 4, arbitrary: tag }, fc.string({ unit: "binary" })), { maxLength: 40 });
  const block = fc.letrec<{ nodes: string; node: string }>((tie) => ({
    nodes: fc.array(tie("node"), { maxLength: 4 }).map((nodes) => nodes.join("")),
    node: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom(
        "{{a}}",
        "{{{b}}}",
        "{{this}}",
        "{{items.[0]}}",
        "{{default c a}}",
        " x\n",
        "{{~b}}",
        "{{@root.a}}",
      ),
      fc
        .tuple(fc.constantFrom("if a", "unless b", "each items", "each this", "if c"), tie("nodes"), tie("nodes"))
        .map(([head, body, other]) => `{{#${head}}}${body}{{else}}${other}{{/${head.split(" ")[0]}}}`),
    ),
  })).nodes;
  const variables = fc.dictionary(fc.constantFrom("a", "b", "c", "items", "constructor", "x"), fc.jsonValue());

  test("parsing and rendering never throw and never pass a limit", () => {
    let rendered = 0;
    fc.assert(
      fc.property(
        fc.oneof(
          source.map((pieces) => pieces.join("")),
          block,
        ),
        variables,
        (text, values) => {
          const result = parseTemplate(text);
          if (!result.ok) {
            assert.ok(result.message !== "" && result.line >= 1 && result.column >= 1);
            assert.ok(result.line <= text.split(/\r\n?|\n/).length);
            return;
          }
          const out = renderTemplate(result.template, values, { escape: "html", processorMs: now });
          if (out.ok) assert.ok(Buffer.byteLength(out.text) <= OUTPUT_BYTES_MAX);
          else assert.match(out.reason, /^(too_many_steps|output_too_large|too_slow|not_text)$/);
          rendered += 1;
        },
      ),
      { numRuns: ROUNDS },
    );
    assert.ok(rendered > ROUNDS / 8, `only ${rendered} templates were rendered`);
  });

  test("no raw < from a variable gets into escaped output", () => {
    const markup = fc.oneof(
      fc.string(),
      fc.constantFrom("<", "<script>", "a<b", "</p><img src=x onerror=1>", "\"'`=<>&"),
    );
    const values = fc.dictionary(fc.constantFrom("a", "b", "c", "items", "x"), fc.oneof(markup, fc.array(markup)));
    fc.assert(
      fc.property(block, values, (text, given) => {
        const result = parseTemplate(text.replaceAll("{{{b}}}", "{{b}}"));
        if (!result.ok) return;
        const out = renderTemplate(result.template, given, { escape: "html", processorMs: now });
        if (out.ok) assert.ok(!/[<>"'`]/.test(out.text), out.text);
      }),
      { numRuns: ROUNDS },
    );
  });
});
