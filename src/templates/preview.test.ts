// POST /v1/templates/{id}/preview as its users see it: every field of the answer, every refusal.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Answer, type TestApi, testApi } from "../../test/support/api.ts";

const UNKNOWN = "0198c0de-0000-7000-8000-000000000000";

describe("preview", () => {
  let api: TestApi;
  let serial = 0;

  before(async () => {
    api = await testApi();
  });
  after(() => api.close());

  async function create(more: Record<string, unknown> = {}) {
    serial += 1;
    const body = { name: `Template ${serial}`, subject: "Hello", html_body: "<p>Hi</p>", ...more };
    const answer = await api.ask("POST", "/v1/templates", body);
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return answer.body.template;
  }

  function assertRefused(answer: Answer, status: number, code: string, field?: string): void {
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    assert.equal(answer.body.code, code);
    assert.equal(answer.body.field, field);
  }

  test("renders a draft in the place of what is stored, judges the draft's own variables, and stores nothing", async () => {
    const { id, version } = await create({
      subject: "Hello {{name}}",
      html_body: "<p>{{name}} {{old}} {{city}}</p>",
      variables: [{ name: "city", default: "Berlin" }],
    });
    const draft = { html_body: "<p>{{name}} {{fresh}} {{city}}</p>", variables: { name: "Anna" } };
    const { status, body } = await api.ask("POST", `/v1/templates/${id}/preview`, draft);
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(
      [body.subject, body.html_body, body.missing_variables],
      ["Hello Anna", "<p>Anna  Berlin</p>", ["fresh"]],
    );
    const stored = (await api.ask("GET", `/v1/templates/${id}`)).body.template;
    assert.deepEqual([stored.version, stored.html_body], [version, "<p>{{name}} {{old}} {{city}}</p>"]);
    const wrong = await api.ask("POST", `/v1/templates/${id}/preview`, { subject: "{{#if" });
    assertRefused(wrong, 400, "template_error", "subject");
  });

  test("renders all parts, HTML escaped, and says what is missing and unused", async () => {
    const { id } = await create({
      slug: "to-preview",
      subject: "{{name}} & {{order.number}}",
      html_body: "<p>{{name}} {{city}}</p>",
      text_body: "{{name}} {{city}} {{vip}}",
      variables: [{ name: "city", default: "Berlin" }],
    });
    for (const path of [id, "to-preview"]) {
      const answer = await api.ask("POST", `/v1/templates/${path}/preview`, {
        variables: { name: "<A>", extra: 1, order: { number: null } },
      });
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body, {
        subject: "<A> & ",
        html_body: "<p>&lt;A&gt; Berlin</p>",
        text_body: "<A> Berlin ",
        missing_variables: ["order.number", "vip"],
        unused_variables: ["extra"],
        warnings: [],
      });
    }
  });

  test("without a body or without variables, all that is required is missing", async () => {
    const { id } = await create({ subject: "{{a}}", html_body: "{{#each b}}x{{/each}}{{#if c}}y{{/if}}" });
    for (const body of [undefined, {}, { variables: {} }]) {
      const answer = await api.ask("POST", `/v1/templates/${id}/preview`, body);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      assert.deepEqual(answer.body.missing_variables, ["a", "b"]);
      assert.equal(answer.body.text_body, null);
    }
  });

  test("warns of what the author may not have meant", async () => {
    const { id } = await create({
      subject: "{{a}}",
      html_body: `{{{a}}}<a href="{{link}}">x</a>${"x".repeat(103 * 1024)}`,
    });
    const answer = await api.ask("POST", `/v1/templates/${id}/preview`, {
      variables: { a: " ", link: "javascript:x" },
    });
    const found = answer.body.warnings.map(({ code, field }: { code: string; field: string }) => [code, field]);
    assert.deepEqual(found, [
      ["empty_subject", "subject"],
      ["gmail_clipping", "html_body"],
      ["no_text_part", "text_body"],
      ["unescaped_output", "html_body"],
      ["broken_link", "html_body"],
    ]);
  });

  test("an inactive template can be previewed", async () => {
    const { id } = await create({ active: false });
    assert.equal((await api.ask("POST", `/v1/templates/${id}/preview`, {})).status, 200);
  });

  const list = (length: number) => Array.from({ length }, (_, index) => index);
  const refused: [why: string, fields: Record<string, unknown>, variables: unknown, field: string, reason: string][] = [
    [
      "a line break in the subject",
      { subject: "Hi {{a}}" },
      { a: "x\r\nBcc: eve@example.com" },
      "subject",
      "not_a_header",
    ],
    ["a control character in the subject", { subject: "{{a}}" }, { a: "x\u0007" }, "subject", "not_a_header"],
    ["a line separator in the subject", { subject: "{{a}}" }, { a: "x\u2028y" }, "subject", "not_a_header"],
    ["a subject over 4,000 octets", { subject: "{{a}}" }, { a: "あ".repeat(1_334) }, "subject", "not_a_header"],
    ["a subject over 2,000 characters", { subject: "{{a}}" }, { a: "x".repeat(2_001) }, "subject", "not_a_header"],
    ["an object where text is due", { html_body: "{{a}}" }, { a: { b: 1 } }, "html_body", "not_text"],
    [
      "loops without end",
      { text_body: "{{#each a}}{{#each ../a}}x{{/each}}{{/each}}" },
      { a: list(250) },
      "text_body",
      "too_many_steps",
    ],
    ["more than 2 MiB", { html_body: "{{a}}".repeat(30) }, { a: "x".repeat(100_000) }, "html_body", "output_too_large"],
  ];
  for (const [why, fields, variables, field, reason] of refused) {
    test(`${why} is 400 template_error`, async () => {
      const { id } = await create(fields);
      const answer = await api.ask("POST", `/v1/templates/${id}/preview`, { variables });
      assertRefused(answer, 400, "template_error", field);
      assert.equal(answer.body.reason, reason);
    });
  }

  test("variables that poison prototypes are refused at the door or are plain values", async () => {
    const { id } = await create({ html_body: "{{constructor}}{{a.polluted}}{{polluted}}" });
    const path = `/v1/templates/${id}/preview`;
    const poisoned = await api.ask("POST", path, '{"variables":{"__proto__":{"polluted":"yes"}}}');
    assertRefused(poisoned, 400, "invalid_json");
    const plain = await api.ask("POST", path, '{"variables":{"constructor":"ACME","a":{}}}');
    assert.equal(plain.body.html_body, "ACME");
    assert.equal(({} as Record<string, unknown>).polluted, undefined);
  });

  test("bad input is 400, an unknown template 404", async () => {
    const { id } = await create();
    assertRefused(
      await api.ask("POST", `/v1/templates/${id}/preview`, { variables: [] }),
      400,
      "validation_error",
      "variables",
    );
    assertRefused(await api.ask("POST", `/v1/templates/${id}/preview`, { data: {} }), 400, "validation_error", "data");
    assertRefused(await api.ask("POST", `/v1/templates/${UNKNOWN}/preview`, {}), 404, "not_found");
  });

  test("is not refused where others keep the machine busy: a rendering is limited by what it takes of the processor", async (t) => {
    const { id } = await create({ html_body: "{{#each rows}}<p>{{this}}</p>{{/each}}" });
    const rows = Array.from({ length: 500 }, (_, n) => n);
    const render = () => api.ask("POST", `/v1/templates/${id}/preview`, { variables: { rows } });
    let aheadMs = 0;
    const clock = performance.now.bind(performance);
    const hasty = t.mock.method(performance, "now", () => {
      aheadMs += 250;
      return clock() + aheadMs;
    });
    const busy = await render();
    hasty.mock.restore();
    assert.equal(busy.status, 200, JSON.stringify(busy.body));
    const taken = process.threadCpuUsage.bind(process);
    let more = 0;
    t.mock.method(process, "threadCpuUsage", () => {
      const { user, system } = taken();
      more += 250_000;
      return { user: user + more, system };
    });
    const slow = await render();
    assertRefused(slow, 400, "template_error", "html_body");
    assert.match(slow.body.error, /200 ms of the processor/);
  });
});
