// The pages behind links in mail, which need no key: what every one of them has in common.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../support/api.ts";

const PAGES = [
  "/masked/confirm/x",
  "/masked/unsubscribe/x",
  "/masked/stop/x",
  "/masked/held/x",
  "/masked/setting/x",
  "/masked/release/x",
  "/unsubscribe/x",
];
const FORM = { "content-type": "application/x-www-form-urlencoded" };

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

test("every page loads nothing but its own style, and is kept, indexed and framed by nobody", async () => {
  for (const path of PAGES) {
    for (const [method, form] of [
      ["GET", undefined],
      ["POST", "a=b"],
    ] as const) {
      const sent = { key: null, headers: form === undefined ? {} : FORM };
      const { status, body, headers } = await api.ask(method, path, form, sent);
      assert.equal(status, 404, `${method} ${path}`);
      const style = /<style>(.*)<\/style>/.exec(body)?.[1] ?? "";
      const hash = createHash("sha256").update(style).digest("base64");
      assert.deepEqual(
        String(headers["content-security-policy"]).split("; "),
        [
          "default-src 'none'",
          `style-src 'sha256-${hash}'`,
          "form-action 'self'",
          "frame-ancestors 'none'",
          "base-uri 'none'",
        ],
        path,
      );
      const { "content-type": type, "cache-control": cache, "x-robots-tag": robots, "referrer-policy": from } = headers;
      assert.deepEqual([type, cache, robots, from], ["text/html; charset=utf-8", "no-store", "noindex", "no-referrer"]);
    }
  }
});

test("forms beyond 8 KiB are refused, and a client that asks for too many pages", async () => {
  for (const path of PAGES) {
    const large = await api.ask("POST", path, "x".repeat(8_193), { key: null, headers: FORM });
    assert.ok(large.status >= 400 && large.body.error !== undefined, `${path}: ${large.status}`);
    const asked = Array.from({ length: 700 }, () => api.ask("GET", path, undefined, { key: null }));
    const answers = await Promise.all(asked);
    const refused = answers.filter(({ status }) => status === 429);
    assert.ok(refused.length > 0 && answers.every(({ status }) => status === 404 || status === 429), path);
    assert.ok(Number(refused[0]?.headers["retry-after"]) >= 1, path);
  }
});
