import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, type TestApi, testApi } from "../../test/support/api.ts";

let api: TestApi;
let other: Awaited<ReturnType<TestApi["organization"]>>;
const URL_A = "https://hooks.example.com/in?x=1";
const NOWHERE = "01900000-0000-7000-8000-000000000000";
const RECORD_FIELDS = [
  ...["id", "webhook_url", "event_types", "has_secret", "domain_id", "match_pattern", "enabled"],
  "environment",
  ...["previous_secret_expires_at", "consecutive_failures", "last_success_at", "created_at", "updated_at"],
];

before(async () => {
  api = await testApi();
  other = await api.organization();
});
after(() => api.close());

function create(body: Record<string, unknown>): Promise<Answer> {
  return api.ask("POST", "/v1/webhooks", body);
}

function refused(answer: Answer, field: string | undefined, words: RegExp): void {
  assert.equal(answer.status, 400, JSON.stringify(answer.body));
  assert.equal(answer.body.code, "validation_error");
  assert.equal(answer.body.field, field);
  assert.match(answer.body.error, words);
}

test("create answers 201 with every field of the record and the secret", async () => {
  const { status, body } = await create({ url: URL_A });
  assert.equal(status, 201);
  assert.deepEqual(Object.keys(body).sort(), ["secret", "webhook"]);
  assert.deepEqual(Object.keys(body.webhook).sort(), [...RECORD_FIELDS].sort());
  assert.match(body.secret, /^whsec_[0-9A-Za-z]{44}$/);
  const { id, created_at, updated_at, ...rest } = body.webhook;
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal(updated_at, created_at);
  assert.deepEqual(rest, {
    webhook_url: URL_A,
    event_types: ["email.received"],
    has_secret: true,
    domain_id: null,
    match_pattern: null,
    enabled: true,
    environment: "live",
    previous_secret_expires_at: null,
    consecutive_failures: 0,
    last_success_at: null,
  });
});

test("create keeps the events, the domain and the pattern", async () => {
  const domain = await api.ask("POST", "/v1/domains", { domain: "keeps.example.com" });
  const { status, body } = await create({
    url: URL_A,
    events: ["email.bounced", "email.delivered"],
    domain_id: domain.body.id,
    match_pattern: "re:@(a|b)\\.example$",
  });
  assert.equal(status, 201, JSON.stringify(body));
  assert.deepEqual(body.webhook.event_types, ["email.bounced", "email.delivered"]);
  assert.equal(body.webhook.domain_id, domain.body.id);
  const named = await create({ url: URL_A, domain_id: domain.body.domain.toUpperCase() });
  assert.equal(named.body.webhook?.domain_id, domain.body.id, "by its name, as aliases take it");
  assert.equal(body.webhook.match_pattern, "re:@(a|b)\\.example$");
});

test("a missing url, empty, unknown or repeated events and unknown fields are refused by name", async () => {
  refused(await create({}), "url", /'url' field is required/);
  refused(await create({ url: 7 }), "url", /string/);
  refused(await create({ url: URL_A, events: [] }), "events", /must not be empty/);
  refused(await create({ url: URL_A, events: ["email.opened"] }), "events[0]", /one of: email\.received/);
  refused(await create({ url: URL_A, events: ["email.bounced", "email.bounced"] }), "events", /twice/);
  refused(await create({ url: URL_A, events: "email.bounced" }), "events", /array/);
  refused(await create({ url: URL_A, secret: "whsec_x" }), "secret", /not known/);
});

test("only https addresses outside our own network are taken", async () => {
  const bad = [
    ...["http://hooks.example.com/", "ftp://hooks.example.com/", "hooks.example.com", "", "https://"],
    ...["https://10.0.0.1/", "https://192.168.1.1/", "https://169.254.169.254/latest", "https://[fd00::1]/"],
    ...[
      "https://[::ffff:10.0.0.1]/",
      "https://0xa.0.0.1/",
      "https://100.64.0.1/",
      "https://user:pass@hooks.example.com/",
    ],
    `https://hooks.example.com/${"x".repeat(2_048)}`,
  ];
  for (const url of bad) refused(await create({ url }), "url", /'url' field/);
  const longest = `https://hooks.example.com/${"x".repeat(2_048 - 26)}`;
  assert.equal((await create({ url: longest })).status, 201);
});

test("loopback is refused too unless the testing setting allows it", async () => {
  const strict = await testApi({ POSTERN_TESTING_ALLOW_LOOPBACK: "0" });
  try {
    for (const url of ["https://127.0.0.1/", "https://localhost/", "https://[::1]:8443/", "https://2130706433/"]) {
      refused(await strict.ask("POST", "/v1/webhooks", { url }), "url", /internal/);
    }
  } finally {
    await strict.close();
  }
  assert.equal((await create({ url: "https://127.0.0.1:9443/" })).status, 201);
});

test("a pattern that is no glob and no RE2 expression, or too long, is refused", async () => {
  refused(await create({ url: URL_A, match_pattern: "re:(" }), "match_pattern", /RE2/);
  refused(await create({ url: URL_A, match_pattern: "re:(a)\\1" }), "match_pattern", /RE2/);
  refused(await create({ url: URL_A, match_pattern: "" }), "match_pattern", /empty/);
  refused(await create({ url: URL_A, match_pattern: "x".repeat(257) }), "match_pattern", /256/);
});

test("an organization's expressions are limited together, for they are all tried on every recipient; globs are not", async () => {
  const { live_key: key } = await api.organization();
  const ask = (method: string, path: string, body: object) => api.ask(method, `/v1/webhooks${path}`, body, { key });
  // The worst that one may be took 25 ms on an address of 250 characters.
  const large = (n: number) => `re:\\b(.?.?.?.?.?.?.?.?.?.?){30}${n}\\b[!?]`;
  const made: string[] = [];
  let answer = await ask("POST", "", { url: URL_A, match_pattern: large(0) });
  for (; answer.status === 201; answer = await ask("POST", "", { url: URL_A, match_pattern: large(made.length) })) {
    made.push(answer.body.webhook.id);
    assert.ok(made.length < 20, "there is no limit");
  }
  assert.deepEqual([answer.status, answer.body.code, answer.body.field], [403, "plan_limit_reached", "match_pattern"]);
  assert.ok(made.length >= 1);
  for (const pattern of ["*@shop.example", null]) {
    const other = await ask("POST", "", { url: URL_A, match_pattern: pattern });
    assert.equal(other.status, 201);
    const changed = await ask("PUT", `/${other.body.webhook.id}`, { match_pattern: large(9) });
    assert.deepEqual([changed.status, changed.body.code], [403, "plan_limit_reached"]);
  }
  // Its own place is free for it, and what it gives up for others.
  assert.equal((await ask("PUT", `/${made[0]}`, { match_pattern: large(8) })).status, 200);
  assert.equal((await ask("PUT", `/${made[0]}`, { match_pattern: "vip*" })).status, 200);
  assert.equal((await ask("POST", "", { url: URL_A, match_pattern: large(7) })).status, 201);
});

test("dozens of ordinary expressions have room", async () => {
  const { live_key: key } = await api.organization();
  for (let n = 0; n < 60; n += 1) {
    const body = { url: URL_A, match_pattern: `re:^(sales|support)\\+${n}@` };
    assert.equal((await api.ask("POST", "/v1/webhooks", body, { key })).status, 201, String(n));
  }
});

test("a domain that is not the organization's own is 404, a malformed id 400", async () => {
  const foreign = await api.ask("POST", "/v1/domains", { domain: "foreign.example.com" }, { key: other.live_key });
  for (const domain_id of [NOWHERE, foreign.body.id]) {
    const answer = await create({ url: URL_A, domain_id });
    assert.deepEqual([answer.status, answer.body.code, answer.body.field], [404, "not_found", "domain_id"]);
  }
  const named = await create({ url: URL_A, domain_id: "nowhere.example" });
  assert.deepEqual([named.status, named.body.code, named.body.field], [404, "not_found", "domain_id"]);
});

test("list is newest first with an exact total, get gives one, neither shows a secret", async () => {
  const { live_key: key } = await api.organization();
  const ids: string[] = [];
  for (const path of ["a", "b", "c"]) {
    const created = await api.ask("POST", "/v1/webhooks", { url: `https://hooks.example.com/${path}` }, { key });
    ids.unshift(created.body.webhook.id);
  }
  const page = await api.ask("GET", "/v1/webhooks?limit=2&offset=1", undefined, { key });
  assert.equal(page.status, 200);
  assert.deepEqual({ ...page.body, webhooks: 0 }, { webhooks: 0, total: 3, limit: 2, offset: 1 });
  assert.deepEqual(
    page.body.webhooks.map((row: { id: string }) => row.id),
    ids.slice(1),
  );
  const one = await api.ask("GET", `/v1/webhooks/${ids[0]}`, undefined, { key });
  assert.deepEqual(Object.keys(one.body.webhook).sort(), [...RECORD_FIELDS].sort());
  assert.doesNotMatch(JSON.stringify([page.body, one.body]), /whsec_/);
  for (const query of ["limit=0", "limit=101", "offset=-1", "sort=x"]) {
    assert.equal((await api.ask("GET", `/v1/webhooks?${query}`, undefined, { key })).status, 400, query);
  }
});

test("put changes what is given and nothing else; null removes the pattern", async () => {
  const { body } = await create({ url: URL_A, match_pattern: "a@*" });
  const path = `/v1/webhooks/${body.webhook.id}`;
  const first = await api.ask("PUT", path, { events: ["email.complained"], enabled: false });
  assert.equal(first.status, 200, JSON.stringify(first.body));
  assert.deepEqual(
    { ...first.body.webhook, updated_at: 0 },
    { ...body.webhook, event_types: ["email.complained"], enabled: false, updated_at: 0 },
  );
  assert.ok(first.body.webhook.updated_at >= body.webhook.updated_at);
  const second = await api.ask("PUT", path, { url: "https://b.example.com/", match_pattern: null, enabled: true });
  assert.equal(second.body.webhook.webhook_url, "https://b.example.com/");
  assert.equal(second.body.webhook.match_pattern, null);
  assert.equal(second.body.webhook.enabled, true);
  assert.deepEqual((await api.ask("GET", path)).body, second.body);
});

test("put refuses what create refuses, and a change of the domain", async () => {
  const { body } = await create({ url: URL_A });
  const put = (change: object) => api.ask("PUT", `/v1/webhooks/${body.webhook.id}`, change);
  refused(await put({ url: "http://a.example.com" }), "url", /https/);
  refused(await put({ url: "https://10.1.1.1/" }), "url", /internal/);
  refused(await put({ events: [] }), "events", /empty/);
  refused(await put({ match_pattern: "re:[" }), "match_pattern", /RE2/);
  refused(await put({ enabled: "yes" }), "enabled", /boolean/);
  refused(await put({ domain_id: NOWHERE }), "domain_id", /not known/);
  assert.deepEqual((await api.ask("GET", `/v1/webhooks/${body.webhook.id}`)).body.webhook, body.webhook);
});

test("rotate gives a new secret with the default grace, without any body too", async () => {
  const { body } = await create({ url: URL_A });
  const path = `/v1/webhooks/${body.webhook.id}/rotate`;
  for (const asked of [{}, undefined]) {
    const rotated = await api.ask("POST", path, asked);
    assert.equal(rotated.status, 200, JSON.stringify(rotated.body));
    assert.deepEqual(Object.keys(rotated.body).sort(), ["grace_seconds", "secret"]);
    assert.equal(rotated.body.grace_seconds, 86_400);
    assert.match(rotated.body.secret, /^whsec_[0-9A-Za-z]{44}$/);
    assert.notEqual(rotated.body.secret, body.secret);
  }
  const { webhook } = (await api.ask("GET", `/v1/webhooks/${body.webhook.id}`)).body;
  const leftMs = Date.parse(webhook.previous_secret_expires_at) - api.world.clock.now();
  assert.ok(leftMs > 86_390_000 && leftMs <= 86_400_000, String(leftMs));
});

test("grace_seconds is a whole number from 0 to 604800; 0 shows no previous secret", async () => {
  const { body } = await create({ url: URL_A });
  const rotate = (grace_seconds: unknown) =>
    api.ask("POST", `/v1/webhooks/${body.webhook.id}/rotate`, { grace_seconds });
  for (const bad of [-1, 604_801, 1.5, "60"]) refused(await rotate(bad), "grace_seconds", /grace_seconds/);
  assert.equal((await rotate(null)).body.grace_seconds, 86_400, "null is absence in every POST");
  assert.equal((await rotate(604_800)).body.grace_seconds, 604_800);
  assert.equal((await rotate(0)).body.grace_seconds, 0);
  const { webhook } = (await api.ask("GET", `/v1/webhooks/${body.webhook.id}`)).body;
  assert.equal(webhook.previous_secret_expires_at, null);
  refused(await api.ask("POST", `/v1/webhooks/${body.webhook.id}/rotate`, { grace: 1 }), "grace", /not known/);
});

test("an endpoint without a secret shows has_secret false, and rotate gives it one", async () => {
  const { body } = await create({ url: URL_A });
  const { id } = body.webhook;
  await api.world.db.execute("update webhook set secret = null where org_id = $1 and id = $2", [api.org_id, id]);
  assert.equal((await api.ask("GET", `/v1/webhooks/${id}`)).body.webhook.has_secret, false);
  assert.equal((await api.ask("POST", `/v1/webhooks/${id}/rotate`, {})).status, 200);
  const { webhook } = (await api.ask("GET", `/v1/webhooks/${id}`)).body;
  assert.deepEqual([webhook.has_secret, webhook.previous_secret_expires_at], [true, null]);
});

test("secrets are sealed at rest", async () => {
  const { body } = await create({ url: URL_A });
  const [row] = await api.world.db.query<{ secret: Buffer }>(
    "select secret from webhook where org_id = $1 and id = $2",
    [api.org_id, body.webhook.id],
  );
  assert.equal(row?.secret.includes(body.secret.slice(6)), false);
});

test("delete answers with the id, and then there is none", async () => {
  const { body } = await create({ url: URL_A });
  const path = `/v1/webhooks/${body.webhook.id}`;
  assert.deepEqual((await api.ask("DELETE", path)).body, { deleted: true, id: body.webhook.id });
  for (const [method, rest, asked] of everyOperation()) {
    assert.equal((await api.ask(method, path + rest, asked)).status, 404, `${method} ${rest}`);
  }
});

function everyOperation(): Array<[method: string, rest: string, body?: object]> {
  return [
    ["GET", ""],
    ["PUT", "", { enabled: false }],
    ["DELETE", ""],
    ["POST", "/rotate", {}],
    ["POST", "/test", {}],
    ["POST", "/replay", { from: "2026-01-01T00:00:00Z" }],
  ];
}

test("another organization's endpoint answers exactly as one that does not exist", async () => {
  const { body } = await create({ url: URL_A });
  for (const [method, rest, asked] of everyOperation()) {
    const foreign = await api.ask(method, `/v1/webhooks/${body.webhook.id}${rest}`, asked, { key: other.live_key });
    const missing = await api.ask(method, `/v1/webhooks/${NOWHERE}${rest}`, asked, { key: other.live_key });
    const malformed = await api.ask(method, `/v1/webhooks/x${rest}`, asked, { key: other.live_key });
    assert.equal(foreign.status, 404, `${method} ${rest}`);
    for (const answer of [missing, malformed]) {
      assert.deepEqual({ ...foreign.body, request_id: 0 }, { ...answer.body, request_id: 0 });
    }
  }
  assert.equal((await api.ask("GET", "/v1/webhooks", undefined, { key: other.live_key })).body.total, 0);
  assert.equal((await api.ask("GET", `/v1/webhooks/${body.webhook.id}`)).status, 200);
});

test("a test key's endpoints are its environment's, and both keys see them", async () => {
  const as = { key: api.test_key };
  const created = await api.ask("POST", "/v1/webhooks", { url: URL_A }, as);
  assert.deepEqual([created.status, created.body.webhook.environment], [201, "test"]);
  const seen = await api.ask("GET", `/v1/webhooks/${created.body.webhook.id}`);
  assert.deepEqual(seen.body.webhook, created.body.webhook);
  const changed = await api.ask("PUT", `/v1/webhooks/${created.body.webhook.id}`, { enabled: false }, as);
  assert.equal(changed.status, 200);
});

test("every operation needs a key", async () => {
  for (const [method, rest, asked] of everyOperation()) {
    assert.equal((await api.ask(method, `/v1/webhooks/${NOWHERE}${rest}`, asked, { key: null })).status, 401);
  }
  for (const path of ["/v1/webhooks", "/v1/webhook-deliveries"]) {
    assert.equal((await api.ask("GET", path, undefined, { key: null })).status, 401);
  }
});

test("an organization has at most 1,000 endpoints", async () => {
  const { live_key: key, org_id } = await api.organization();
  await api.world.db.execute(
    `with made as (
       insert into webhook (org_id, id, webhook_url, event_types, created_at, updated_at)
       select $1, gen_random_uuid(), 'https://hooks.example.com/', array['email.received'], now(), now()
         from generate_series(1, 999) returning org_id, id)
     insert into webhook_lane (org_id, webhook_id) select org_id, id from made`,
    [org_id],
  );
  assert.equal((await api.ask("POST", "/v1/webhooks", { url: URL_A }, { key })).status, 201);
  const over = await api.ask("POST", "/v1/webhooks", { url: URL_A }, { key });
  assert.deepEqual([over.status, over.body.code], [403, "plan_limit_reached"]);
});
