// /v1/templates as its users see it: every operation, every field, every refusal.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Answer, type TestApi, testApi } from "../../test/support/api.ts";
import { SOURCE_BYTES_MAX } from "./language/nodes.ts";
import type { Sources } from "./types.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const UNKNOWN = "0198c0de-0000-7000-8000-000000000000";

describe("/v1/templates", () => {
  let api: TestApi;
  let other: { org_id: string; live_key: string; test_key: string };
  let serial = 0;

  before(async () => {
    api = await testApi();
    other = await api.organization();
  });
  after(() => api.close());

  function minimal(more: Record<string, unknown> = {}) {
    serial += 1;
    return { name: `Template ${serial}`, subject: "Hello", html_body: "<p>Hi</p>", ...more };
  }

  async function create(more: Record<string, unknown> = {}) {
    const answer = await api.ask("POST", "/v1/templates", minimal(more));
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return answer.body.template;
  }

  function assertRefused(answer: Answer, status: number, code: string, field?: string): void {
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    assert.equal(answer.body.code, code);
    assert.equal(answer.body.field, field);
    assert.equal(typeof answer.body.error, "string");
    assert.equal(answer.body.request_id, answer.headers["x-request-id"]);
  }

  describe("create", () => {
    test("a template with every field answers 201 with the whole record", async () => {
      const answer = await api.ask("POST", "/v1/templates", {
        name: " Order shipped ",
        slug: "order-shipped",
        description: "Sent when a parcel leaves",
        subject: "Order {{order.number}}",
        html_body: "<p>Hi {{first_name}}</p>{{#each order.items}}{{name}}{{/each}}",
        text_body: "Hi {{first_name}}",
        variables: [
          { name: "first_name", required: false, default: "friend" },
          { name: "order.number", required: true },
          { name: "order.items", required: true, default: null },
        ],
        active: false,
      });
      assert.equal(answer.status, 201);
      assert.deepEqual(Object.keys(answer.body), ["template"]);
      const { id, created_at, updated_at, ...rest } = answer.body.template;
      assert.match(id, UUID);
      assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.equal(updated_at, created_at);
      assert.deepEqual(rest, {
        org_id: api.org_id,
        name: "Order shipped",
        slug: "order-shipped",
        description: "Sent when a parcel leaves",
        subject: "Order {{order.number}}",
        html_body: "<p>Hi {{first_name}}</p>{{#each order.items}}{{name}}{{/each}}",
        text_body: "Hi {{first_name}}",
        variables: [
          { name: "first_name", required: false, default: "friend" },
          { name: "order.number", required: true, default: null },
          { name: "order.items", required: true, default: null },
        ],
        active: false,
        version: 1,
      });
    });

    test("what is omitted is null, active, and found in the sources", async () => {
      const template = await create({
        name: "Grüße an Zoë!",
        subject: "Hi {{name}}",
        html_body: '{{name}}{{#if coupon}}{{coupon}}{{/if}}{{default city "Berlin"}}',
      });
      assert.equal(template.slug, "gru-e-an-zoe");
      assert.equal(template.description, null);
      assert.equal(template.text_body, null);
      assert.equal(template.active, true);
      assert.deepEqual(template.variables, [
        { name: "name", required: true, default: null },
        { name: "coupon", required: false, default: null },
        { name: "city", required: false, default: null },
      ]);
    });

    test("declared variables come first, found ones beyond them follow; a declared name speaks for those below it", async () => {
      const template = await create({
        subject: "{{b}} {{user.name}} {{list.[0].x}}",
        variables: [{ name: "user" }, { name: "flag", default: true }, { name: "n", default: 3 }, { name: "list[0]" }],
      });
      assert.deepEqual(template.variables, [
        { name: "user", required: true, default: null },
        { name: "flag", required: false, default: true },
        { name: "n", required: false, default: 3 },
        { name: "list[0]", required: true, default: null },
        { name: "b", required: true, default: null },
      ]);
    });

    test("a template may have a text part only", async () => {
      const template = await create({ html_body: null, text_body: "Hi" });
      assert.equal(template.html_body, null);
      assert.equal(template.text_body, "Hi");
    });

    test("sources of 512 KiB each are taken, a byte more is not", async () => {
      const full = "x".repeat(SOURCE_BYTES_MAX);
      const template = await create({ html_body: full, text_body: '"'.repeat(SOURCE_BYTES_MAX) });
      const got = await api.ask("GET", `/v1/templates/${template.id}`);
      assert.equal(got.body.template.html_body.length, SOURCE_BYTES_MAX);
      const over = await api.ask("POST", "/v1/templates", minimal({ html_body: `${full}x` }));
      assertRefused(over, 400, "validation_error", "html_body");
      const wide = await api.ask("POST", "/v1/templates", minimal({ text_body: "é".repeat(SOURCE_BYTES_MAX / 2 + 1) }));
      assertRefused(wide, 400, "validation_error", "text_body");
    });

    test("a body over 8 MiB is refused", async () => {
      const huge = await api.ask("POST", "/v1/templates", minimal({ html_body: "x".repeat(9 * 1024 * 1024) }));
      assertRefused(huge, 400, "payload_too_large");
    });

    const refused: [why: string, change: Record<string, unknown>, field: string][] = [
      ["no name", { name: undefined }, "name"],
      ["an empty name", { name: "" }, "name"],
      ["a blank name", { name: "  " }, "name"],
      ["a long name", { name: "x".repeat(192) }, "name"],
      ["a name with NUL", { name: "a\0b", slug: "a-b" }, "name"],
      ["half a surrogate pair in the name", { name: "a\ud800", slug: "a-b" }, "name"],
      ["a number as a name", { name: 5 }, "name"],
      ["a slug of one character", { slug: "a" }, "slug"],
      ["a slug of 101 characters", { slug: "a".repeat(101) }, "slug"],
      ["a slug in capitals", { slug: "Welcome" }, "slug"],
      ["a slug that begins with a hyphen", { slug: "-welcome" }, "slug"],
      ["a slug that ends with a hyphen", { slug: "welcome-" }, "slug"],
      ["a slug with a line break at its end", { slug: "welcome\n" }, "slug"],
      ["a slug that looks like a UUID", { slug: UNKNOWN }, "slug"],
      ["a long description", { description: "x".repeat(1_001) }, "description"],
      ["a description with NUL", { description: "\0" }, "description"],
      ["no subject", { subject: undefined }, "subject"],
      ["an empty subject", { subject: "" }, "subject"],
      ["a subject of two lines", { subject: "a\nBcc: x@example.com" }, "subject"],
      ["a carriage return in the subject", { subject: "a\rb" }, "subject"],
      ["a long subject", { subject: "x".repeat(2_001) }, "subject"],
      ["no body at all", { html_body: undefined }, "html_body"],
      ["both bodies null", { html_body: null, text_body: null }, "html_body"],
      ["HTML that is no text", { html_body: { type: "Program", body: [] } }, "html_body"],
      ["HTML that is not valid Unicode", { html_body: "a\udc00" }, "html_body"],
      ["text that is a list", { text_body: ["x"] }, "text_body"],
      ["active that is a word", { active: "yes" }, "active"],
      ["an unknown field", { from: "a@example.com" }, "from"],
      ["variables that are no list", { variables: { name: "x" } }, "variables"],
      ["a variable without a name", { variables: [{ required: true }] }, "variables[0].name"],
      ["a variable with an empty name", { variables: [{ name: "" }] }, "variables[0].name"],
      ["a variable that is no name", { variables: [{ name: "ok" }, { name: "a b" }] }, "variables[1].name"],
      ["a variable that is a tag", { variables: [{ name: "a}}{{b" }] }, "variables[0].name"],
      ["a variable that is there twice", { variables: [{ name: "a[0]" }, { name: "a.[0]" }] }, "variables[1].name"],
      ["an unknown field of a variable", { variables: [{ name: "a", type: "string" }] }, "variables[0].type"],
      ["a default that is a list", { variables: [{ name: "a", default: [] }] }, "variables[0].default"],
      ["a default with NUL", { variables: [{ name: "a", default: "\0" }] }, "variables[0].default"],
      ["half a surrogate pair as a default", { variables: [{ name: "a", default: "\ud83d" }] }, "variables[0].default"],
      ["501 variables", { variables: Array.from({ length: 501 }, (_, i) => ({ name: `v${i}` })) }, "variables"],
    ];
    for (const [why, change, field] of refused) {
      test(`${why} is 400 and names '${field}'`, async () => {
        assertRefused(await api.ask("POST", "/v1/templates", minimal(change)), 400, "validation_error", field);
      });
    }

    const broken: [change: Record<string, unknown>, field: string, line: number, column: number][] = [
      [{ subject: "Hi {{name" }, "subject", 1, 4],
      [{ html_body: "<p>\n  {{#if a}}\n</p>" }, "html_body", 2, 3],
      [{ text_body: "a\n\n{{> footer}}" }, "text_body", 3, 1],
      [{ html_body: "{{shout name}}" }, "html_body", 1, 1],
    ];
    for (const [change, field, line, column] of broken) {
      test(`${JSON.stringify(change)} is 400 template_error with line and column`, async () => {
        const answer = await api.ask("POST", "/v1/templates", minimal(change));
        assertRefused(answer, 400, "template_error", field);
        assert.deepEqual([answer.body.line, answer.body.column], [line, column]);
        assert.match(answer.body.error, new RegExp(`'${field}' .*line ${line}, column ${column}: .{10}`));
      });
    }

    test("more than 500 variables in the sources are 400", async () => {
      const html_body = Array.from({ length: 501 }, (_, index) => `{{v${index}}}`).join("");
      assertRefused(await api.ask("POST", "/v1/templates", minimal({ html_body })), 400, "template_error", "variables");
    });

    test("a slug that is taken is 409, given or made from the name; not in another organization", async () => {
      await create({ name: "Twice", slug: "twice" });
      assertRefused(await api.ask("POST", "/v1/templates", minimal({ slug: "twice" })), 409, "already_exists", "slug");
      assertRefused(await api.ask("POST", "/v1/templates", minimal({ name: "Twice!" })), 409, "already_exists", "slug");
      const theirs = await api.ask("POST", "/v1/templates", minimal({ slug: "twice" }), { key: other.live_key });
      assert.equal(theirs.status, 201);
    });

    test("of 10 that ask for one slug at once, one gets it", async () => {
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => api.ask("POST", "/v1/templates", minimal({ slug: "raced" }))),
      );
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, ...Array(9).fill(409)]);
    });

    test("no key is 401, a body that is no JSON is 400", async () => {
      assertRefused(await api.ask("POST", "/v1/templates", minimal(), { key: null }), 401, "missing_api_key");
      assertRefused(await api.ask("POST", "/v1/templates", "{"), 400, "invalid_json");
      assertRefused(await api.ask("POST", "/v1/templates", "[]"), 400, "validation_error", "body");
    });
  });

  describe("get", () => {
    test("by UUID, by UUID in capitals and by slug, the same record", async () => {
      const template = await create({ slug: "to-get", text_body: "T" });
      for (const id of [template.id, template.id.toUpperCase(), "to-get"]) {
        const answer = await api.ask("GET", `/v1/templates/${id}`);
        assert.equal(answer.status, 200);
        assert.deepEqual(answer.body, { template });
      }
    });

    test("what does not exist is 404, whatever it looks like", async () => {
      for (const id of [
        UNKNOWN,
        "no-such-slug",
        "A",
        "x",
        "%00",
        "a%2Fb",
        "%F0%9F%98%80",
        "..%2f..",
        "a".repeat(500),
      ]) {
        assertRefused(await api.ask("GET", `/v1/templates/${id}`), 404, "not_found");
      }
    });
  });

  describe("list", () => {
    test("newest first with total, each row the whole record", async () => {
      const own = await api.organization();
      const as = { key: own.live_key };
      const slugs = ["first-one", "second-one", "third-one"];
      for (const slug of slugs) await api.ask("POST", "/v1/templates", minimal({ slug }), as);
      const all = await api.ask("GET", "/v1/templates", undefined, as);
      assert.equal(all.status, 200);
      assert.deepEqual(Object.keys(all.body), ["templates", "total", "limit", "offset"]);
      assert.deepEqual(
        all.body.templates.map((row: { slug: string }) => row.slug),
        slugs.toReversed(),
      );
      assert.deepEqual([all.body.total, all.body.limit, all.body.offset], [3, 50, 0]);
      const one = await api.ask("GET", "/v1/templates/third-one", undefined, as);
      assert.deepEqual(all.body.templates[0], one.body.template);

      const page = await api.ask("GET", "/v1/templates?limit=1&offset=1", undefined, as);
      assert.deepEqual([page.body.templates[0].slug, page.body.total, page.body.limit], ["second-one", 3, 1]);
      const beyond = await api.ask("GET", "/v1/templates?offset=9", undefined, as);
      assert.deepEqual([beyond.body.templates, beyond.body.total], [[], 3]);
    });

    test("of large templates has the bodies of the first rows, 4 MiB together", async () => {
      const as = { key: (await api.organization()).live_key };
      const half = "x".repeat(SOURCE_BYTES_MAX);
      const large = { html_body: half, text_body: half };
      for (let n = 0; n < 5; n += 1) await api.ask("POST", "/v1/templates", minimal(large), as);
      const { body } = await api.ask("GET", "/v1/templates", undefined, as);
      assert.deepEqual(
        body.templates.map((row: Sources) => [row.html_body?.length ?? null, row.text_body?.length ?? null]),
        [...Array(4).fill([half.length, half.length]), [null, null]],
      );
      const next = await api.ask("GET", "/v1/templates?offset=4", undefined, as);
      assert.equal(next.body.templates[0].html_body, half);
    });

    test("filters: query in name, slug, subject and description; active", async () => {
      const own = await api.organization();
      const as = { key: own.live_key };
      await api.ask("POST", "/v1/templates", minimal({ name: "100% Off", slug: "sale" }), as);
      await api.ask("POST", "/v1/templates", minimal({ name: "A", slug: "by-slug", active: false }), as);
      await api.ask("POST", "/v1/templates", minimal({ name: "B", slug: "bb", subject: "The SUBJECT_line" }), as);
      await api.ask("POST", "/v1/templates", minimal({ name: "C", slug: "cc", description: "back\\s, привет" }), as);
      const find = async (search: string) => {
        const answer = await api.ask("GET", `/v1/templates?${search}`, undefined, as);
        assert.equal(answer.body.total, answer.body.templates.length);
        return answer.body.templates.map((row: { slug: string }) => row.slug);
      };
      assert.deepEqual(await find("query=100%25"), ["sale"]);
      assert.deepEqual(await find("query=%25"), ["sale"]);
      assert.deepEqual(await find("query=BY-"), ["by-slug"]);
      assert.deepEqual(await find("query=subject_"), ["bb"]);
      assert.deepEqual(await find("query=%5C"), ["cc"]);
      assert.deepEqual(await find("query=nothing"), []);
      assert.deepEqual(await find(`query=${encodeURIComponent("ПРИВЕТ")}`), ["cc"]);
      assert.deepEqual(await find("active=false"), ["by-slug"]);
      assert.deepEqual(await find("active=true&query=s"), ["cc", "bb", "sale"]);
    });

    for (const [search, field] of [
      ["limit=0", "limit"],
      ["limit=101", "limit"],
      ["limit=x", "limit"],
      ["offset=-1", "offset"],
      ["active=maybe", "active"],
      ["query=%00", "query"],
      [`query=${"x".repeat(192)}`, "query"],
      ["sort=name", "sort"],
    ] as const) {
      test(`?${search.slice(0, 20)} is 400`, async () => {
        assertRefused(await api.ask("GET", `/v1/templates?${search}`), 400, "validation_error", field);
      });
    }
  });

  describe("update", () => {
    test("each PUT changes what it names, keeps the rest, and makes a new version", async () => {
      const before = await create({ slug: "to-change", subject: "{{a}}", description: "d" });
      const changes: Record<string, unknown>[] = [
        { name: "New name" },
        { slug: "changed" },
        { description: null },
        { subject: "{{b}}" },
        { html_body: "<b>{{c}}</b>" },
        { text_body: "{{d}}" },
        { active: false },
        { variables: [{ name: "b", required: false }] },
      ];
      let expected = before;
      for (const [index, change] of changes.entries()) {
        const answer = await api.ask("PUT", `/v1/templates/${before.id}`, change);
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        const { template } = answer.body;
        expected = {
          ...expected,
          ...change,
          version: index + 2,
          updated_at: template.updated_at,
          variables: template.variables,
        };
        assert.deepEqual(template, expected);
        assert.deepEqual((await api.ask("GET", "/v1/templates/" + before.id)).body.template, expected);
      }
      assert.deepEqual(expected.variables, [
        { name: "b", required: false, default: null },
        { name: "c", required: true, default: null },
        { name: "d", required: true, default: null },
      ]);
      assert.ok(expected.updated_at > before.updated_at);
      assert.equal((await api.ask("GET", "/v1/templates/to-change")).status, 404);
      assert.equal((await api.ask("GET", "/v1/templates/changed")).status, 200);
    });

    test("found variables follow the sources; declared ones stay until they are set to null", async () => {
      const { id } = await create({ subject: "{{a}}" });
      const put = async (change: Record<string, unknown>) =>
        (await api.ask("PUT", `/v1/templates/${id}`, change)).body.template.variables.map(
          (v: { name: string }) => v.name,
        );
      assert.deepEqual(await put({ subject: "{{b}}" }), ["b"]);
      assert.deepEqual(await put({ variables: [{ name: "z" }] }), ["z", "b"]);
      assert.deepEqual(await put({ subject: "{{c}}" }), ["z", "c"]);
      assert.deepEqual(await put({ variables: null }), ["c"]);
    });

    test("the record of a GET can be put back", async () => {
      const { id } = await create({ subject: '{{a.[b c]}} {{items[0].x}} {{[if]}} {{default e "1"}}' });
      const { template } = (await api.ask("GET", `/v1/templates/${id}`)).body;
      const { id: _i, org_id: _o, version: _v, created_at: _c, updated_at: _u, ...fields } = template;
      const put = await api.ask("PUT", `/v1/templates/${id}`, fields);
      assert.equal(put.status, 200, JSON.stringify(put.body));
      assert.deepEqual(put.body.template.variables, template.variables);
    });

    test("by slug; and a PUT of the slug it has is no conflict", async () => {
      await create({ slug: "same-slug" });
      const answer = await api.ask("PUT", "/v1/templates/same-slug", { slug: "same-slug" });
      assert.equal(answer.body.template.version, 2);
    });

    test("a refused PUT changes nothing", async () => {
      const template = await create({ slug: "kept-as-is" });
      await create({ slug: "in-the-way" });
      const path = `/v1/templates/${template.id}`;
      assertRefused(await api.ask("PUT", path, { slug: "in-the-way", name: "N" }), 409, "already_exists", "slug");
      assertRefused(await api.ask("PUT", path, { name: "N", html_body: "{{" }), 400, "template_error", "html_body");
      assertRefused(await api.ask("PUT", path, { html_body: null }), 400, "validation_error", "html_body");
      assertRefused(await api.ask("PUT", path, { slug: UNKNOWN }), 400, "validation_error", "slug");
      assertRefused(await api.ask("PUT", path, { name: null }), 400, "validation_error", "name");
      assertRefused(await api.ask("PUT", path, { version: 9 }), 400, "validation_error", "version");
      assertRefused(await api.ask("PUT", path, {}), 400, "validation_error", "body");
      assert.deepEqual((await api.ask("GET", path)).body.template, template);
    });

    test("what does not exist is 404", async () => {
      for (const id of [UNKNOWN, "no-such-slug", "A%00"]) {
        assertRefused(await api.ask("PUT", `/v1/templates/${id}`, { name: "x" }), 404, "not_found");
      }
    });

    test("20 PUTs at once give 20 versions, none lost", async () => {
      const { id } = await create();
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => api.ask("PUT", `/v1/templates/${id}`, { name: `N${index}` })),
      );
      const versions = answers.map(({ body }) => body.template.version).sort((a, b) => a - b);
      assert.deepEqual(
        versions,
        Array.from({ length: 20 }, (_, index) => index + 2),
      );
      const stored = await api.world.db.query("select version from template_version where template_id = $1", [id]);
      assert.equal(stored.length, 21);
    });

    test("changes made at the same time to different fields are all there", async () => {
      const { id } = await create({ subject: "old", html_body: "old" });
      const changes = [{ subject: "new" }, { html_body: "new" }, { text_body: "new" }, { name: "new" }];
      await Promise.all(changes.map((change) => api.ask("PUT", `/v1/templates/${id}`, change)));
      const { subject, html_body, text_body, name, version } = (await api.ask("GET", `/v1/templates/${id}`)).body
        .template;
      assert.deepEqual([subject, html_body, text_body, name, version], ["new", "new", "new", "new", 5]);
    });

    test("the database itself refuses to change a version", async () => {
      const { id } = await create();
      const change = "update template_version set subject = 'x' where template_id = $1";
      assert.equal(await api.world.db.execute(change, [id]), 0);
    });
  });

  describe("delete", () => {
    test("answers the id, by UUID or slug, once; versions go with it and the slug is free again", async () => {
      const first = await create({ slug: "to-delete" });
      await api.ask("PUT", "/v1/templates/to-delete", { name: "v2" });
      const gone = await api.ask("DELETE", "/v1/templates/to-delete");
      assert.deepEqual([gone.status, gone.body], [200, { deleted: true, id: first.id }]);
      assertRefused(await api.ask("DELETE", "/v1/templates/to-delete"), 404, "not_found");
      assertRefused(await api.ask("GET", `/v1/templates/${first.id}`), 404, "not_found");
      const left = await api.world.db.query("select from template_version where template_id = $1", [first.id]);
      assert.equal(left.length, 0);
      const second = await create({ slug: "to-delete" });
      assert.equal((await api.ask("DELETE", `/v1/templates/${second.id}`)).body.id, second.id);
    });
  });

  describe("tenancy and keys", () => {
    test("another organization finds nothing by id or slug, with any operation", async () => {
      const { id } = await create({ slug: "only-mine" });
      const as = { key: other.live_key };
      for (const path of [`/v1/templates/${id}`, "/v1/templates/only-mine"]) {
        assertRefused(await api.ask("GET", path, undefined, as), 404, "not_found");
        assertRefused(await api.ask("PUT", path, { name: "taken over" }, as), 404, "not_found");
        assertRefused(await api.ask("POST", `${path}/preview`, {}, as), 404, "not_found");
        assertRefused(await api.ask("DELETE", path, undefined, as), 404, "not_found");
      }
      const list = await api.ask("GET", "/v1/templates?query=only-mine", undefined, as);
      assert.equal(list.body.total, 0);
      const mine = await api.ask("GET", `/v1/templates/${id}`);
      assert.deepEqual([mine.body.template.version, mine.body.template.slug], [1, "only-mine"]);
    });

    test("row-level security hides both tables from a statement that forgets the organization", async () => {
      await create();
      for (const table of ["template", "template_version"]) {
        const rows = await api.world.db.asOrg(other.org_id, (tx) => tx.query(`select org_id from ${table}`));
        assert.ok(
          rows.every((row) => row.org_id === other.org_id),
          table,
        );
      }
    });

    test("a test key manages templates too, and sees the same ones", async () => {
      const as = { key: api.test_key };
      const made = await api.ask("POST", "/v1/templates", minimal({ slug: "by-test-key" }), as);
      assert.equal(made.status, 201);
      assert.equal((await api.ask("GET", "/v1/templates/by-test-key")).status, 200);
      assert.equal((await api.ask("PUT", "/v1/templates/by-test-key", { name: "x" }, as)).status, 200);
      assert.equal((await api.ask("POST", "/v1/templates/by-test-key/preview", {}, as)).status, 200);
      assert.equal((await api.ask("DELETE", "/v1/templates/by-test-key", undefined, as)).status, 200);
    });

    test("an organization in review may prepare its templates", async () => {
      const inReview = await api.organization("starter", "pending_review");
      const made = await api.ask("POST", "/v1/templates", minimal(), { key: inReview.live_key });
      assert.equal(made.status, 201);
    });
  });
});
