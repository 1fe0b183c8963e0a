// What is wrong with a request is said in a sentence that names the field, the header or the query parameter.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../support/api.ts";

let api: TestApi;

before(async () => {
  api = await testApi();
});

after(() => api.close());

const CASES: [method: string, path: string, body: unknown, field: string, sentence: string][] = [
  ["GET", "/v1/emails?limit=0", undefined, "limit", "the 'limit' query parameter must be at least 1"],
  ["GET", "/v1/emails?limit=101", undefined, "limit", "the 'limit' query parameter must be at most 100"],
  ["GET", "/v1/emails?limit=ten", undefined, "limit", "the 'limit' query parameter must be an integer"],
  ["GET", "/v1/emails?offset=-1", undefined, "offset", "the 'offset' query parameter must be at least 0"],
  ["GET", "/v1/emails?page=2", undefined, "page", "the 'page' query parameter is not known"],
  ["POST", "/v1/api-keys", { name: "", environment: "test" }, "name", "the 'name' field must not be empty"],
  ["POST", "/v1/api-keys", { name: "x" }, "environment", "the 'environment' field is required"],
  [
    "POST",
    "/v1/api-keys",
    { name: "x", environment: "prod" },
    "environment",
    "the 'environment' field must be one of: live, test",
  ],
  [
    "POST",
    "/v1/webhooks",
    { url: "https://hooks.example/", events: [] },
    "events",
    "the 'events' field must not be empty",
  ],
  ["GET", "/v1/emails?domain_id=shop", undefined, "domain_id", "the 'domain_id' query parameter must be a UUID"],
];

for (const [method, path, body, field, sentence] of CASES) {
  test(`${method} ${path} ${JSON.stringify(body) ?? ""}: ${sentence}`, async () => {
    const answer = await api.ask(method, path, body);
    assert.equal(answer.status, 400);
    const { error, code, field: named } = answer.body as Record<string, unknown>;
    assert.deepEqual({ error, code, named }, { error: sentence, code: "validation_error", named: field });
  });
}

test("a field that is missing is looked for among the first twenty that are not known", async () => {
  const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`x${n}`, 1]));
  for (const [body, sentence] of [
    [{ ...fields(19), frm: "a@b.example" }, "the 'from' field is required; 'frm' is not known; did you mean `from`?"],
    [{ ...fields(20), frm: "a@b.example" }, "the 'from' field is required; 'x0' is not known"],
  ] as const) {
    const answer = await api.ask("POST", "/v1/send", body);
    assert.deepEqual([answer.status, (answer.body as { error: string }).error], [400, sentence]);
  }
});

test("where a value may have several forms, what is wrong with the one it has is said, else which there are", async () => {
  const mail = { from: "a@b.example", to: ["c@d.example"], subject: "x", text_body: "x" };
  for (const [reply_to, field, sentence] of [
    [Array(11).fill("a@b.example"), "reply_to", "must have at most 10 entries"],
    ["", "reply_to", "must not be empty"],
    [["a@b.example", 1], "reply_to[1]", "must be a string"],
    [["a@b.example", ""], "reply_to[1]", "must not be empty"],
    [7, "reply_to", "must be a string or an array"],
  ]) {
    const { status, body } = await api.ask("POST", "/v1/send", { ...mail, reply_to });
    assert.equal(status, 400);
    assert.deepEqual([body.field, body.error], [field, `the '${field}' field ${sentence}`]);
  }
});

test("too long is said with the number of characters, too many with the number of entries", async () => {
  const name = await api.ask("POST", "/v1/api-keys", { name: "x".repeat(1_000), environment: "test" });
  assert.match(String((name.body as { error: string }).error), /^the 'name' field must have at most \d+ characters$/);
  const tags = await api.ask("POST", "/v1/send", {
    from: "a@b.example",
    to: ["c@d.example"],
    tags: Array(11).fill("t"),
  });
  assert.equal((tags.body as { error: string }).error, "the 'tags' field must have at most 10 entries");
});
