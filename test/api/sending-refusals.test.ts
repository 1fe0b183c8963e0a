// Every bad input of POST /v1/send that the contract names, with its status, its code and a sentence that names the
// field; and that nothing of a refused request is kept.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Answer } from "../support/api.ts";
import { GOOD, type SendingApi, sendingApi } from "./sender.ts";

const DAY_MS = 86_400_000;
const MIB = 1024 * 1024;
const RESERVED = [
  ..."From To Cc Bcc Subject Date Message-ID MIME-Version Content-Type Content-Transfer-Encoding DKIM-Signature".split(
    " ",
  ),
  ..."Return-Path Received Sender Authentication-Results ARC-Seal ARC-Message-Signature".split(" "),
];

type Case = [what: string, change: Record<string, unknown>, field: string, code?: string, says?: RegExp];

let api: SendingApi;

before(async () => {
  api = await sendingApi();
  const { status } = await api.ask("POST", "/v1/templates", {
    name: "Needs a name",
    slug: "needs",
    subject: "Hi {{name}}",
    html_body: "<p>{{name}}</p>",
    variables: [{ name: "name", required: true }],
  });
  assert.equal(status, 201);
});

after(async () => {
  const kept = await api?.ask("GET", "/v1/emails");
  await api?.close();
  assert.equal(kept?.body.total, 0, "nothing of a refused request is kept");
});

function refuses(
  { status, body, headers }: Answer,
  expected: { status: number; code: string; field?: string; says?: RegExp },
) {
  const shown = JSON.stringify(body);
  assert.equal(status, expected.status, shown);
  assert.equal(body.code, expected.code, shown);
  assert.equal(body.request_id, headers["x-request-id"], shown);
  if (expected.field !== undefined) assert.equal(body.field, expected.field, shown);
  const named = expected.field?.replace(/^(headers|variables)\./, "");
  if (named !== undefined && !expected.says) assert.ok(body.error.includes(named), shown);
  if (expected.says) assert.match(body.error, expected.says);
}

const many = (count: number) => Array.from({ length: count }, (_, n) => `r${n}@recipient.example`);
const iso = (ms: number) => new Date(Date.now() + ms).toISOString();
const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

const CASES: Case[] = [
  ["no from", { from: undefined }, "from"],
  ["a from that is no string", { from: 7 }, "from"],
  ["a from that is null", { from: null }, "from"],
  ["an empty from", { from: "" }, "from"],
  ["a from without an address", { from: "Shop" }, "from"],
  ["two senders", { from: "a@sender.example, b@sender.example" }, "from"],
  ["a group as sender", { from: "Us: a@sender.example;" }, "from"],
  ["a from with a comment", { from: "a@sender.example (Shop)" }, "from"],
  ["a from with two @", { from: "a@b@sender.example" }, "from"],
  ["a from that is an address literal", { from: "a@[127.0.0.1]" }, "from"],
  ["no to", { to: undefined }, "to", "validation_error", /^the 'to' field is required$/],
  ["an empty to", { to: [] }, "to"],
  ["a to that is a string", { to: "anna@recipient.example" }, "to"],
  ["a to that holds null", { to: [null] }, "to[0]"],
  ["a to that holds an empty string", { to: [""] }, "to[0]"],
  ["a bad address in to", { to: ["ok@recipient.example", "nobody"] }, "to[1]"],
  ["a bad address in cc", { cc: ["a b@recipient.example"] }, "cc[0]"],
  ["a bad address in bcc", { bcc: ["@recipient.example"] }, "bcc[0]"],
  ["a list in one string", { to: ["a@recipient.example, b@recipient.example"] }, "to[0]"],
  ["a recipient without a domain", { to: ["anna@localhost"] }, "to[0]"],
  ["a local part over 64 octets", { to: [`${"a".repeat(65)}@recipient.example`] }, "to[0]"],
  [
    "an address over 254 octets",
    { to: [`a@${"b".repeat(60)}.${"c".repeat(60)}.${"d".repeat(60)}.${"e".repeat(60)}.${"f".repeat(20)}.example`] },
    "to[0]",
  ],
  ["51 recipients in to", { to: many(51) }, "to"],
  ["51 recipients together", { to: many(26), cc: many(51).slice(26) }, "to", "validation_error", /at most 50/],
  ["a bad reply_to", { reply_to: "nobody" }, "reply_to"],
  ["a bad address in the list of reply_to", { reply_to: ["a@sender.example", "x"] }, "reply_to[1]"],
  ["a reply_to that is a number", { reply_to: 1 }, "reply_to"],
  ["no subject", { subject: undefined }, "subject"],
  ["a subject that is no string", { subject: {} }, "subject"],
  ["a subject of 2,001 characters", { subject: "x".repeat(2001) }, "subject"],
  ["no body at all", { html_body: undefined }, "html_body"],
  ["an html_body that is no string", { html_body: 1 }, "html_body"],
  ["a text_body that is no string", { text_body: [] }, "text_body"],
  ["an auto_text that is no boolean", { auto_text: "no" }, "auto_text"],
  ["a template beside a subject", { template: "needs", html_body: undefined }, "subject"],
  ["a template beside a body", { template: "needs", subject: undefined }, "html_body"],
  [
    "both kinds of template",
    {
      template: "needs",
      template_id: "0190a000-0000-7000-8000-000000000000",
      subject: undefined,
      html_body: undefined,
    },
    "template_id",
  ],
  ["a template_id that is no UUID", { template_id: "x", subject: undefined, html_body: undefined }, "template_id"],
  ["variables without a template", { variables: { name: "x" } }, "variables"],
  [
    "variables that are a list",
    { variables: [], template: "needs", subject: undefined, html_body: undefined },
    "variables",
  ],
  [
    "a missing variable",
    { template: "needs", subject: undefined, html_body: undefined },
    "variables.name",
    "template_variable_missing",
  ],
  ["headers that are a list", { headers: [] }, "headers"],
  ["a header that is a number", { headers: { "X-A": 1 } }, "headers.X-A"],
  ["a header name with a space", { headers: { "X A": "1" } }, "headers.X A"],
  ["a header name with a colon", { headers: { "X:A": "1" } }, "headers.X:A"],
  ["an empty header name", { headers: { "": "1" } }, "headers."],
  ["a header twice in other case", { headers: { "X-A": "1", "x-a": "2" } }, "headers.x-a"],
  ...["Reply-To", "reply-to"].map(
    (name): Case => [
      `the header ${name} beside reply_to`,
      { reply_to: ["a@sender.example"], headers: { [name]: "b@sender.example" } },
      `headers.${name}`,
    ],
  ),
  ["51 headers", { headers: Object.fromEntries(many(51).map((_, n) => [`X-${n}`, "1"])) }, "headers"],
  ...RESERVED.map((name): Case => [`the reserved header ${name}`, { headers: { [name]: "x" } }, `headers.${name}`]),
  ...RESERVED.map(
    (name): Case => [
      `the reserved header ${name.toUpperCase()}`,
      { headers: { [name.toUpperCase()]: "x" } },
      `headers.${name.toUpperCase()}`,
    ],
  ),
  ["an attachment without a name", { attachments: [{ content: "aGk=" }] }, "attachments[0].filename"],
  ["an attachment with an empty name", { attachments: [{ filename: "", content: "aGk=" }] }, "attachments[0].filename"],
  ["an attachment without content", { attachments: [{ filename: "a" }] }, "attachments[0].content"],
  ["an attachment that is not base64", { attachments: [{ filename: "a", content: "%%%" }] }, "attachments[0].content"],
  ["an attachment in base64url", { attachments: [{ filename: "a", content: "a-_b" }] }, "attachments[0].content"],
  ["base64 that ends amid a byte", { attachments: [{ filename: "a", content: "aGkxa" }] }, "attachments[0].content"],
  [
    "a million blanks that are no base64",
    { attachments: [{ filename: "a", content: `${" ".repeat(1_000_000)}!` }] },
    "attachments[0].content",
  ],
  [
    "an unknown field of an attachment",
    { attachments: [{ filename: "a", content: "", path: "/etc/passwd" }] },
    "attachments[0].path",
  ],
  [
    "a bad media type",
    { attachments: [{ filename: "a", content: "", content_type: "text" }] },
    "attachments[0].content_type",
  ],
  [
    "a bad content id",
    { attachments: [{ filename: "a", content: "", content_id: "a b" }] },
    "attachments[0].content_id",
  ],
  [
    "a content id that another attachment has",
    { attachments: ["a", "b"].map((filename) => ({ filename, content: "", content_id: "logo" })) },
    "attachments[1].content_id",
  ],
  [
    "a bad disposition",
    { attachments: [{ filename: "a", content: "", disposition: "form-data" }] },
    "attachments[0].disposition",
  ],
  ["21 attachments", { attachments: many(21).map((filename) => ({ filename, content: "" })) }, "attachments"],
  ["tags that are a string", { tags: "a" }, "tags"],
  ["11 tags", { tags: many(11) }, "tags"],
  ["a tag of 65 characters", { tags: ["x".repeat(65)] }, "tags[0]"],
  ["an empty tag", { tags: ["ok", ""] }, "tags[1]"],
  ["a tag that is a number", { tags: [1] }, "tags[0]"],
  ["metadata that is a list", { metadata: [] }, "metadata"],
  ["21 keys of metadata", { metadata: Object.fromEntries(many(21).map((key) => [key, 1])) }, "metadata"],
  ["metadata over 2 KiB", { metadata: { a: "x".repeat(2048) } }, "metadata"],
  ["a scheduled_at that is no time", { scheduled_at: "tomorrow" }, "scheduled_at"],
  ["a scheduled_at without a zone", { scheduled_at: "2026-12-01T00:00:00" }, "scheduled_at"],
  ["a scheduled_at that does not exist", { scheduled_at: "2026-02-30T00:00:00Z" }, "scheduled_at"],
  ["a scheduled_at 31 days ahead", { scheduled_at: iso(31 * DAY_MS) }, "scheduled_at"],
  ["an expires_at in the past", { expires_at: "2020-01-01T00:00:00Z" }, "expires_at"],
  ["an expires_at before scheduled_at", { scheduled_at: iso(2 * DAY_MS), expires_at: iso(DAY_MS) }, "expires_at"],
  ["an expires_at 34 days ahead", { expires_at: iso(34 * DAY_MS) }, "expires_at"],
  [
    "an expires_at 34 days ahead of a mail for later",
    { scheduled_at: iso(29 * DAY_MS), expires_at: iso(34 * DAY_MS) },
    "expires_at",
  ],
  ["a require_tls that is a string", { require_tls: "true" }, "require_tls"],
  ["an unknown field", { subjekt: "x" }, "subjekt"],
  ["a field of the record", { status: "delivered" }, "status"],
  ["a field that chooses the organization", { org_id: "0190a000-0000-7000-8000-000000000000" }, "org_id"],
  ["a field that chooses the environment", { environment: "test" }, "environment"],
];

describe("POST /v1/send refuses", () => {
  for (const [what, change, field, code = "validation_error", says] of CASES) {
    it(`${what}: 400 naming ${field}`, async () => {
      refuses(await api.send(change), { status: 400, code, field, ...(says ? { says } : {}) });
    });
  }

  it("an unknown template: 404", async () => {
    const byTemplate = { subject: undefined, html_body: undefined };
    refuses(await api.send({ ...byTemplate, template: "unknown" }), { status: 404, code: "not_found" });
    const template_id = "0190a000-0000-7000-8000-000000000000";
    refuses(await api.send({ ...byTemplate, template_id }), { status: 404, code: "not_found" });
  });

  it("a message over 25 MiB, also one that only its encoding makes so large: 400 payload_too_large", async () => {
    const attachment = (bytes: number) => ({ filename: "a", content: Buffer.alloc(bytes, 65).toString("base64") });
    const large = { attachments: [attachment(20 * MIB)] };
    refuses(await api.send(large), { status: 400, code: "payload_too_large", field: "attachments", says: /25 MiB/ });
    const text = { text_body: "ü".repeat(10 * MIB), auto_text: false };
    refuses(await api.send(text), { status: 400, code: "payload_too_large", says: /25 MiB/ });
  });

  it("a request over 40 MiB: 400 payload_too_large", async () => {
    const { status, body } = await api.send({ html_body: "x".repeat(40 * MIB) });
    assert.deepEqual([status, body.code], [400, "payload_too_large"]);
  });
});

describe("a request without a body", () => {
  for (const type of ["application/x-www-form-urlencoded", "text/plain;charset=UTF-8", ""]) {
    it(`may name the type ${type || "''"}: there is nothing of it`, async () => {
      const { status, body } = await api.ask("POST", "/v1/domains/00000000-0000-7000-8000-000000000000/verify", "", {
        headers: { "content-type": type },
      });
      assert.deepEqual([status, body.code], [404, "not_found"]);
    });
  }
});

describe("a body that cannot be read", () => {
  it("is not looked at where there is nothing: 404", async () => {
    for (const [method, path] of [
      ["PATCH", "/v1/webhooks"],
      ["POST", "/v2/send"],
    ] as const) {
      for (const payload of ["{", "x".repeat(2 * MIB)]) {
        refuses(await api.ask(method, path, payload, { headers: { "content-type": "application/json" } }), {
          status: 404,
          code: "not_found",
        });
      }
    }
  });

  const raw = (payload: string | Buffer, type = "application/json") =>
    api.ask("POST", "/v1/send", payload, { headers: { "content-type": type } });

  for (const [what, text] of [
    ["cut off", '{"from": "a'],
    ["with a comma too many", '{"from": "a@sender.example",}'],
    ["with a comment", "{} // hello"],
    ["with text behind it", `${JSON.stringify(GOOD)} x`],
    ["nested too deep", `{"metadata": {"a": ${nested(40)}}}`],
    ["with __proto__", '{"__proto__": {"polluted": 1}}'],
    ["with __proto__ in metadata", `{"metadata": {"__proto__": {"polluted": 1}}}`],
    ["with a constructor that sets a prototype", '{"constructor": {"prototype": {"polluted": 1}}}'],
  ] as const) {
    it(`${what}: 400 invalid_json`, async () => {
      refuses(await raw(text), { status: 400, code: "invalid_json" });
      assert.equal(({} as Record<string, unknown>).polluted, undefined);
    });
  }

  it("a name that is not taken is named, not called bad JSON", async () => {
    for (const text of ['{"__proto__": 1}', '{"metadata": {"constructor": {"prototype": {}}}}']) {
      const { body } = await raw(text);
      assert.equal(body.error, "the body holds a name that is not taken: __proto__, or prototype below constructor");
    }
    assert.equal((await raw("{")).body.error, "the body is not valid JSON");
  });

  for (const [what, text] of [
    ["nothing", ""],
    ["null", "null"],
    ["a string", '"hello"'],
    ["a list", JSON.stringify([GOOD])],
    ["a number", "1"],
  ] as const) {
    it(`that is ${what}: 400 naming the body`, async () => {
      refuses(await raw(text), { status: 400, code: "validation_error", field: "body" });
    });
  }

  // CVE-2026-25223, -33806, -3419, CVE-2025-32442: a type that is read in two ways must not skip the schema.
  for (const type of [
    ...["application/json\ta", " application/json", "application/json garbage", "application/json\t;", "text/plain"],
    ...[
      "application/jsonx",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "*/*",
      "application",
    ],
    ...["application/json, text/html", "APPLICATION/JSON\u000bx", "application/ld+json"],
  ]) {
    it(`of type ${JSON.stringify(type)} is never accepted unchecked`, async () => {
      const { status } = await raw('{"from": 1}', type);
      assert.equal(status, 400);
    });
  }

  it("is read when its type has parameters or capitals", async () => {
    for (const type of ["application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"]) {
      refuses(await raw('{"from": 1, "to": ["a@b.example"]}', type), {
        status: 400,
        code: "validation_error",
        field: "from",
      });
    }
  });
});
