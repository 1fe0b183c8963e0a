import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { otherProcess, type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";
import type { HttpServer } from "../../api/server.ts";

let api: TestApi;
let dns: DnsServer;
let domainId: string;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
  domainId = (await addVerifiedDomain(api, dns, "sender.example")).id;
});

after(async () => {
  await api?.close();
  await dns?.stop();
});

type Change = Record<string, unknown>;
type Options = { key?: string; headers?: Record<string, string> };

let mails = 0;

function mail(change: Change = {}): Change {
  mails += 1;
  return {
    from: "a@sender.example",
    to: [`r${mails}@recipient.example`],
    subject: `m${mails}`,
    text_body: "x",
    ...change,
  };
}

function mailsTo(...counts: number[]): Change[] {
  return counts.map((count) =>
    mail({ to: Array.from({ length: count }, (_, i) => `q${mails}.${i}@recipient.example`) }),
  );
}

const batch = (body: unknown, options: Options = {}) => api.ask("POST", "/v1/send/batch", body, options);

async function totalOf(query: string, key?: string): Promise<number> {
  const { status, body } = await api.ask("GET", `/v1/emails?limit=1&${query}`, undefined, key ? { key } : {});
  assert.equal(status, 200);
  return body.total;
}

function resultsOf(body: { results: Change[] }): unknown[][] {
  return body.results.map((result) => [result.index, result.status, result.code, result.field]);
}

describe("POST /v1/send/batch", () => {
  it("takes a bare array and answers each e-mail in order", async () => {
    const items = [mail(), mail({ to: ["a@recipient.example", "b@recipient.example"], cc: ["c@recipient.example"] })];
    const { status, body } = await batch(items);
    assert.equal(status, 202, JSON.stringify(body));
    const { results, quota_limit, quota_used, quota_remaining, ...counts } = body;
    assert.deepEqual(counts, { accepted: 2, rejected: 0, environment: "live" });
    assert.deepEqual(Object.keys(results[0]), ["index", "status", "id", "message_id", "suppressed"]);
    for (const [index, result] of results.entries()) {
      assert.deepEqual([result.index, result.status, result.suppressed], [index, "queued", []]);
      const shown = await api.ask("GET", `/v1/emails/${result.id}`);
      assert.equal(shown.body.email.message_id, result.message_id);
      assert.equal(shown.body.email.subject, items[index]?.subject);
    }
    assert.ok(quota_used >= 4);
    assert.equal(quota_remaining, quota_limit - quota_used);
    const next = await batch([mail()]);
    assert.equal(next.body.quota_used, quota_used + 1);
  });

  it("takes an object with emails, and 100 of them are one transaction", async () => {
    const { status, body } = await batch({ emails: Array.from({ length: 100 }, () => mail()) });
    assert.equal(status, 202);
    assert.equal(body.accepted, 100);
    const client = new pg.Client({ connectionString: api.database_url, options: "-c postern.scope=system" });
    await client.connect();
    try {
      const ids = body.results.map((result: Change) => result.id);
      const { rows } = await client.query(
        "select count(*)::int as rows, count(distinct xmin::text)::int as transactions from message where id = any($1)",
        [ids],
      );
      assert.deepEqual(rows, [{ rows: 100, transactions: 1 }]);
    } finally {
      await client.end();
    }
  });

  it("sends each e-mail as a single send would: template, attachment, schedule, tags", async () => {
    const made = await api.ask("POST", "/v1/templates", {
      name: "Hi",
      slug: "hi",
      subject: "Hi {{name}}",
      text_body: "Dear {{name}}",
    });
    assert.equal(made.status, 201);
    const { subject: _subject, text_body: _text, ...bare } = mail();
    const scheduled_at = new Date(Date.now() + 3_600_000).toISOString();
    const { status, body } = await batch([
      { ...bare, template: "hi", variables: { name: "Anna" } },
      mail({ attachments: [{ filename: "a.txt", content: Buffer.from("hello").toString("base64") }], tags: ["t"] }),
      mail({ scheduled_at }),
    ]);
    assert.equal(status, 202, JSON.stringify(body));
    assert.deepEqual(
      body.results.map((result: Change) => result.status),
      ["queued", "queued", "scheduled"],
    );
    const [first, second, third] = body.results;
    assert.equal((await api.ask("GET", `/v1/emails/${first.id}`)).body.email.subject, "Hi Anna");
    const { content } = (await api.ask("GET", `/v1/emails/${second.id}/content`)).body;
    assert.deepEqual(
      content.attachments.map((file: Change) => [file.filename, file.size]),
      [["a.txt", 5]],
    );
    assert.equal((await api.ask("GET", `/v1/emails/${third.id}`)).body.email.scheduled_at, scheduled_at);
  });

  it("takes 24 MiB of what templates make of short lists of variables, and rejects the e-mails beyond", async () => {
    const made = await api.ask("POST", "/v1/templates", {
      name: "Long",
      slug: "long",
      subject: "x",
      text_body: "{{#each lines}}{{../line}}{{/each}}",
    });
    assert.equal(made.status, 201);
    // 1,900 lines of 1,000 octets: twelve such texts are 21.7 MiB, thirteen 23.6, fourteen 25.4.
    const variables = { lines: Array.from({ length: 1_900 }, () => 1), line: `${"y".repeat(998)}\r\n` };
    const { subject: _subject, text_body: _text, ...bare } = mail({ template: "long", variables });
    const items = [...Array.from({ length: 15 }, () => bare), mail()];
    const { status, body } = await batch(items, { key: api.test_key });
    assert.equal(status, 202, JSON.stringify(body));
    assert.deepEqual(resultsOf(body).slice(12), [
      [12, "simulated", undefined, undefined],
      [13, "rejected", "payload_too_large", undefined],
      [14, "rejected", "payload_too_large", undefined],
      [15, "simulated", undefined, undefined],
    ]);
    assert.match(body.results[13].error, /24 MiB/);
    const { size } = (await api.ask("GET", `/v1/emails/${body.results[0].id}`)).body.email;
    assert.ok(size > 1_900_000, `${size}`);
  });

  it("rejects what is wrong item by item, with the path within the item, and sends the rest", async () => {
    await api.ask("POST", "/v1/suppressions", { email: "gone@recipient.example" });
    const { to: _to, ...withoutTo } = mail();
    const cases: [item: unknown, code: string | undefined, field?: string][] = [
      [mail(), undefined],
      [withoutTo, "validation_error", "to"],
      [mail({ colour: "red" }), "validation_error", "colour"],
      [mail({ to: "x@recipient.example" }), "validation_error", "to"],
      [mail({ to: ["x"] }), "validation_error", "to[0]"],
      [mail({ attachments: [{ content: "" }] }), "validation_error", "attachments[0].filename"],
      [mail({ attachments: [{ filename: "a", content: "§" }] }), "validation_error", "attachments[0].content"],
      [mail({ headers: { Bcc: "x@recipient.example" } }), "validation_error", "headers.Bcc"],
      [
        mail({ reply_to: "a@a.example", headers: { "Reply-To": "b@b.example" } }),
        "validation_error",
        "headers.Reply-To",
      ],
      [mail({ text_body: "a\0b" }), "validation_error", "text_body"],
      [mail({ tags: ["ok", "\ud83d"] }), "validation_error", "tags[1]"],
      [mail({ metadata: { "a\0": 1 } }), "validation_error", "metadata.a\ufffd"],
      [mail({ from: "a@other.example" }), "domain_not_owned", "from"],
      [mail({ subject: undefined, text_body: undefined, template: "none" }), "not_found", "template"],
      [mail({ metadata: { a: "x".repeat(3_000) } }), "validation_error", "metadata"],
      [mail({ tags: [""] }), "validation_error", "tags[0]"],
      [mail({ to: ["gone@recipient.example"] }), "all_recipients_suppressed"],
      [mail({ to: ["gone@recipient.example", "stays@recipient.example"] }), undefined],
      [null, "validation_error"],
      ["mail", "validation_error"],
      [[mail()], "validation_error"],
      [mail(), undefined],
    ];
    const before = await totalOf("");
    const { status, body } = await batch(cases.map(([item]) => item));
    assert.equal(status, 202, JSON.stringify(body));
    assert.deepEqual(
      resultsOf(body),
      cases.map(([, code, field], index) => [index, code ? "rejected" : "queued", code, field]),
    );
    assert.deepEqual([body.accepted, body.rejected], [3, cases.length - 3]);
    assert.equal(body.results[1].error, "the 'to' field is required");
    assert.deepEqual(body.results[16].suppressed, [{ email: "gone@recipient.example", reason: "manual" }]);
    assert.deepEqual(body.results[17].suppressed, [{ email: "gone@recipient.example", reason: "manual" }]);
    assert.equal(await totalOf(""), before + 3);
  });

  it("in strict mode sends all or none", async () => {
    const before = await totalOf("");
    const items = [mail(), mail({ to: ["x"] }), mail()];
    const refused = await batch({ emails: items, validation: "strict" });
    assert.equal(refused.status, 400);
    assert.equal(refused.body.code, "validation_error");
    assert.deepEqual(resultsOf(refused.body), [
      [0, "rejected", "batch_rejected", undefined],
      [1, "rejected", "validation_error", "to[0]"],
      [2, "rejected", "batch_rejected", undefined],
    ]);
    assert.match(refused.body.results[0].error, /item 1/);
    assert.equal(await totalOf(""), before);
    const sent = await batch({ emails: [mail(), mail()], validation: "strict" });
    assert.deepEqual([sent.status, sent.body.accepted], [202, 2]);
    const permissive = await batch({ emails: items, validation: "permissive" });
    assert.deepEqual([permissive.status, permissive.body.accepted], [202, 2]);
  });

  it("answers 422 when nothing is left but suppressed recipients, 400 when one item is why the others stay", async () => {
    await api.ask("POST", "/v1/suppressions", { email: "gone@recipient.example" });
    const gone = () => mail({ to: ["gone@recipient.example"] });
    const all = await batch([gone(), gone()]);
    assert.equal(all.status, 422);
    assert.equal(all.body.code, "all_recipients_suppressed");
    assert.equal(all.body.suppressed.length, 2);
    assert.deepEqual(
      all.body.results.map((result: Change) => result.code),
      Array(2).fill("all_recipients_suppressed"),
    );
    const strict = await batch({ emails: [mail(), gone()], validation: "strict" });
    assert.deepEqual([strict.status, strict.body.code], [400, "validation_error"]);
    assert.match(strict.body.error, /item 1: all recipients are suppressed/);
    assert.deepEqual(
      strict.body.results.map((result: Change) => result.code),
      ["batch_rejected", "all_recipients_suppressed"],
    );
    const mixed = await batch([gone(), mail({ to: ["x"] })]);
    assert.deepEqual(
      [mixed.status, mixed.body.code, mixed.body.accepted, mixed.body.rejected],
      [400, "validation_error", 0, 2],
    );
  });

  it("refuses a call that is none", async () => {
    const cases: [body: unknown, field: string][] = [
      ["{}", "emails"],
      ["7", "body"],
      ['"x"', "body"],
      ["null", "body"],
      ["[]", "emails"],
      [{ emails: [] }, "emails"],
      [{ emails: {} }, "emails"],
      [{ emails: [mail()], validation: "lax" }, "validation"],
      [{ emails: [mail()], mode: "strict" }, "mode"],
      [Array.from({ length: 101 }, () => mail()), "emails"],
      [undefined, "body"],
    ];
    for (const [body, field] of cases) {
      const answer = await batch(body);
      assert.deepEqual([answer.status, answer.body.field], [400, field], JSON.stringify(body)?.slice(0, 80));
      assert.equal(answer.body.results, undefined);
    }
    const broken = await batch("[{");
    assert.deepEqual([broken.status, broken.body.code], [400, "invalid_json"]);
    const untyped = await batch("[]", { headers: { "content-type": "text/plain" } });
    assert.equal(untyped.status, 400);
  });

  it("only validates with a test key", async () => {
    const { status, body } = await batch([mail(), mail({ to: ["x"] })], { key: api.test_key });
    assert.equal(status, 202);
    assert.deepEqual(resultsOf(body), [
      [0, "simulated", undefined, undefined],
      [1, "rejected", "validation_error", "to[0]"],
    ]);
    assert.deepEqual([body.environment, body.quota_limit, body.quota_used, body.quota_remaining], ["test", 0, 0, 0]);
  });

  it("is closed to organizations in review, to suspended ones and without a key", async () => {
    const review = await api.organization("growth", "pending_review");
    const suspended = await api.organization("growth", "suspended");
    const answers = [
      await batch([mail()], { key: review.live_key }),
      await batch([mail()], { key: suspended.live_key }),
      await api.ask("POST", "/v1/send/batch", [mail()], { key: null }),
    ];
    assert.deepEqual(
      answers.map(({ status, body }) => [status, body.code]),
      [
        [403, "organization_in_review"],
        [403, "organization_suspended"],
        [401, "missing_api_key"],
      ],
    );
    // The domain is the first organization's; that is this item's own fault.
    const simulated = await batch([mail()], { key: review.test_key });
    assert.deepEqual([simulated.status, simulated.body.results[0].code], [400, "domain_not_owned"]);
  });
});

describe("the allowance of a batch", () => {
  /** An organization of its own whose month has `left` recipients to go. */
  async function organizationWith(left: number, domain: string) {
    const other = await api.organization("free");
    // The plan's ten a second are not the subject: on a busy machine they would refuse a look at the figures.
    await api.world.db.execute("update organization set requests_per_second = 1000 where id = $1", [other.org_id]);
    await addVerifiedDomain(api, dns, domain, { key: other.live_key });
    // This month and the next, which may begin while this runs.
    const months = [0, 1].map((n) => new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + n, 1)));
    await api.world.db.execute(
      `insert into allowance (org_id, scope_id, kind, starts_at, used, ceiling)
       select $1, $1, 'monthly_quota', month, $3, 3000 from unnest($2::timestamptz[]) as month`,
      [other.org_id, months, 3000 - left],
    );
    const used = async () => {
      const rows = await api.world.db.query<{ used: number }>(
        "select max(used)::int as used from allowance where org_id = $1 and kind = 'monthly_quota'",
        [other.org_id],
      );
      return rows[0]?.used;
    };
    return { ...other, used, from: `a@${domain}` };
  }

  it("is spent item by item, and never passed", async () => {
    const other = await organizationWith(6, "six.example");
    const items = mailsTo(2, 3, 2, 1, 1).map((item) => ({ ...item, from: other.from }));
    const { status, body } = await batch(items, { key: other.live_key });
    assert.equal(status, 202, JSON.stringify(body));
    const expected = ["queued", "queued", "rejected", "queued", "rejected"];
    assert.deepEqual(
      body.results.map((result: Change) => result.status),
      expected,
    );
    const { error, code, message, limit_type, limit, used, retry_after_seconds, warming_phase } = body.results[2];
    assert.deepEqual(
      [error, code, limit_type, limit, used],
      ["rate_limit_exceeded", "rate_limit_exceeded", "monthly_quota", 3000, 2999],
    );
    assert.ok(retry_after_seconds > 0 && message.length > 0 && warming_phase === "");
    assert.deepEqual([body.quota_limit, body.quota_used, body.quota_remaining], [3000, 3000, 0]);
    assert.equal(await other.used(), 3000);
  });

  it("answers 429 with the contract's body when nothing fits, and sends nothing of a strict batch that does not fit", async () => {
    const other = await organizationWith(2, "two.example");
    const items = mailsTo(1, 1, 1).map((item) => ({ ...item, from: other.from }));
    const strict = await batch({ emails: items, validation: "strict" }, { key: other.live_key });
    assert.equal(strict.status, 429);
    assert.deepEqual(
      resultsOf(strict.body).map(([, , code]) => code),
      ["batch_rejected", "batch_rejected", "rate_limit_exceeded"],
    );
    assert.equal(await other.used(), 2998);
    // Waiting helps a strict batch only where nothing is wrong but the limit.
    const both = [...mailsTo(3).map((item) => ({ ...item, from: other.from })), mail({ from: other.from, to: ["x"] })];
    const faulty = await batch({ emails: both, validation: "strict" }, { key: other.live_key });
    assert.equal(faulty.status, 400);
    assert.deepEqual(
      resultsOf(faulty.body).map(([, , code]) => code),
      ["batch_rejected", "validation_error"],
    );
    const [large] = mailsTo(3).map((item) => ({ ...item, from: other.from }));
    const invalid = mail({ from: other.from, to: ["x"] });
    const { status, body, headers } = await batch([large, invalid], { key: other.live_key });
    assert.equal(status, 429);
    assert.deepEqual(
      [body.error, body.limit_type, body.limit, body.used],
      ["rate_limit_exceeded", "monthly_quota", 3000, 2998],
    );
    assert.equal(headers["retry-after"], String(body.retry_after_seconds));
    assert.deepEqual(
      resultsOf(body).map(([, , code]) => code),
      ["rate_limit_exceeded", "validation_error"],
    );
  });

  it("is exact when two processes spend it at once", async () => {
    const other = await organizationWith(137, "shared.example");
    const servers: HttpServer[] = [];
    for (let n = 0; n < 2; n += 1) servers.push(await otherProcess(api.world));
    try {
      const post = (server: HttpServer, count: number) =>
        server.app.inject({
          method: "POST",
          url: "/v1/send/batch",
          headers: { authorization: `Bearer ${other.live_key}` },
          payload: mailsTo(...Array(count).fill(1)).map((item) => ({ ...item, from: other.from })),
        });
      const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => post(servers[n % 2] as HttpServer, 20)));
      const accepted = answers.reduce((sum, answer) => sum + (answer.json().accepted ?? 0), 0);
      assert.equal(accepted, 137);
      assert.equal(await other.used(), 3000);
      assert.equal(await totalOf("", other.live_key), 137);
      assert.deepEqual([...new Set(answers.map(({ statusCode }) => statusCode))].sort(), [202, 429]);
    } finally {
      for (const server of servers) await server.stop();
    }
  });

  it("counts a new domain's warming, too", async () => {
    const other = await api.organization();
    await addVerifiedDomain(api, dns, "new.example", { key: other.live_key, warm: false });
    const items = mailsTo(1, 1, 1, 1, 1, 1).map((item) => ({ ...item, from: "a@new.example" }));
    const { status, body } = await batch(items, { key: other.live_key });
    assert.equal(status, 202, JSON.stringify(body));
    assert.deepEqual(
      body.results.map((result: Change) => result.limit_type),
      [...Array(5).fill(undefined), "hourly"],
    );
    assert.equal(body.results[5].warming_phase, "phase_1");
  });
});

describe("an Idempotency-Key on a batch", () => {
  const keyed = (key: string) => ({ headers: { "idempotency-key": key } });

  it("gives the same answer again and sends nothing twice", async () => {
    const items = [mail(), mail({ to: ["x"] })];
    const first = await batch(items, keyed("batch-1"));
    const total = await totalOf("");
    const second = await batch(items, keyed("batch-1"));
    assert.deepEqual([first.status, second.status], [202, 202]);
    assert.deepEqual(second.body, first.body);
    assert.equal(first.headers["idempotent-replayed"], undefined);
    assert.equal(second.headers["idempotent-replayed"], "true");
    assert.equal(await totalOf(""), total);
    const other = await batch([mail()], keyed("batch-1"));
    assert.deepEqual([other.status, other.body.code], [409, "idempotency_conflict"]);
  });

  it("holds when the call comes several times at once, through two processes", async () => {
    const server = await otherProcess(api.world);
    try {
      const items = [mail(), mail()];
      const other = server.app.inject({
        method: "POST",
        url: "/v1/send/batch",
        headers: { authorization: `Bearer ${api.live_key}`, "idempotency-key": "batch-2" },
        payload: items,
      });
      const own = await Promise.all([batch(items, keyed("batch-2")), batch(items, keyed("batch-2"))]);
      const answers = [...own.map(({ body }) => body), (await other).json()];
      for (const answer of answers) assert.deepEqual(answer, answers[0]);
      for (const item of items) assert.equal(await totalOf(`subject=${item.subject}`), 1);
    } finally {
      await server.stop();
    }
  });

  it("is free again after a call that accepted nothing", async () => {
    const refused = await batch([mail({ to: ["x"] })], keyed("batch-3"));
    assert.equal(refused.status, 400);
    const sent = await batch([mail()], keyed("batch-3"));
    assert.equal(sent.status, 202);
  });
});

describe("other organizations", () => {
  it("neither see a batch nor can use what is another's", async () => {
    const other = await api.organization();
    const { body } = await batch([mail()]);
    const { status } = await api.ask("GET", `/v1/emails/${body.results[0].id}`, undefined, { key: other.live_key });
    assert.equal(status, 404);
    await addVerifiedDomain(api, dns, "other.example", { key: other.live_key });
    const { subject: _subject, text_body: _text, ...bare } = mail({ from: "a@other.example" });
    const answer = await batch([{ ...bare, template: "hi" }, mail()], { key: other.live_key });
    assert.deepEqual(
      resultsOf(answer.body).map(([, , code]) => code),
      ["not_found", "domain_not_owned"],
    );
    assert.equal((await api.ask("GET", `/v1/domains/${domainId}`, undefined, { key: other.live_key })).status, 404);
  });
});
