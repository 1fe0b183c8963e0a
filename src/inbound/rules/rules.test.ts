// Routing rules as their owners see them: every field and error, and what they do to mail that goes through the pipeline.
import assert from "node:assert/strict";
import { after, before, mock, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";

let api: TestApi;
let dns: DnsServer;
let domainId: string;
let aliasId: string;
let webhookId: string;
/** Each look takes so long: of the clock alone, as where others keep the machine busy, or of the processor. */
const passes = { clock: 0, processor: 0 };
const passed = { clock: 0, processor: 0 };

before(async () => {
  dns = await startDnsServer();
  const hasty = () => {
    passed.clock += passes.clock;
    return performance.now() + passed.clock;
  };
  const taken = process.threadCpuUsage.bind(process);
  mock.method(process, "threadCpuUsage", () => {
    passed.processor += passes.processor;
    const { user, system } = taken();
    return { user: user + passed.processor * 1000, system };
  });
  api = await testApi({ POSTERN_DNS: dns.address }, (world) => ({
    ...world,
    clock: { ...world.clock, monotonic: hasty },
  }));
  domainId = (await api.ask("POST", "/v1/domains", { domain: "rules.example" })).body.id;
  webhookId = (await api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/in" })).body.webhook.id;
  aliasId = (await api.ask("POST", "/v1/aliases", { domain_id: domainId, local_part: "desk", action: "store" })).body
    .alias.id;
});
after(async () => {
  mock.restoreAll();
  await api.close();
  await dns.stop();
});

const NOBODY = "00000000-0000-7000-8000-00000000abcd";
const about = (value: string, comparator = "contains") => ({ field: "subject", comparator, value });
const body = (more: object = {}) => ({
  name: "r",
  domain_id: domainId,
  conditions: [about("zzz")],
  action: "store",
  ...more,
});
const create = async (more: object = {}) => {
  const answer = await api.ask("POST", "/v1/inbound-rules", body(more));
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.rule;
};
const mail = async (subject: string, more: object = {}) => {
  const answer = await api.ask("POST", "/v1/inbound-emails/simulate", {
    to: "desk+eu@rules.example",
    from: "anna@sender.example",
    subject,
    text: "x",
    ...more,
  });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body.email;
};
const removeAll = async () => {
  const { body: all } = await api.ask("GET", "/v1/inbound-rules?limit=100");
  for (const { id } of all.rules) await api.ask("DELETE", `/v1/inbound-rules/${id}`);
};

test("a new rule has every field and the defaults", async () => {
  const { id, created_at, updated_at, ...rest } = await create();
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.equal(created_at, updated_at);
  assert.deepEqual(rest, {
    org_id: api.org_id,
    domain_id: domainId,
    alias_id: null,
    name: "r",
    priority: 10,
    active: true,
    match: { all: [about("zzz")] },
    action: "store",
    forward_to: [],
    webhook_ids: [],
    hits: 0,
    last_hit_at: null,
  });
  const { rule } = (await api.ask("GET", `/v1/inbound-rules/${id}`)).body;
  assert.deepEqual(rule, { id, created_at, updated_at, ...rest });
  assert.equal((await create()).priority, 20);
  await removeAll();
});

test("every setting can be given, the domain named, and left out for an alias", async () => {
  const match = {
    any: [about("a"), { not: { field: "header", comparator: "exists", value: true, header_name: "X-A" } }],
  };
  const rule = await create({
    conditions: undefined,
    match,
    domain_id: "Rules.Example",
    alias_id: aliasId,
    priority: 7,
    active: false,
    action: "forward",
    forward_to: ["Anna@Elsewhere.Example", "anna@elsewhere.example"],
    webhook_ids: [webhookId],
  });
  assert.deepEqual(
    [rule.match, rule.domain_id, rule.alias_id, rule.priority, rule.active, rule.action, rule.webhook_ids],
    [match, domainId, aliasId, 7, false, "forward", [webhookId]],
  );
  assert.deepEqual(rule.forward_to, ["Anna@elsewhere.example", "anna@elsewhere.example"]);
  assert.equal((await create({ domain_id: undefined, alias_id: aliasId })).domain_id, domainId);
  await removeAll();
});

test("what is wrong is named by its path", async () => {
  const other = (await api.ask("POST", "/v1/domains", { domain: "other-rules.example" })).body.id;
  const cases: [object, number, string][] = [
    [{ name: undefined }, 400, "name"],
    [{ name: "" }, 400, "name"],
    [{ action: "explode" }, 400, "action"],
    [{ colour: "red" }, 400, "colour"],
    [{ priority: -1 }, 400, "priority"],
    [{ conditions: undefined }, 400, "match"],
    [{ match: about("x") }, 400, "conditions"],
    [{ conditions: [about("x"), about("(", "matches")] }, 400, "conditions[1].value"],
    [{ conditions: undefined, match: { all: [about("x"), { field: "body" }] } }, 400, "match.all[1].field"],
    [{ conditions: undefined, match: { all: [about("x"), about("(", "matches")] } }, 400, "match.all[1].value"],
    [{ domain_id: undefined }, 400, "domain_id"],
    [{ domain_id: NOBODY }, 404, "domain_id"],
    [{ alias_id: NOBODY }, 404, "alias_id"],
    [{ alias_id: aliasId, domain_id: other }, 400, "alias_id"],
    [{ action: "forward" }, 400, "forward_to"],
    [{ action: "forward", forward_to: ["nobody"] }, 400, "forward_to[0]"],
    [{ webhook_ids: [webhookId, NOBODY] }, 400, "webhook_ids[1]"],
  ];
  for (const [more, status, field] of cases) {
    const answer = await api.ask("POST", "/v1/inbound-rules", body(more));
    assert.deepEqual([answer.status, answer.body.field], [status, field], JSON.stringify([more, answer.body]));
    assert.match(answer.body.error, new RegExp(`'${field.replace(/[[\].]/g, "\\$&")}'`));
  }
});

test("an endpoint that was deleted stays named, and can be written back", async () => {
  const { body } = await api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/short-lived" });
  const { id, webhook_ids } = await create({ webhook_ids: [body.webhook.id], active: false });
  await api.ask("DELETE", `/v1/webhooks/${body.webhook.id}`);
  const written = await api.ask("PATCH", `/v1/inbound-rules/${id}`, { webhook_ids });
  assert.deepEqual([written.status, written.body.rule?.webhook_ids], [200, webhook_ids]);
  await api.ask("DELETE", `/v1/inbound-rules/${id}`);
});

test("a change keeps what it leaves out; a deleted rule is gone", async () => {
  const { id, ...before } = await create({ webhook_ids: [webhookId] });
  const path = `/v1/inbound-rules/${id}`;
  const { body: changed } = await api.ask("PATCH", path, { name: "new", match: about("y"), active: false });
  assert.deepEqual(changed.rule, {
    ...before,
    id,
    name: "new",
    match: about("y"),
    active: false,
    updated_at: changed.rule.updated_at,
  });
  assert.equal((await api.ask("PATCH", path, { action: "forward" })).body.field, "forward_to");
  assert.equal((await api.ask("PATCH", path, { match: {} })).body.field, "match.field");
  assert.equal((await api.ask("PATCH", path, { webhook_ids: [NOBODY] })).body.field, "webhook_ids[0]");
  assert.equal((await api.ask("PATCH", path, { domain_id: domainId })).status, 400);
  assert.deepEqual((await api.ask("DELETE", path)).body, { deleted: true, id });
  for (const method of ["GET", "PATCH", "DELETE"]) {
    for (const gone of [path, `/v1/inbound-rules/${NOBODY}`, "/v1/inbound-rules/x"]) {
      assert.equal((await api.ask(method, gone, method === "PATCH" ? { name: "x" } : undefined)).status, 404);
    }
  }
});

test("rules of the alias are asked first, then by priority; reorder changes it; lists are in that order", async () => {
  const first = await create({ name: "d1", priority: 1 });
  const second = await create({ name: "d2", priority: 2, active: false });
  const ofAlias = await create({ name: "a", priority: 900, alias_id: aliasId });
  const names = async (query = "") =>
    (await api.ask("GET", `/v1/inbound-rules?${query}`)).body.rules.map(({ name }: { name: string }) => name);
  assert.deepEqual(await names(`domain_id=${domainId}`), ["a", "d1", "d2"]);
  assert.deepEqual(await names(`alias_id=${aliasId}`), ["a"]);
  assert.deepEqual(await names("active=false"), ["d2"]);
  assert.deepEqual(await names("limit=1&offset=1"), ["d1"]);
  const reorder = (ids: string[]) => api.ask("POST", "/v1/inbound-rules/reorder", { ids });
  const { body: ordered } = await reorder([second.id, first.id]);
  assert.deepEqual(
    ordered.rules.map(({ name, priority }: { name: string; priority: number }) => [name, priority]),
    [
      ["d2", 10],
      ["d1", 20],
    ],
  );
  assert.deepEqual(await names(), ["a", "d2", "d1"]);
  const unknown = await reorder([first.id, NOBODY]);
  assert.deepEqual([unknown.status, unknown.body.field], [404, "ids[1]"]);
  const other = await create({ domain_id: "other-rules.example" });
  const mixed = await reorder([first.id, other.id]);
  assert.deepEqual([mixed.status, mixed.body.field], [400, "ids[1]"]);
  assert.equal((await reorder([])).status, 400);
  assert.equal((await reorder([first.id, first.id])).status, 400);
  assert.equal(ofAlias.alias_id, aliasId);
  await removeAll();
});

test("a domain has its rules under its own path, by id and by name, and at most 100", async () => {
  const { domain_id: _domain, ...rest } = body();
  const { status, body: made } = await api.ask("POST", "/v1/domains/rules.example/rules", rest);
  assert.deepEqual([status, made.rule.domain_id], [201, domainId]);
  const { body: list } = await api.ask("GET", `/v1/domains/${domainId}/rules`);
  assert.deepEqual([list.total, list.rules[0].id, list.limit, list.offset], [1, made.rule.id, 50, 0]);
  assert.equal((await api.ask("GET", `/v1/domains/${NOBODY}/rules`)).status, 404);
  assert.equal((await api.ask("POST", `/v1/domains/${NOBODY}/rules`, rest)).status, 404);
  for (let count = 1; count < 100; count += 1) await create();
  const refused = await api.ask("POST", "/v1/inbound-rules", body());
  assert.deepEqual([refused.status, refused.body.code], [403, "plan_limit_reached"]);
  await removeAll();
});

test("the first rule that holds acts, is counted, and is named by the mail; without one the alias acts", async () => {
  const drop = await create({ conditions: [about("offer")], action: "drop", priority: 1 });
  const hook = await create({ conditions: [about("order")], action: "webhook", webhook_ids: [webhookId], priority: 2 });
  const forward = await create({ conditions: [about("ahead")], action: "forward", forward_to: ["a@else.example"] });
  const dropped = await mail("an offer to order");
  assert.deepEqual(
    [dropped.status, dropped.reason, dropped.rule_ids],
    ["dropped", `dropped by rule ${drop.id}`, [drop.id]],
  );
  const hooked = await mail("an Order");
  assert.deepEqual([hooked.status, hooked.rule_ids, hooked.deliveries.length], ["delivered", [hook.id], 1]);
  const forwarded = await mail("go ahead");
  assert.deepEqual([forwarded.rule_ids, forwarded.forwards.length], [[forward.id], 1]);
  const stored = await mail("hello");
  assert.deepEqual([stored.status, stored.rule_ids, stored.deliveries], ["delivered", [], []]);
  const { rule } = (await api.ask("GET", `/v1/inbound-rules/${drop.id}`)).body;
  assert.equal(rule.hits, 1);
  assert.ok(rule.last_hit_at);
  await removeAll();
});

test("a change, a pause and a deletion act on the next mail", async () => {
  const { id } = await create({ conditions: [about("one")], action: "drop" });
  assert.equal((await mail("one")).status, "dropped");
  await api.ask("PATCH", `/v1/inbound-rules/${id}`, { conditions: [about("two")] });
  assert.deepEqual([(await mail("one")).status, (await mail("two")).status], ["delivered", "dropped"]);
  await api.ask("PATCH", `/v1/inbound-rules/${id}`, { active: false });
  assert.equal((await mail("two")).status, "delivered");
  await api.ask("PATCH", `/v1/inbound-rules/${id}`, { active: true });
  assert.equal((await mail("two")).status, "dropped");
  await api.ask("DELETE", `/v1/inbound-rules/${id}`);
  assert.equal((await mail("two")).status, "delivered");
});

test("every field is that of the mail", async () => {
  const leaf = (field: string, comparator: string, value: unknown, header_name?: string) => ({
    field,
    comparator,
    value,
    ...(header_name ? { header_name } : {}),
  });
  const all = [
    leaf("sender", "equals", "anna@sender.example"),
    leaf("sender_domain", "in", ["sender.example"]),
    leaf("envelope_sender", "equals", "bounce@sender.example"),
    leaf("recipient", "equals", "desk+eu@rules.example"),
    leaf("recipient_tag", "equals", "eu"),
    leaf("subject", "matches", "^Grüße \\d$"),
    leaf("header", "equals", "order", "x-kind"),
    leaf("spf", "not_equals", "pass"),
    leaf("dkim", "equals", "none"),
    leaf("dmarc", "not_equals", "pass"),
    leaf("size", "gt", 100),
    leaf("has_attachments", "equals", true),
    leaf("auto_submitted", "equals", true),
  ];
  const { id } = await create({ conditions: undefined, match: { all }, action: "drop" });
  const given = await mail("Grüße 7", {
    envelope_from: "bounce@sender.example",
    headers: { "X-Kind": "order", "Auto-Submitted": "auto-generated" },
    attachments: [{ filename: "a.txt", content: "eA==" }],
  });
  const { body: tried } = await api.ask("POST", "/v1/inbound-rules/test", { rule_id: id, email_id: given.id });
  assert.deepEqual(given.rule_ids, [id], JSON.stringify(tried));
  assert.equal(tried.results[0].steps.length, all.length);
  assert.ok(tried.results[0].steps.every(({ matched }: { matched: boolean }) => matched));
  await removeAll();
});

test("a rule is tried on stored mail with a trace, and changes nothing", async () => {
  const yes = await mail("try me");
  const no = await mail("not this");
  const try_ = (request: object) => api.ask("POST", "/v1/inbound-rules/test", request);
  const { status, body: one } = await try_({ conditions: [about("try")], email_id: yes.id });
  assert.equal(status, 200, JSON.stringify(one));
  assert.deepEqual(one, {
    results: [
      {
        email_id: yes.id,
        matched: true,
        steps: [{ path: "conditions[0]", ...about("try"), found: ["try me"], matched: true }],
      },
    ],
    tested: 1,
    matched: 1,
  });
  const { body: many } = await try_({ match: { not: about("try") }, domain_id: domainId, limit: 2 });
  assert.deepEqual(
    many.results.map(({ email_id, matched }: { email_id: string; matched: boolean }) => [email_id, matched]),
    [
      [no.id, true],
      [yes.id, false],
    ],
  );
  assert.deepEqual([many.tested, many.matched, many.results[0].steps[0].path], [2, 1, "match.not"]);
  const rule = await create({ conditions: [about("try")], action: "drop", alias_id: aliasId });
  assert.equal((await try_({ rule_id: rule.id, limit: 2 })).body.matched, 1);
  assert.equal((await api.ask("GET", `/v1/inbound-rules/${rule.id}`)).body.rule.hits, 0);
  assert.equal((await api.ask("GET", `/v1/inbound-emails/${yes.id}`)).body.email.status, "delivered");
  assert.equal((await try_({})).body.field, "rule_id");
  assert.equal((await try_({ rule_id: rule.id, match: about("x") })).body.field, "rule_id");
  assert.equal((await try_({ rule_id: NOBODY })).status, 404);
  assert.equal((await try_({ match: about("x"), email_id: NOBODY })).status, 404);
  assert.equal((await try_({ match: about("x"), limit: 101 })).status, 400);
  await removeAll();
});

test("one rule takes as much of the processor as all rules may: then the alias decides, and a trial says so", async () => {
  await removeAll();
  const leaf = (value: string) => ({ field: "subject", comparator: "matches", value });
  const { id: rule_id } = await create({
    conditions: undefined,
    match: { any: [...Array.from({ length: 19 }, (_none, n) => leaf(`never-${n}`)), leaf("late")] },
  });
  const tried = () => api.ask("POST", "/v1/inbound-rules/test", { rule_id, limit: 1 });
  assert.deepEqual((await mail("late")).rule_ids, [rule_id]);
  assert.equal((await tried()).body.matched, 1);
  passes.clock = 280;
  assert.deepEqual((await mail("late")).rule_ids, [rule_id], "a machine that others keep busy");
  assert.equal((await tried()).body.matched, 1);
  passes.clock = 0;
  passes.processor = 280;
  try {
    assert.deepEqual((await mail("late")).rule_ids, []);
    const answer = await tried();
    assert.deepEqual([answer.status, answer.body.code], [503, "unavailable"], JSON.stringify(answer.body));
    assert.match(answer.body.error, /fewer mails/);
  } finally {
    passes.processor = 0;
  }
});
