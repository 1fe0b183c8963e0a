// Rendering for sending: what is refused, what it costs, and that it comes out of /v1/send.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { renderForSend, updateTemplate } from "./templates.ts";
import type { TemplateRow } from "./types.ts";

const UNKNOWN = "0198c0de-0000-7000-8000-000000000000";

describe("rendering for sending", () => {
  let dns: DnsServer;
  let api: TestApi;
  let serial = 0;

  before(async () => {
    dns = await startDnsServer();
    api = await testApi({ POSTERN_DNS: dns.address });
  });
  after(async () => {
    await api.close();
    await dns.stop();
  });

  async function create(fields: Record<string, unknown>, key = api.live_key): Promise<TemplateRow> {
    serial += 1;
    const body = { name: `T ${serial}`, subject: "S", html_body: "<p></p>", ...fields };
    const answer = await api.ask("POST", "/v1/templates", body, { key });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return answer.body.template;
  }

  /** The same world with a count of the statements that go through it. */
  function counting(): { world: World; queries: () => number } {
    let queries = 0;
    const db: World["db"] = {
      ...api.world.db,
      query: (text, values) => {
        queries += 1;
        return api.world.db.query(text, values);
      },
    };
    return { world: { ...api.world, db }, queries: () => queries };
  }

  async function refusalOf(work: Promise<unknown>): Promise<Refusal> {
    const error = await work.then(
      () => assert.fail("should be refused"),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof Refusal, String(error));
    return error;
  }

  test("gives id, version and the parts; by slug or by id", async () => {
    const template = await create({
      slug: "for-send",
      subject: "Hi {{name}} & Co",
      html_body: "<p>{{name}}</p>",
      text_body: "{{name}}, {{plan}}",
      variables: [{ name: "plan", default: "free" }],
    });
    const render = renderForSend(api.world);
    const variables = { name: "A<b>" };
    const want = {
      template_id: template.id,
      version: 1,
      subject: "Hi A<b> & Co",
      html_body: "<p>A&lt;b&gt;</p>",
      text_body: "A<b>, free",
    };
    assert.deepEqual(await render(api.org_id, { template: "for-send", variables }), want);
    assert.deepEqual(await render(api.org_id, { template_id: template.id, variables }), want);
    assert.deepEqual(await render(api.org_id, { template_id: template.id.toUpperCase(), variables }), want);
  });

  test("parts that the template does not have are null", async () => {
    await create({ slug: "text-only", html_body: null, text_body: "T" });
    await create({ slug: "html-only" });
    const render = renderForSend(api.world);
    const text = await render(api.org_id, { template: "text-only", variables: {} });
    assert.deepEqual([text.html_body, text.text_body], [null, "T"]);
    const html = await render(api.org_id, { template: "html-only", variables: {} });
    assert.deepEqual([html.html_body, html.text_body], ["<p></p>", null]);
  });

  test("a change counts from the next rendering on, and so does switching it off", async () => {
    const { id } = await create({ slug: "moving", subject: "one" });
    const render = renderForSend(api.world);
    const rendered = async () => {
      const { subject, version } = await render(api.org_id, { template: "moving", variables: {} });
      return [subject, version];
    };
    assert.deepEqual(await rendered(), ["one", 1]);
    await api.ask("PUT", `/v1/templates/${id}`, { subject: "two" });
    assert.deepEqual(await rendered(), ["two", 2]);
    await api.ask("PUT", `/v1/templates/${id}`, { active: false });
    const refusal = await refusalOf(rendered());
    assert.deepEqual([refusal.kind, refusal.detail.field], ["invalid_state", "template"]);
    await api.ask("DELETE", `/v1/templates/${id}`);
    assert.equal((await refusalOf(rendered())).kind, "not_found");
  });

  test("an unknown template is not_found and names the field that was given", async () => {
    const render = renderForSend(api.world);
    for (const template of ["no-such", "Not A Slug", "", "x\0y", UNKNOWN]) {
      const refusal = await refusalOf(render(api.org_id, { template, variables: {} }));
      assert.deepEqual([refusal.kind, refusal.detail.field], ["not_found", "template"]);
    }
    const refusal = await refusalOf(render(api.org_id, { template_id: UNKNOWN, variables: {} }));
    assert.deepEqual([refusal.kind, refusal.detail.field], ["not_found", "template_id"]);
  });

  test("another organization's template is not found, by slug or id", async () => {
    const other = await api.organization();
    const theirs = await create({ slug: "theirs" }, other.live_key);
    const render = renderForSend(api.world);
    assert.equal((await render(other.org_id, { template: "theirs", variables: {} })).template_id, theirs.id);
    const bySlug = refusalOf(render(api.org_id, { template: "theirs", variables: {} }));
    const byId = refusalOf(render(api.org_id, { template_id: theirs.id, variables: {} }));
    assert.deepEqual([(await bySlug).kind, (await byId).kind], ["not_found", "not_found"]);
  });

  test("one slug in two organizations, asked for at once, gives each its own", async () => {
    const other = await api.organization();
    await create({ slug: "shared-slug", subject: "mine" });
    await create({ slug: "shared-slug", subject: "theirs" }, other.live_key);
    const render = renderForSend(api.world);
    const [mine, theirs] = await Promise.all(
      [api.org_id, other.org_id].map((orgId) => render(orgId, { template: "shared-slug", variables: {} })),
    );
    assert.deepEqual([mine?.subject, theirs?.subject], ["mine", "theirs"]);
  });

  test("missing required variables are named, the first as the field", async () => {
    await create({
      slug: "strict",
      subject: "{{a}} {{default b 'x'}}",
      html_body: "{{#if c}}{{d}}{{/if}}{{user.name}}{{items[0].x}}{{#each list}}{{y}}{{/each}}",
      variables: [
        { name: "plan", required: true },
        { name: "size", required: true, default: 0 },
      ],
    });
    const render = renderForSend(api.world);
    const ask = (variables: Record<string, unknown>) => render(api.org_id, { template: "strict", variables });
    const all = await refusalOf(ask({}));
    assert.equal(all.kind, "template_variable_missing");
    assert.equal(all.detail.field, "variables.plan");
    assert.deepEqual(all.detail.body, { missing_variables: ["plan", "a", "user.name", "items[0].x", "list"] });
    const given = { plan: "p", a: "", user: { name: 0 }, items: [{ x: false }], list: [] };
    assert.equal((await ask(given)).html_body, "0false");
    for (const [name, change] of [
      ["a", { a: null }],
      ["user.name", { user: "text" }],
      ["items[0].x", { items: [] }],
      ["list", { list: undefined }],
    ] as const) {
      assert.equal((await refusalOf(ask({ ...given, ...change }))).detail.field, `variables.${name}`);
    }
  });

  test("a subject with a line break, an object to print, a bomb: template_error naming the part", async () => {
    await create({ slug: "faulty", subject: "{{s}}", html_body: "{{h}}{{#each l}}{{#each ../l}}x{{/each}}{{/each}}" });
    const render = renderForSend(api.world);
    const good = { s: "s", h: "h", l: [] };
    for (const [change, field, reason] of [
      [{ s: "a\r\nBcc: eve@example.com" }, "subject", "not_a_header"],
      [{ s: "a\nb" }, "subject", "not_a_header"],
      [{ s: "a\0b" }, "subject", "not_a_header"],
      [{ s: "a\u0007b" }, "subject", "not_a_header"],
      [{ h: {} }, "html_body", "not_text"],
      [{ l: Array(200).fill(0) }, "html_body", "too_many_steps"],
    ] as const) {
      const refusal = await refusalOf(render(api.org_id, { template: "faulty", variables: { ...good, ...change } }));
      assert.deepEqual(
        [refusal.kind, refusal.detail.field, refusal.detail.body?.reason],
        ["template_error", field, reason],
      );
    }
    const fine = await render(api.org_id, { template: "faulty", variables: { ...good, h: "a\r\nb" } });
    assert.equal(fine.html_body, "a\r\nb");
  });

  test("a batch of 100 with one template costs one query, two when it was never rendered before", async () => {
    await create({ slug: "batched", subject: "{{n}}" });
    const { world, queries } = counting();
    const render = renderForSend(world);
    const batch = () =>
      Promise.all(Array.from({ length: 100 }, (_, n) => render(api.org_id, { template: "batched", variables: { n } })));
    const first = await batch();
    assert.deepEqual([first[99]?.subject, queries()], ["99", 2]);
    await batch();
    assert.equal(queries(), 3);
  });

  test("renderings that take long leave everything else its turns, and so does reading what was never rendered", async () => {
    const made = await Promise.all(Array.from({ length: 5 }, (_, n) => create({ slug: `slow-${n}`, subject: `${n}` })));
    let ms = 0;
    const monotonic = () => {
      ms += 30;
      return ms;
    };
    const render = renderForSend({ ...api.world, clock: { ...api.world.clock, monotonic } });
    const all = () => made.map(({ slug }) => render(api.org_id, { template: slug, variables: {} }));
    for (const what of ["never rendered", "rendered before"]) {
      const order: string[] = [];
      const renderings = all().map(async (rendering) => {
        order.push((await rendering).subject);
        if (order.length === 1) setImmediate(() => order.push("somebody else"));
      });
      await Promise.all(renderings);
      assert.equal(order.length, 6);
      assert.notEqual(order.at(-1), "somebody else", what);
    }
  });

  test("a source that waits to be read holds no lock, and its change is laid upon what was changed meanwhile", async () => {
    const { id } = await create({ subject: "old" });
    const turn = Promise.withResolvers<void>();
    const waits = Promise.withResolvers<void>();
    let rounds = 0;
    const inTurn = async <T>(_who: string, task: () => T): Promise<T> => {
      rounds += 1;
      waits.resolve();
      await turn.promise;
      return task();
    };
    const change = updateTemplate({ ...api.world, inTurn }, { org_id: api.org_id, key_name: "test" }, id, {
      subject: "new",
    });
    await waits.promise;
    const other = await api.ask("PUT", `/v1/templates/${id}`, { html_body: "<p>new</p>" });
    assert.equal(other.status, 200);
    turn.resolve();
    const { subject, html_body, version } = await change;
    assert.deepEqual([subject, html_body, version, rounds], ["new", "<p>new</p>", 3, 2]);
  });

  test("100 templates asked for at once cost two look-ups of 50 sources", async () => {
    const made = await Promise.all(
      Array.from({ length: 100 }, (_, n) => create({ slug: `many-${n}`, subject: `${n}` })),
    );
    const { world, queries } = counting();
    const render = renderForSend(world);
    const all = await Promise.all(made.map(({ id }) => render(api.org_id, { template_id: id, variables: {} })));
    assert.deepEqual(
      all.map(({ subject }) => subject),
      made.map(({ subject }) => subject),
    );
    assert.equal(queries(), 3);
  });

  describe("through POST /v1/send", () => {
    const from = "shop@templates.example";
    before(async () => {
      await addVerifiedDomain(api, dns, "templates.example");
      await create({ slug: "receipt", subject: "Receipt {{number}}", html_body: "<p>{{number}}</p>" });
    });
    const send = (more: Record<string, unknown>) =>
      api.ask("POST", "/v1/send", { from, to: ["anna@example.com"], ...more }, { key: api.test_key });

    test("a test send with a template is validated and stored with id and subject", async () => {
      const answer = await send({ template: "receipt", variables: { number: 7 } });
      assert.equal(answer.status, 202, JSON.stringify(answer.body));
      const { email } = (await api.ask("GET", `/v1/emails/${answer.body.id}`)).body;
      const template = (await api.ask("GET", "/v1/templates/receipt")).body.template;
      assert.deepEqual([email.subject, email.template_id], ["Receipt 7", template.id]);
      const [row] = await api.world.db.query("select template_version from message where id = $1", [answer.body.id]);
      assert.equal(row?.template_version, 1);
    });

    test("what is wrong with template or variables has its status, code and field", async () => {
      const cases: [Record<string, unknown>, number, string, string][] = [
        [{ template: "no-such", variables: {} }, 404, "not_found", "template"],
        [{ template_id: UNKNOWN, variables: {} }, 404, "not_found", "template_id"],
        [{ template: "receipt" }, 400, "template_variable_missing", "variables.number"],
        [{ template: "receipt", variables: { number: {} } }, 400, "template_error", "subject"],
        [{ template: "receipt", variables: { number: "1\r\nBcc: x@y.z" } }, 400, "template_error", "subject"],
      ];
      for (const [more, status, code, field] of cases) {
        const answer = await send(more);
        assert.deepEqual([answer.status, answer.body.code, answer.body.field], [status, code, field]);
      }
      await api.ask("PUT", "/v1/templates/receipt", { active: false });
      const inactive = await send({ template: "receipt", variables: { number: 1 } });
      assert.deepEqual([inactive.status, inactive.body.code, inactive.body.field], [409, "invalid_state", "template"]);
    });
  });
});
