import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { fixedClock } from "../platform/clock.ts";

const DAY_MS = 86_400_000;
const UNKNOWN = "01890000-0000-7000-8000-00000000000a";
const clock = fixedClock(Date.now());
let api: TestApi;
let domain_id: string;
let template_id: string;

async function add(body: object, key?: string) {
  return api.ask("POST", "/v1/suppressions", body, key ? { key } : {});
}
async function check(query: string, key?: string) {
  const answer = await api.ask("GET", `/v1/suppressions/check?${query}`, undefined, key ? { key } : {});
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}
async function list(query = "", key?: string) {
  const answer = await api.ask("GET", `/v1/suppressions?${query}`, undefined, key ? { key } : {});
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}

describe("/v1/suppressions", () => {
  before(async () => {
    api = await testApi({}, (world) => ({ ...world, clock }));
    domain_id = (await api.ask("POST", "/v1/domains", { domain: "one.example" })).body.id;
    const template = { name: "News", slug: "news", subject: "News", text_body: "News" };
    template_id = (await api.ask("POST", "/v1/templates", template)).body.template.id;
  });
  after(() => api.close());

  describe("adding a suppression", () => {
    it("answers 201 with every field, the address lower-cased and the domain in ASCII", async () => {
      const answer = await add({ email: "Some.One@MÜNCHEN.example" });
      assert.equal(answer.status, 201);
      const { id, created_at, ...rest } = answer.body.suppression;
      assert.match(id, /^[0-9a-f-]{36}$/);
      assert.equal(created_at, new Date(clock.now()).toISOString());
      assert.deepEqual(rest, {
        email: "some.one@xn--mnchen-3ya.example",
        reason: "manual",
        scope_type: "org",
        scope_id: null,
        source: "manual",
        source_message_id: null,
        bounce_code: null,
        diag_code: null,
        feedback_type: null,
        note: null,
        expires_at: null,
      });
    });

    it("answers 200 with the same entry for the same again, and rewrites note and expiry of the customer's own", async () => {
      const first = await add({ email: "again@example.com", note: "one" });
      const expires_at = new Date(clock.now() + DAY_MS).toISOString();
      const second = await add({ email: "AGAIN@example.com", note: "two", expires_at });
      assert.deepEqual([first.status, second.status], [201, 200]);
      assert.equal(second.body.suppression.id, first.body.suppression.id);
      assert.equal(second.body.suppression.note, "two");
      assert.equal(second.body.suppression.expires_at, expires_at);
      const third = await add({ email: "again@example.com" });
      assert.equal(third.body.suppression.note, "two");
      assert.equal(third.body.suppression.expires_at, null);
    });

    it("keeps the stronger of two reasons for one address and scope", async () => {
      await add({ email: "both@example.com", reason: "unsubscribe" });
      const answer = await add({ email: "both@example.com", reason: "manual", note: "asked by phone" });
      assert.equal(answer.status, 200);
      assert.equal(answer.body.suppression.reason, "unsubscribe");
      assert.equal(answer.body.suppression.note, "asked by phone");
    });

    it("keeps scopes of one address apart", async () => {
      for (const scope of [
        { scope_type: "domain", scope_id: domain_id.toUpperCase() },
        { scope_type: "template", scope_id: template_id },
        { scope_type: "list", scope_id: "Weekly news" },
        { scope_type: "stream", scope_id: "bulk" },
      ]) {
        const answer = await add({ email: "scopes@example.com", reason: "unsubscribe", ...scope });
        assert.equal(answer.status, 201);
        assert.equal(answer.body.suppression.scope_type, scope.scope_type);
      }
      const { entries } = await check("email=scopes@example.com");
      assert.equal(entries.length, 4);
      assert.equal(entries.at(-1).scope_id, domain_id);
    });

    for (const [what, body, field] of [
      ["no address", {}, "email"],
      ["a broken address", { email: "a@b@c" }, "email"],
      ["an empty address", { email: "" }, "email"],
      ["an unknown field", { email: "a@example.com", scope: "org" }, "scope"],
      ["a reason that only events give", { email: "a@example.com", reason: "hard_bounce" }, "reason"],
      ["an unknown scope", { email: "a@example.com", scope_type: "planet" }, "scope_type"],
      ["a scope without its id", { email: "a@example.com", scope_type: "list" }, "scope_id"],
      ["an id for the scope org", { email: "a@example.com", scope_id: "x" }, "scope_id"],
      ["a domain that is not there", { email: "a@example.com", scope_type: "domain", scope_id: UNKNOWN }, "scope_id"],
      [
        "a template that is not there",
        { email: "a@example.com", scope_type: "template", scope_id: UNKNOWN },
        "scope_id",
      ],
      ["a domain that is no id", { email: "a@example.com", scope_type: "domain", scope_id: "example.com" }, "scope_id"],
      [
        "a list of 257 characters",
        { email: "a@example.com", scope_type: "list", scope_id: "x".repeat(257) },
        "scope_id",
      ],
      ["a control character", { email: "a@example.com", scope_type: "list", scope_id: "a\u0000b" }, "scope_id"],
      ["a note of 1,001 characters", { email: "a@example.com", note: "x".repeat(1_001) }, "note"],
      ["a NUL in the note", { email: "a@example.com", note: "a\u0000b" }, "note"],
      ["a time that is none", { email: "a@example.com", expires_at: "tomorrow" }, "expires_at"],
      ["a time in the past", { email: "a@example.com", expires_at: "2020-01-01T00:00:00Z" }, "expires_at"],
    ] as const) {
      it(`refuses ${what} with 400 naming the field`, async () => {
        const answer = await add(body);
        assert.equal(answer.status, 400, JSON.stringify(answer.body));
        assert.equal(answer.body.field, field);
        assert.equal(answer.body.code, "validation_error");
        assert.match(answer.body.error, new RegExp(`'${field}'`));
      });
    }

    it("refuses a body that is no object, broken JSON and a missing content type", async () => {
      assert.equal((await api.ask("POST", "/v1/suppressions", [])).status, 400);
      assert.equal((await api.ask("POST", "/v1/suppressions", "{")).body.code, "invalid_json");
      const headers = { "content-type": "text/csv" };
      assert.equal((await api.ask("POST", "/v1/suppressions", "a@example.com", { headers })).status, 400);
    });

    it("lets a test key manage entries, and asks for a key", async () => {
      const answer = await add({ email: "by-test-key@example.com" }, api.test_key);
      assert.equal(answer.status, 201);
      assert.equal((await check("email=by-test-key@example.com", api.live_key)).suppressed, true);
      assert.equal((await api.ask("GET", "/v1/suppressions", undefined, { key: null })).status, 401);
    });
  });

  describe("checking an address", () => {
    it("answers no entry for an address that is not suppressed", async () => {
      assert.deepEqual(await check("email=nobody@example.com"), { suppressed: false, entry: null, entries: [] });
    });

    it("reads the address in any case, URL-encoded", async () => {
      await add({ email: "plus+tag@example.com" });
      const found = await check(`email=${encodeURIComponent("PLUS+Tag@Example.com")}`);
      assert.equal(found.suppressed, true);
      assert.equal(found.entry.email, "plus+tag@example.com");
    });

    it("blocks mail within an entry's scope and no other", async () => {
      const email = "narrow@example.com";
      await add({ email, reason: "unsubscribe", scope_type: "list", scope_id: "news" });
      await add({ email, reason: "unsubscribe", scope_type: "domain", scope_id: domain_id });
      await add({ email, reason: "unsubscribe", scope_type: "template", scope_id: template_id });
      await add({ email, reason: "unsubscribe", scope_type: "stream", scope_id: "promo" });
      for (const [query, scope] of [
        ["", null],
        ["&list=news", "list"],
        ["&list=News", null],
        ["&list=promo", null],
        [`&domain_id=${domain_id}`, "domain"],
        [`&domain_id=${domain_id.toUpperCase()}`, "domain"],
        [`&domain_id=${UNKNOWN}`, null],
        [`&template_id=${template_id}`, "template"],
        [`&template_id=${domain_id}`, null],
        ["&stream=promo", "stream"],
        ["&stream=bulk", null],
      ] as const) {
        const found = await check(`email=${email}${query}`);
        assert.equal(found.suppressed, scope !== null, query);
        assert.equal(found.entry?.scope_type ?? null, scope, query);
        assert.equal(found.entries.length, 4);
      }
    });

    it("names the strongest of the entries that apply", async () => {
      const email = "strongest@example.com";
      await add({ email });
      await add({ email, reason: "unsubscribe", scope_type: "list", scope_id: "news" });
      assert.equal((await check(`email=${email}&list=news`)).entry.reason, "unsubscribe");
      assert.equal((await check(`email=${email}`)).entry.reason, "manual");
    });

    it("takes a plus as it is, and as it is in a query", async () => {
      await add({ email: "plus+tag@example.com", scope_type: "org" });
      for (const text of ["plus+tag@example.com", "plus%2Btag%40example.com", "%20plus%20tag@example.com"]) {
        assert.equal((await check(`email=${text}`)).suppressed, true, text);
      }
    });

    it("refuses a missing or broken address, a domain that is no id, an unknown parameter and NUL", async () => {
      for (const [query, field] of [
        ["", "email"],
        ["email=nope", "email"],
        ["email=a@example.com&domain_id=x", "domain_id"],
        ["email=a@example.com&template_id=x", "template_id"],
        ["email=a@example.com&list=a%00b", "list"],
        ["email=a@example.com&stream=a%00b", "stream"],
        ["email=a@example.com&topic=x", "topic"],
      ]) {
        const answer = await api.ask("GET", `/v1/suppressions/check?${query}`);
        assert.equal(answer.status, 400, query);
        assert.equal(answer.body.field, field);
      }
    });
  });

  describe("an entry with an end", () => {
    it("is absent everywhere from that moment on, and adding it again makes a new one", async () => {
      const email = "for-a-day@example.com";
      const expires_at = new Date(clock.now() + DAY_MS).toISOString();
      const first = await add({ email, expires_at, scope_type: "org" });
      assert.equal((await check(`email=${email}`)).suppressed, true);
      assert.equal((await list(`query=${email}`)).total, 1);
      const totalBefore = (await list("reason=manual&source=manual")).total;
      clock.advance(DAY_MS);
      assert.deepEqual(await check(`email=${email}`), { suppressed: false, entry: null, entries: [] });
      assert.equal((await list(`query=${email}`)).total, 0);
      assert.equal((await list("reason=manual&source=manual")).total, totalBefore - 1);
      assert.equal((await api.ask("GET", `/v1/suppressions/export?query=${email}`)).body.includes(email), false);
      assert.equal((await api.ask("DELETE", `/v1/suppressions/${first.body.suppression.id}`)).status, 404);
      const again = await add({ email });
      assert.equal(again.status, 201);
      assert.notEqual(again.body.suppression.id, first.body.suppression.id);
      assert.equal((await list("reason=manual&source=manual")).total, totalBefore);
    });
  });

  describe("listing", () => {
    it("pages through all entries, the newest first, with the exact total", async () => {
      const { live_key } = await api.organization();
      for (let index = 0; index < 7; index += 1) await add({ email: `page${index}@example.com` }, live_key);
      const first = await list("limit=3", live_key);
      assert.deepEqual(
        first.suppressions.map(({ email }: { email: string }) => email),
        ["page6@example.com", "page5@example.com", "page4@example.com"],
      );
      assert.deepEqual([first.total, first.limit, first.offset], [7, 3, 0]);
      const last = await list("limit=3&offset=6", live_key);
      assert.deepEqual([last.suppressions.length, last.total, last.offset], [1, 7, 6]);
      const beyond = await list("offset=100", live_key);
      assert.deepEqual([beyond.suppressions.length, beyond.total, beyond.limit], [0, 7, 50]);
    });

    it("filters by reason, scope, scope id, source and part of the address, alone and together", async () => {
      const { live_key, org_id } = await api.organization();
      await add({ email: "ann@one.example" }, live_key);
      await add({ email: "bob@one.example", reason: "unsubscribe" }, live_key);
      await add({ email: "bob@one.example", reason: "unsubscribe", scope_type: "list", scope_id: "news" }, live_key);
      await add({ email: "cy_d@two.example", reason: "unsubscribe", scope_type: "list", scope_id: "deals" }, live_key);
      await add({ email: "cy_d@two.example", scope_type: "stream", scope_id: "news" }, live_key);
      for (const [query, emails] of [
        ["reason=manual", ["cy_d@two.example", "ann@one.example"]],
        ["reason=complaint", []],
        ["scope_type=list", ["cy_d@two.example", "bob@one.example"]],
        ["scope_type=list&scope_id=news", ["bob@one.example"]],
        ["scope_id=news", ["cy_d@two.example", "bob@one.example"]],
        ["scope_id=news&reason=unsubscribe", ["bob@one.example"]],
        ["scope_id=nothing", []],
        ["source=manual&reason=unsubscribe&scope_type=org", ["bob@one.example"]],
        ["source=import:sendgrid", []],
        ["query=ONE.example", ["bob@one.example", "bob@one.example", "ann@one.example"]],
        ["query=bob&scope_type=org", ["bob@one.example"]],
        ["query=y_d", ["cy_d@two.example", "cy_d@two.example"]],
        ["query=bob@one", ["bob@one.example", "bob@one.example"]],
        ["query=BOB@one.example", ["bob@one.example", "bob@one.example"]],
        ["query=ob@one.example", []],
        ["query=@one.example", ["bob@one.example", "bob@one.example", "ann@one.example"]],
        ["query=%25", []],
        ["query=o%5C", []],
        ["query=two&scope_id=deals", ["cy_d@two.example"]],
      ] as const) {
        const found = await list(query, live_key);
        assert.deepEqual(
          found.suppressions.map(({ email }: { email: string }) => email),
          emails,
          query,
        );
        assert.equal(found.total, emails.length, query);
      }
      assert.equal((await list("query=one&limit=1&offset=1", live_key)).suppressions.length, 1);
      assert.ok(org_id);
    });

    it("refuses wrong paging, unknown words and parameters with 400 naming them", async () => {
      for (const [query, field] of [
        ["limit=0", "limit"],
        ["limit=101", "limit"],
        ["limit=x", "limit"],
        ["offset=-1", "offset"],
        ["reason=bounce", "reason"],
        ["scope_type=world", "scope_type"],
        [`query=${"x".repeat(321)}`, "query"],
        ["query=a%00b", "query"],
        ["source=a%00b", "source"],
        ["scope_id=a%00b", "scope_id"],
        ["email=a@example.com", "email"],
      ]) {
        const answer = await api.ask("GET", `/v1/suppressions?${query}`);
        assert.equal(answer.status, 400, query);
        assert.equal(answer.body.field, field);
      }
    });
  });

  describe("removing", () => {
    it("removes by id, once", async () => {
      const { body } = await add({ email: "by-id@example.com", scope_type: "list", scope_id: "news" });
      const { id } = body.suppression;
      const answer = await api.ask("DELETE", `/v1/suppressions/${id}`);
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body, { deleted: true, id });
      const again = await api.ask("DELETE", `/v1/suppressions/${id}`);
      assert.equal(again.status, 404);
      assert.equal(again.body.code, "not_found");
    });

    it("removes by URL-encoded address the org-wide entry only", async () => {
      const email = "By/Address+x@example.com";
      const { body } = await add({ email });
      await add({ email, reason: "unsubscribe", scope_type: "list", scope_id: "news" });
      const answer = await api.ask("DELETE", `/v1/suppressions/${encodeURIComponent(email)}`);
      assert.deepEqual(answer.body, { deleted: true, id: body.suppression.id });
      assert.equal((await check(`email=${encodeURIComponent(email)}`)).suppressed, false);
      assert.equal((await check(`email=${encodeURIComponent(email)}&list=news`)).suppressed, true);
      assert.equal((await api.ask("DELETE", `/v1/suppressions/${encodeURIComponent(email)}`)).status, 404);
    });

    it("answers 404 for what is no id and no address", async () => {
      for (const identifier of ["nothing", "a%00b", "%25", UNKNOWN]) {
        assert.equal((await api.ask("DELETE", `/v1/suppressions/${identifier}`)).status, 404, identifier);
      }
    });
  });

  describe("exporting", () => {
    it("writes the filtered list as CSV, safe to open in a spreadsheet, and the import reads it back", async () => {
      const { live_key } = await api.organization();
      await add({ email: "=1+1@example.com", note: '=HYPERLINK("http://evil.example","x")' }, live_key);
      await add({ email: "plain@example.com", reason: "unsubscribe", scope_type: "list", scope_id: "a,b" }, live_key);
      const answer = await api.ask("GET", "/v1/suppressions/export", undefined, { key: live_key });
      assert.equal(answer.status, 200);
      assert.match(String(answer.headers["content-type"]), /^text\/csv; charset=utf-8/);
      assert.match(String(answer.headers["content-disposition"]), /attachment/);
      const lines = answer.body.trimEnd().split("\r\n");
      assert.equal(
        lines[0],
        "id,email,reason,scope_type,scope_id,source,source_message_id,bounce_code,diag_code,feedback_type,note,expires_at,created_at",
      );
      assert.equal(lines.length, 3);
      assert.match(lines[1], /,plain@example\.com,unsubscribe,list,"a,b",manual,/);
      assert.match(
        lines[2],
        /,'=1\+1@example\.com,manual,org,,manual,,,,,"'=HYPERLINK\(""http:\/\/evil\.example"",""x""\)",/,
      );

      const other = await api.organization();
      const preview = await api.ask(
        "POST",
        "/v1/imports/suppressions/preview",
        { csv: answer.body },
        { key: other.live_key },
      );
      assert.equal(preview.status, 201);
      const { sample, valid_rows, provider } = preview.body.job;
      assert.deepEqual([valid_rows, provider], [2, "custom"]);
      assert.deepEqual(
        sample.map((row: Record<string, unknown>) => [row.email, row.reason, row.scope_type, row.scope_id]),
        [
          ["plain@example.com", "unsubscribe", "list", "a,b"],
          ["=1+1@example.com", "manual", "org", null],
        ],
      );
    });

    it("refuses an unknown filter before the first byte", async () => {
      assert.equal((await api.ask("GET", "/v1/suppressions/export?reason=x")).status, 400);
      assert.equal((await api.ask("GET", "/v1/suppressions/export?limit=5")).status, 400);
    });
  });

  describe("two organizations", () => {
    it("see, check, remove and count only their own entries", async () => {
      const mine = await add({ email: "secret@example.com" });
      const other = await api.organization();
      const key = other.live_key;
      assert.equal((await check("email=secret@example.com", key)).suppressed, false);
      assert.equal((await list("", key)).total, 0);
      assert.equal((await list("query=secret", key)).total, 0);
      assert.equal((await list("reason=manual", key)).total, 0);
      const id = mine.body.suppression.id;
      assert.equal((await api.ask("DELETE", `/v1/suppressions/${id}`, undefined, { key })).status, 404);
      assert.equal((await api.ask("DELETE", "/v1/suppressions/secret%40example.com", undefined, { key })).status, 404);
      assert.equal((await add({ email: "secret@example.com" }, key)).status, 201);
      assert.equal((await api.ask("GET", "/v1/suppressions/export", undefined, { key })).body.split("\r\n").length, 3);
      assert.equal((await check("email=secret@example.com")).entry.id, id);
    });
  });
});
