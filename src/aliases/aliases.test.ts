// /v1/aliases as its users see it, and which alias takes an address.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { aliasFinder, countReceived } from "./aliases.ts";

let api: TestApi;
let domain: { id: string; org_id: string };
let webhookId: string;

before(async () => {
  api = await testApi();
  const created = await api.ask("POST", "/v1/domains", { domain: "in.example" });
  domain = { id: created.body.id, org_id: api.org_id };
  const webhook = await api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/in" });
  webhookId = webhook.body.webhook.id;
});
after(() => api.close());

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const NOBODY = "00000000-0000-7000-8000-00000000abcd";

const create = async (local_part: string, more: object = {}) => {
  const answer = await api.ask("POST", "/v1/aliases", { domain_id: domain.id, local_part, ...more });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.alias;
};
const anotherDomain = async (name: string) => {
  const { body } = await api.ask("POST", "/v1/domains", { domain: name });
  return { id: body.id as string, org_id: api.org_id };
};

test("a new alias has every field and the defaults", async () => {
  const { id, created_at, updated_at, ...rest } = await create("Support");
  assert.match(id, ID);
  assert.equal(created_at, updated_at);
  assert.deepEqual(rest, {
    org_id: api.org_id,
    domain_id: domain.id,
    address: "support",
    domain: "in.example",
    is_masked: false,
    action: "webhook",
    forward_to: [],
    forward_mode: "preserve_from",
    webhook_ids: [],
    description: null,
    active: true,
    emails_received: 0,
    last_received_at: null,
  });
});

test("every setting can be given, and the domain may be named", async () => {
  const settings = {
    action: "forward",
    forward_to: ["Anna@Elsewhere.Example", "anna@elsewhere.example"],
    forward_mode: "masked",
    webhook_ids: [webhookId],
    description: "the desk",
    active: false,
  };
  const answer = await api.ask("POST", "/v1/aliases", { domain_id: "IN.example", local_part: "desk*", ...settings });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const { alias } = answer.body;
  assert.deepEqual(alias.forward_to, ["Anna@elsewhere.example", "anna@elsewhere.example"]);
  assert.deepEqual(
    [alias.action, alias.forward_mode, alias.webhook_ids, alias.description, alias.active, alias.address],
    ["forward", "masked", [webhookId], "the desk", false, "desk*"],
  );
  const shown = await api.ask("GET", `/v1/aliases/${alias.id}`);
  assert.deepEqual(shown.body, { alias });
});

for (const [why, body, status, field] of [
  ["no domain", { local_part: "a" }, 400, "domain_id"],
  ["no local part", { domain_id: "x" }, 400, "local_part"],
  ["an unknown domain", { domain_id: NOBODY, local_part: "a" }, 404, "domain_id"],
  ["an empty local part", { domain_id: "in.example", local_part: "" }, 400, "local_part"],
  ["a whole address", { domain_id: "in.example", local_part: "a@in.example" }, 400, "local_part"],
  ["a space", { domain_id: "in.example", local_part: "a b" }, 400, "local_part"],
  ["a line break", { domain_id: "in.example", local_part: "a\r\nb" }, 400, "local_part"],
  ["a glob with a space", { domain_id: "in.example", local_part: "a *" }, 400, "local_part"],
  ["more than 64 octets", { domain_id: "in.example", local_part: "a".repeat(65) }, 400, "local_part"],
  ["a glob of more than 64 octets", { domain_id: "in.example", local_part: `${"a".repeat(64)}*` }, 400, "local_part"],
  ["an unknown action", { domain_id: "in.example", local_part: "a", action: "burn" }, 400, "action"],
  ["a forward to nobody", { domain_id: "in.example", local_part: "a", action: "forward" }, 400, "forward_to"],
  [
    "a bad destination",
    { domain_id: "in.example", local_part: "a", forward_to: ["x@y.example", "z"] },
    400,
    "forward_to[1]",
  ],
  [
    "eleven destinations",
    { domain_id: "in.example", local_part: "a", forward_to: Array(11).fill("x@y.example") },
    400,
    "forward_to",
  ],
  ["an unknown webhook", { domain_id: "in.example", local_part: "a", webhook_ids: [NOBODY] }, 400, "webhook_ids[0]"],
  ["an unknown mode", { domain_id: "in.example", local_part: "a", forward_mode: "x" }, 400, "forward_mode"],
  [
    "a long description",
    { domain_id: "in.example", local_part: "a", description: "x".repeat(501) },
    400,
    "description",
  ],
  ["an unknown field", { domain_id: "in.example", local_part: "a", color: "red" }, 400, "color"],
] as const) {
  test(`an alias with ${why} is refused with ${status} naming ${field}`, async () => {
    const answer = await api.ask("POST", "/v1/aliases", body);
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    assert.equal(answer.body.field, field);
    assert.equal(typeof answer.body.error, "string");
  });
}

test("a local part has one alias in a domain, whatever its case", async () => {
  await create("twice");
  const again = await api.ask("POST", "/v1/aliases", { domain_id: domain.id, local_part: "TWICE" });
  assert.equal(again.status, 409);
  assert.equal(again.body.code, "already_exists");
  const other = await anotherDomain("twice.example");
  const elsewhere = await api.ask("POST", "/v1/aliases", { domain_id: other.id, local_part: "twice" });
  assert.equal(elsewhere.status, 201);
});

test("a change touches what it names and nothing else", async () => {
  const alias = await create("change", { description: "before" });
  const changed = await api.ask("PATCH", `/v1/aliases/${alias.id}`, { active: false });
  assert.equal(changed.status, 200);
  const { updated_at, ...rest } = changed.body.alias;
  const { updated_at: _before, ...was } = alias;
  assert.ok(updated_at >= alias.updated_at);
  assert.deepEqual(rest, { ...was, active: false });
  const forwarding = await api.ask("PATCH", `/v1/aliases/${alias.id}`, {
    action: "forward",
    forward_to: ["x@y.example"],
    description: null,
    webhook_ids: [webhookId],
    local_part: "changed",
    forward_mode: "masked",
  });
  assert.deepEqual(
    ["action", "forward_to", "description", "webhook_ids", "address", "active"].map((f) => forwarding.body.alias[f]),
    ["forward", ["x@y.example"], null, [webhookId], "changed", false],
  );
});

test("a change is checked like a creation", async () => {
  const alias = await create("checked");
  await create("taken");
  const ask = (body: object) => api.ask("PATCH", `/v1/aliases/${alias.id}`, body);
  assert.deepEqual(await ask({ action: "forward" }).then((a) => [a.status, a.body.field]), [400, "forward_to"]);
  assert.deepEqual(await ask({ local_part: "taken" }).then((a) => [a.status, a.body.code]), [409, "already_exists"]);
  assert.deepEqual(await ask({ domain_id: domain.id }).then((a) => [a.status, a.body.field]), [400, "domain_id"]);
  assert.deepEqual(await ask({ webhook_ids: [NOBODY] }).then((a) => [a.status, a.body.field]), [400, "webhook_ids[0]"]);
  assert.equal((await api.ask("GET", `/v1/aliases/${alias.id}`)).body.alias.address, "checked");
});

test("lists are newest first, filtered, paged and counted", async () => {
  const other = await anotherDomain("list.example");
  const ids: string[] = [];
  for (const [local_part, more] of [
    ["one", {}],
    ["two", { active: false }],
    ["three", { action: "store", description: "Bookings" }],
  ] as const) {
    const { body } = await api.ask("POST", "/v1/aliases", { domain_id: other.id, local_part, ...more });
    ids.unshift(body.alias.id);
  }
  const list = async (query: string) => (await api.ask("GET", `/v1/aliases?domain_id=${other.id}${query}`)).body;
  const all = await list("");
  assert.deepEqual([all.aliases.map((a: { id: string }) => a.id), all.total, all.limit, all.offset], [ids, 3, 50, 0]);
  const page = await list("&limit=1&offset=1");
  assert.deepEqual([page.aliases.map((a: { id: string }) => a.id), page.total], [[ids[1]], 3]);
  assert.deepEqual(
    (await list("&active=false")).aliases.map((a: { address: string }) => a.address),
    ["two"],
  );
  assert.deepEqual(
    (await list("&action=store")).aliases.map((a: { address: string }) => a.address),
    ["three"],
  );
  assert.deepEqual(
    (await list("&q=ONE@list")).aliases.map((a: { address: string }) => a.address),
    ["one"],
  );
  assert.deepEqual(
    (await list("&q=booking")).aliases.map((a: { address: string }) => a.address),
    ["three"],
  );
  assert.equal((await list("&q=%25")).total, 0);
  await api.ask("PATCH", `/v1/aliases/${ids[0]}`, { description: "Заказы" });
  const russian = (await list(`&q=${encodeURIComponent("заказы")}`)).aliases;
  assert.deepEqual(
    russian.map((a: { id: string }) => a.id),
    [ids[0]],
  );
  for (const query of ["limit=0", "limit=101", "offset=-1", "color=red", "action=burn"]) {
    assert.equal((await api.ask("GET", `/v1/aliases?${query}`)).status, 400, query);
  }
});

test("an endpoint that was deleted stays named, so that mail goes to no others, and can be written back", async () => {
  const { body } = await api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/short-lived" });
  const webhook_ids = [webhookId, body.webhook.id];
  const [alias, other] = [await create("outlives", { webhook_ids }), await create("other-one")];
  await api.ask("DELETE", `/v1/webhooks/${body.webhook.id}`);
  const read = (await api.ask("GET", `/v1/aliases/${alias.id}`)).body.alias;
  assert.deepEqual(read.webhook_ids, webhook_ids);
  const written = await api.ask("PATCH", `/v1/aliases/${alias.id}`, { webhook_ids: read.webhook_ids });
  assert.deepEqual([written.status, written.body.alias?.webhook_ids], [200, webhook_ids]);
  const fresh = await api.ask("PATCH", `/v1/aliases/${other.id}`, { webhook_ids });
  assert.deepEqual([fresh.status, fresh.body.field], [400, "webhook_ids[1]"]);
});

test("a deleted alias is gone", async () => {
  const alias = await create("gone");
  const deleted = await api.ask("DELETE", `/v1/aliases/${alias.id}`);
  assert.deepEqual([deleted.status, deleted.body], [200, { deleted: true, id: alias.id }]);
  for (const method of ["GET", "DELETE"]) assert.equal((await api.ask(method, `/v1/aliases/${alias.id}`)).status, 404);
  assert.equal((await api.ask("PATCH", `/v1/aliases/${alias.id}`, {})).status, 404);
  assert.equal((await api.ask("GET", "/v1/aliases/nonsense")).status, 404);
});

test("another organization sees none of it, and cannot use its domains or webhooks", async () => {
  const alias = await create("walled");
  const other = await api.organization();
  const as = { key: other.live_key };
  for (const [method, body] of [["GET"], ["PATCH", { active: false }], ["DELETE"]] as const) {
    const answer = await api.ask(method, `/v1/aliases/${alias.id}`, body, as);
    const unknown = await api.ask(method, `/v1/aliases/${NOBODY}`, body, as);
    assert.deepEqual([answer.status, answer.body.error], [404, unknown.body.error]);
  }
  assert.equal((await api.ask("GET", "/v1/aliases", undefined, as)).body.total, 0);
  const foreign = await api.ask("POST", "/v1/aliases", { domain_id: domain.id, local_part: "mine" }, as);
  assert.deepEqual([foreign.status, foreign.body.field], [404, "domain_id"]);
  const own = await api.ask("POST", "/v1/domains", { domain: "other.example" }, as);
  const body = { domain_id: own.body.id, local_part: "mine", webhook_ids: [webhookId] };
  const stolen = await api.ask("POST", "/v1/aliases", body, as);
  assert.deepEqual([stolen.status, stolen.body.field], [400, "webhook_ids[0]"]);
});

test("a domain with aliases is deleted only by force, and they go with it", async () => {
  const other = await anotherDomain("doomed.example");
  const { body } = await api.ask("POST", "/v1/aliases", { domain_id: other.id, local_part: "a" });
  assert.equal((await api.ask("DELETE", `/v1/domains/${other.id}`)).status, 409);
  assert.equal((await api.ask("DELETE", `/v1/domains/${other.id}?force=true`)).status, 200);
  assert.equal((await api.ask("GET", `/v1/aliases/${body.alias.id}`)).status, 404);
});

test("exact aliases go before globs, longer globs before shorter ones, and tags are shown", async () => {
  const d = await anotherDomain("match.example");
  for (const local_part of ["sales", "sal*", "s*", "*", "ann+list", "??", "q*z", "b?????", "box*", "b*x", "b?x"]) {
    const answer = await api.ask("POST", "/v1/aliases", { domain_id: d.id, local_part });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
  }
  const find = aliasFinder(api.world);
  for (const [local, alias, tag] of [
    ["sales", "sales", null],
    ["SALES", "sales", null],
    ["sales+Berlin+2", "sales", "Berlin+2"],
    ["sales+", "sales", null],
    ["salesman", "sal*", null],
    ["sold", "s*", null],
    ["sold+x", "s*", "x"],
    ["ab", "??", null],
    ["boxing", "b?????", null],
    ["boxed", "box*", null],
    ["bix", "b*x", null],
    ["quiz", "q*z", null],
    ["quiz+now", "q*z", "now"],
    ["someone.else", "s*", null],
    ["other", "*", null],
    ["+odd", "*", null],
    ["ann+list", "ann+list", null],
    ["ann+other", "*", "other"],
  ] as const) {
    const match = await find(d, local);
    assert.deepEqual([match?.alias.local_part, match?.tag], [alias, tag], local);
  }
});

test("an address that no alias takes has none, and an inactive alias is found as inactive", async () => {
  const d = await anotherDomain("nobody.example");
  await api.ask("POST", "/v1/aliases", { domain_id: d.id, local_part: "off", active: false });
  const find = aliasFinder(api.world);
  const [none, off, quoted] = await Promise.all([find(d, "nobody"), find(d, "off"), find(d, '"a b"')]);
  assert.equal(none, null);
  assert.equal(off?.alias.active, false);
  assert.equal(quoted, null);
});

test("received mail is counted once a mail, with the time of the last", async () => {
  const [one, two] = [await create("counted"), await create("counted.too")];
  const at = (s: number) => new Date(Date.UTC(2026, 10, 20, 12, 0, s));
  await api.world.db.transaction((tx) =>
    countReceived(tx, [
      { org_id: api.org_id, alias_id: one.id, at: at(2) },
      { org_id: api.org_id, alias_id: two.id, at: at(1) },
      { org_id: api.org_id, alias_id: one.id, at: at(1) },
    ]),
  );
  const shown = async (id: string) => (await api.ask("GET", `/v1/aliases/${id}`)).body.alias;
  assert.deepEqual(
    [(await shown(one.id)).emails_received, (await shown(one.id)).last_received_at],
    [2, at(2).toISOString()],
  );
  assert.equal((await shown(two.id)).emails_received, 1);
});

test("a test key manages aliases too", async () => {
  const answer = await api.ask(
    "POST",
    "/v1/aliases",
    { domain_id: domain.id, local_part: "by-test-key" },
    { key: api.test_key },
  );
  assert.equal(answer.status, 201);
});
