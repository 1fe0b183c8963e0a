import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type Browser, browserOf, setUp } from "../../test/support/people.ts";

const FORM = {
  "content-type": "text/plain",
  "sec-fetch-site": "same-origin",
  "x-postern-dashboard": "",
  origin: "null",
};
const HTML = "<p>Grüße</p>\r\nhtml=<script>alert(1)</script>";
let api: TestApi;
let person: Browser;

before(async () => {
  api = await testApi();
  person = await setUp(api, "ann@example.net");
});
after(() => api.close());

const show = (by: Browser, pictures: string, headers = {}) =>
  by.ask("POST", "/dashboard/api/mail-frame", `pictures=${pictures}\r\nhtml=${HTML}\r\n`, {
    headers: { ...FORM, ...headers },
  });

it("a mail's HTML comes as it is, under a policy that lets nothing run and nothing be fetched", async () => {
  const { status, body, headers } = await show(person, "no");
  assert.equal(status, 200);
  assert.equal(headers["content-type"], "text/html; charset=utf-8");
  assert.ok(String(body).includes(`<body>${HTML}</body>`));
  assert.equal(
    headers["content-security-policy"],
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
  );
  assert.equal(headers["cache-control"], "no-store");
  const asked = await show(person, "yes");
  assert.match(String(asked.headers["content-security-policy"]), /^sandbox; .*img-src data: https: http:;/);
});

it("another site's form, a form without its fields, and somebody who is not signed in get nothing", async () => {
  const codeOf = async (asked: ReturnType<typeof show>) => {
    const { status, body } = await asked;
    return [status, body.code];
  };
  assert.deepEqual(await codeOf(show(person, "no", { "sec-fetch-site": "cross-site" })), [403, "request_not_allowed"]);
  assert.deepEqual(await codeOf(show(person, "no", { "sec-fetch-site": "" })), [403, "request_not_allowed"]);
  assert.deepEqual(await codeOf(show(person, "maybe")), [400, "validation_error"]);
  assert.deepEqual(await codeOf(show(browserOf(api), "no")), [401, "not_signed_in"]);
});
