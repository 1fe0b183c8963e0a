// /v1/domains as its users see it: every field, every record, every refusal.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { addVerifiedDomain, publish } from "../../test/support/verified-domain.ts";
import { createHttpServer } from "../api/server.ts";
import { fixedClock } from "../platform/clock.ts";
import { domainPorts } from "../ports.ts";
import { mountDomains } from "./routes.ts";
import type { DnsRecord } from "./types.ts";

let dns: DnsServer;
let api: TestApi;
const clock = fixedClock(Date.parse("2026-11-05T10:00:00.000Z"));

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address }, (world) => ({ ...world, clock }));
});
after(async () => {
  await api.close();
  await dns.stop();
});

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const NOBODY = "00000000-0000-7000-8000-00000000abcd";

const add = async (domain: string, more: object = {}) => {
  const created = await api.ask("POST", "/v1/domains", { domain, ...more });
  assert.equal(created.status, 201, JSON.stringify(created.body));
  return created.body;
};
const recordsOf = async (id: string) => (await api.ask("GET", `/v1/domains/${id}/dns`)).body.records as DnsRecord[];
const byPurpose = (records: DnsRecord[], purpose: string): DnsRecord => {
  const record = records.find((one) => one.purpose === purpose);
  assert.ok(record, `no record for ${purpose}`);
  return record;
};

test("a new domain is pending, of type inbound, and has every field", async () => {
  const body = await add("Fields.Example.COM");
  const { id, ...rest } = body;
  assert.match(id, ID);
  assert.deepEqual(rest, {
    domain: "fields.example.com",
    type: "inbound",
    verified: false,
    ownership_verified: false,
    mx_verified: false,
    spf_verified: false,
    dkim_verified: false,
    dmarc_verified: false,
    return_path_verified: false,
    status: "pending",
    catch_all_enabled: false,
    catch_all_webhook_ids: [],
    active: true,
    tls_policy: "opportunistic",
    ip_pool: null,
    last_dns_check: null,
    next_check_at: "2026-11-05T10:05:00.000Z",
    verified_at: null,
    created_at: "2026-11-05T10:00:00.000Z",
    updated_at: "2026-11-05T10:00:00.000Z",
    warming: null,
  });
});

test("a domain is created with the settings given", async () => {
  const given = { type: "both", catch_all_enabled: true, inbound_mx_acknowledged: true };
  const body = await add("bücher.example", given);
  assert.deepEqual([body.domain, body.type, body.catch_all_enabled], ["xn--bcher-kva.example", "both", true]);
});

const badBodies: [string, unknown, string][] = [
  ["no domain", {}, "domain"],
  ["an empty domain", { domain: "" }, "domain"],
  ["a domain that is no text", { domain: 5 }, "domain"],
  ["a domain that is none", { domain: "anna@example.com" }, "domain"],
  ["a public suffix", { domain: "co.uk" }, "domain"],
  ["a host of the service", { domain: "mx.postern.test" }, "domain"],
  ["an unknown type", { domain: "a.example.com", type: "all" }, "type"],
  ["a flag that is no flag", { domain: "a.example.com", catch_all_enabled: "yes" }, "catch_all_enabled"],
  ["an unknown field", { domain: "a.example.com", name: "x" }, "name"],
];
for (const [what, body, field] of badBodies) {
  test(`creating with ${what} is 400 and names the field`, async () => {
    const answer = await api.ask("POST", "/v1/domains", body);
    assert.equal(answer.status, 400);
    assert.deepEqual([answer.body.code, answer.body.field], ["validation_error", field]);
    assert.match(answer.body.error, new RegExp(`'${field}'`));
  });
}

test("the same domain twice in one organization is 409, also at the same moment", async () => {
  await add("twice.example.com");
  const again = await api.ask("POST", "/v1/domains", { domain: "TWICE.example.com" });
  assert.deepEqual([again.status, again.body.code, again.body.field], [409, "already_exists", "domain"]);
  const both = await Promise.all(
    [1, 2, 3, 4].map(() => api.ask("POST", "/v1/domains", { domain: "race.example.com" })),
  );
  assert.deepEqual(both.map((answer) => answer.status).sort(), [201, 409, 409, 409]);
});

test("a path takes the id or the name in any spelling; what is neither is 404", async () => {
  const { id } = await add("lookup.bücher.example");
  for (const name of [id, "lookup.xn--bcher-kva.example", "LOOKUP.b%C3%BCcher.example"]) {
    const answer = await api.ask("GET", `/v1/domains/${name}`);
    assert.deepEqual([answer.status, answer.body.id], [200, id]);
  }
  for (const name of [NOBODY, "nobody.example.com", "nothing", "%00", "a%2Fb.example.com"]) {
    const answer = await api.ask("GET", `/v1/domains/${name}`);
    assert.deepEqual([answer.status, answer.body.code], [404, "not_found"], name);
  }
});

test("the list is newest first, with total, limit and offset", async () => {
  const other = await api.organization();
  const as = { key: other.live_key };
  for (const name of ["l1.example.com", "l2.example.com", "l3.example.com"]) {
    await api.ask("POST", "/v1/domains", { domain: name }, as);
  }
  const page = await api.ask("GET", "/v1/domains?limit=2&offset=1", undefined, as);
  assert.equal(page.status, 200);
  assert.deepEqual(
    page.body.domains.map((row: { domain: string }) => row.domain),
    ["l2.example.com", "l1.example.com"],
  );
  assert.deepEqual([page.body.total, page.body.limit, page.body.offset], [3, 2, 1]);
  const whole = await api.ask("GET", "/v1/domains", undefined, as);
  assert.deepEqual([whole.body.domains.length, whole.body.limit, whole.body.offset], [3, 50, 0]);
  for (const query of ["limit=0", "limit=101", "offset=-1", "limit=x", "page=2"]) {
    assert.equal((await api.ask("GET", `/v1/domains?${query}`)).status, 400, query);
  }
});

const purposes = {
  inbound: ["ownership!", "mx!", "dmarc", "dmarc_authorization"],
  alias: ["ownership!", "mx!", "dmarc", "dmarc_authorization"],
  outbound: ["ownership!", "spf!", "dkim!", "return_path", "dmarc", "dmarc_authorization"],
  both: ["ownership!", "spf!", "dkim!", "mx!", "return_path", "dmarc", "dmarc_authorization"],
};
for (const [type, wanted] of Object.entries(purposes)) {
  test(`the records of a domain of type ${type} are ${wanted.join(", ")} (! is required)`, async () => {
    const { id } = await add(`${type}.records.example.com`, { type });
    const records = await recordsOf(id);
    assert.deepEqual(
      records.map((record) => record.purpose + (record.required ? "!" : "")),
      wanted,
    );
  });
}

test("the records say exactly what to publish, and are unchecked at first", async () => {
  const domain = "what.example.com";
  const { id } = await add(domain, { type: "both" });
  const answer = await api.ask("GET", `/v1/domains/${domain}/dns`);
  assert.deepEqual([answer.status, answer.body.domain], [200, domain]);
  const records = answer.body.records as DnsRecord[];
  const shape = records.map(({ purpose, type, name, priority, ttl }) => [purpose, type, name, priority, ttl]);
  assert.deepEqual(shape, [
    ["ownership", "TXT", `_postern.${domain}`, null, 3600],
    ["spf", "TXT", domain, null, 3600],
    ["dkim", "TXT", `postern1._domainkey.${domain}`, null, 3600],
    ["mx", "MX", domain, 10, 3600],
    ["return_path", "CNAME", `pt-bounces.${domain}`, null, 3600],
    ["dmarc", "TXT", `_dmarc.${domain}`, null, 3600],
    ["dmarc_authorization", "TXT", `${domain}._report._dmarc.reports.postern.test`, null, 3600],
  ]);
  const { config } = api;
  assert.match(byPurpose(records, "ownership").value, /^postern-verify=[0-9A-Za-z]{32}$/);
  assert.equal(byPurpose(records, "spf").value, `v=spf1 include:${config.spf_host} ~all`);
  assert.match(byPurpose(records, "dkim").value, /^v=DKIM1; k=rsa; p=[A-Za-z0-9+/=]{300,}$/);
  assert.equal(byPurpose(records, "mx").value, config.mx_host);
  assert.equal(byPurpose(records, "return_path").value, config.bounce_host);
  assert.match(byPurpose(records, "dmarc").value, /^v=DMARC1; p=none; rua=mailto:[0-9a-f]{32}@reports\.postern\.test$/);
  for (const { status, found, hint, checked_at } of records) {
    assert.deepEqual(
      { status, found, hint, checked_at },
      { status: "unchecked", found: [], hint: null, checked_at: null },
    );
  }
  assert.deepEqual(await recordsOf(id), records);
});

test("every organization has tokens of its own for the same domain", async () => {
  const other = await api.organization();
  await add("tokens.example.com");
  await api.ask("POST", "/v1/domains", { domain: "tokens.example.com" }, { key: other.live_key });
  const path = "/v1/domains/tokens.example.com/dns";
  const mine = (await api.ask("GET", path)).body.records;
  const theirs = (await api.ask("GET", path, undefined, { key: other.live_key })).body.records;
  for (const purpose of ["ownership", "dmarc"]) {
    assert.notEqual(byPurpose(mine, purpose).value, byPurpose(theirs, purpose).value);
  }
});

test("verify answers 200 though nothing is published, and says what is missing", async () => {
  const { id } = await add("nothing.example.com", { type: "both" });
  const answer = await api.ask("POST", `/v1/domains/${id}/verify`);
  assert.equal(answer.status, 200);
  const { summary, records, ...record } = answer.body;
  assert.equal(
    summary,
    "nothing.example.com is pending: 0 of 4 required records are in place. To publish or correct: TXT _postern.nothing.example.com, TXT nothing.example.com, TXT postern1._domainkey.nothing.example.com, MX nothing.example.com. Recommended besides: CNAME pt-bounces.nothing.example.com, TXT _dmarc.nothing.example.com.",
  );
  assert.deepEqual(
    records.map((shown: DnsRecord) => [shown.status, typeof shown.hint, shown.checked_at]),
    Array(7).fill(["missing", "string", "2026-11-05T10:00:00.000Z"]),
  );
  assert.deepEqual([record.status, record.verified], ["pending", false]);
  assert.equal(record.last_dns_check, "2026-11-05T10:00:00.000Z");
  assert.deepEqual((await api.ask("GET", `/v1/domains/${id}`)).body, record);
  assert.deepEqual(await recordsOf(id), records);
});

test("a domain is verified record by record; the recommended ones are not needed for it", async () => {
  const { id, domain } = await add("steps.example.com", { type: "both" });
  const records = await recordsOf(id);
  const flags = ["ownership", "spf", "dkim", "mx"];
  for (const [index, purpose] of flags.entries()) {
    publish(dns, [byPurpose(records, purpose)]);
    const { body } = await api.ask("POST", `/v1/domains/${domain}/verify`);
    assert.deepEqual(
      flags.map((flag) => body[`${flag}_verified`]),
      flags.map((_, at) => at <= index),
    );
    assert.equal(body.status, index === 3 ? "verified" : "pending");
    assert.equal(body.verified_at, index === 3 ? "2026-11-05T10:00:00.000Z" : null);
    assert.deepEqual([body.return_path_verified, body.dmarc_verified], [false, false]);
  }
  publish(
    dns,
    ["return_path", "dmarc", "dmarc_authorization"].map((purpose) => byPurpose(records, purpose)),
  );
  const { body } = await api.ask("POST", `/v1/domains/${id}/verify`);
  assert.deepEqual([body.return_path_verified, body.dmarc_verified, body.verified], [true, true, true]);
  const stands = "steps.example.com is verified: 4 of 4 required records are in place.";
  assert.equal(body.summary, `${stands} ${body.warming.hint}`);
  for (const shown of body.records) {
    assert.deepEqual([shown.status, shown.hint], ["ok", null], shown.name);
    assert.deepEqual(shown.found, [shown.type === "MX" ? `10 ${shown.value}` : shown.value]);
  }
});

test("a verified domain that cannot be asked for stays as it is, and says so", async () => {
  const record = await addVerifiedDomain(api, dns, "servfail.example.com", { type: "both" });
  const records = await recordsOf(record.id);
  for (const { name } of records) dns.fail(name, "servfail");
  clock.advance(11 * 60_000);
  const { body } = await api.ask("POST", `/v1/domains/${record.id}/verify`);
  assert.deepEqual(new Set(body.records.map((shown: DnsRecord) => shown.status)), new Set(["error"]));
  assert.match(body.summary, /is verified: 0 of 4.*Could not be asked for, and will be again: TXT _postern/);
  const unchanged = ({
    last_dns_check: _,
    next_check_at: _n,
    summary: _s,
    records: _r,
    ...rest
  }: Record<string, unknown>) => rest;
  assert.deepEqual(unchanged(body), unchanged(record));
  for (const { name } of records) dns.heal(name);
});

test("PUT changes the given fields and only those", async () => {
  const { id } = await add("put.example.com");
  clock.advance(1_000);
  const first = await api.ask("PUT", `/v1/domains/${id}`, { catch_all_enabled: true, tls_policy: "require" });
  assert.equal(first.status, 200);
  assert.deepEqual(
    [first.body.catch_all_enabled, first.body.tls_policy, first.body.active, first.body.type],
    [true, "require", true, "inbound"],
  );
  assert.ok(first.body.updated_at > first.body.created_at);
  await api.ask("POST", "/v1/ip-pools", { name: "bulk", ips: [{ ip: "127.0.0.9" }] });
  const second = await api.ask("PUT", "/v1/domains/put.example.com", { active: false, ip_pool: "bulk" });
  assert.deepEqual(
    [second.body.active, second.body.ip_pool, second.body.catch_all_enabled, second.body.tls_policy],
    [false, "bulk", true, "require"],
  );
  const third = await api.ask("PUT", `/v1/domains/${id}`, { ip_pool: null, active: true });
  assert.deepEqual([third.body.ip_pool, third.body.active], [null, true]);
  const nothing = await api.ask("PUT", `/v1/domains/${id}`, {});
  assert.deepEqual([nothing.status, nothing.body.tls_policy], [200, "require"]);
});

const badChanges: [unknown, string][] = [
  [{ type: "none" }, "type"],
  [{ active: 1 }, "active"],
  [{ tls_policy: "never" }, "tls_policy"],
  [{ ip_pool: "Not A Pool" }, "ip_pool"],
  [{ ip_pool: "no-such-pool" }, "ip_pool"],
  [{ catch_all_webhook_ids: ["x"] }, "catch_all_webhook_ids[0]"],
  [{ catch_all_webhook_ids: [NOBODY, NOBODY] }, "catch_all_webhook_ids"],
  [{ domain: "other.example.com" }, "domain"],
];
for (const [body, field] of badChanges) {
  test(`PUT with ${JSON.stringify(body)} is 400 and names ${field}`, async () => {
    const answer = await api.ask("PUT", "/v1/domains/fields.example.com", body);
    assert.deepEqual([answer.status, answer.body.code, answer.body.field], [400, "validation_error", field]);
  });
}

test("an IP pool needs a plan with dedicated addresses", async () => {
  const other = await api.organization("growth");
  const as = { key: other.live_key };
  await api.ask("POST", "/v1/domains", { domain: "pool.example.com" }, as);
  const answer = await api.ask("PUT", "/v1/domains/pool.example.com", { ip_pool: "bulk" }, as);
  assert.deepEqual([answer.status, answer.body.code], [403, "plan_limit_reached"]);
  assert.equal((await api.ask("PUT", "/v1/domains/pool.example.com", { ip_pool: null }, as)).status, 200);
});

test("a domain that begins to send gets a first key; one that has a key keeps it", async () => {
  const { id } = await add("turn.example.com");
  assert.deepEqual((await api.ask("GET", `/v1/domains/${id}/dkim`)).body.keys, []);
  const turned = await api.ask("PUT", `/v1/domains/${id}`, { type: "outbound" });
  assert.deepEqual([turned.status, turned.body.type, turned.body.status], [200, "outbound", "pending"]);
  const record = byPurpose(await recordsOf(id), "dkim");
  assert.equal(record.name, "postern1._domainkey.turn.example.com");
  await api.ask("PUT", `/v1/domains/${id}`, { type: "inbound" });
  const kept = byPurpose(await recordsOf(id), "dkim");
  assert.deepEqual([kept.value, kept.required], [record.value, false]);
  await api.ask("PUT", `/v1/domains/${id}`, { type: "both" });
  assert.equal(byPurpose(await recordsOf(id), "dkim").value, record.value);
});

test("another type asks for other records at once", async () => {
  const { id } = await addVerifiedDomain(api, dns, "types.example.com", { type: "both" });
  const turn = async (type: string) => (await api.ask("PUT", `/v1/domains/${id}`, { type })).body;
  assert.equal((await turn("outbound")).status, "verified");
  const again = await turn("both");
  assert.deepEqual([again.status, again.verified, again.mx_verified], ["degraded", true, false], "it goes on sending");
  assert.equal((await api.ask("POST", `/v1/domains/${id}/verify`)).body.status, "verified");
  const inbound = await turn("inbound");
  assert.deepEqual([inbound.status, inbound.spf_verified, inbound.return_path_verified], ["verified", false, false]);
  assert.equal((await turn("alias")).status, "verified");
  const outbound = await turn("outbound");
  assert.deepEqual([outbound.status, outbound.verified, outbound.ownership_verified], ["pending", false, true]);
  const { body } = await api.ask("POST", `/v1/domains/${id}/verify`);
  assert.deepEqual([body.status, body.mx_verified], ["verified", false]);
});

test("a deleted domain is gone with its keys, and may be added again with other tokens", async () => {
  const { id } = await add("gone.example.com", { type: "outbound" });
  const token = byPurpose(await recordsOf(id), "ownership").value;
  const deleted = await api.ask("DELETE", "/v1/domains/gone.example.com");
  assert.deepEqual([deleted.status, deleted.body], [200, { deleted: true, id }]);
  assert.equal((await api.ask("GET", `/v1/domains/${id}`)).status, 404);
  assert.equal((await api.ask("DELETE", `/v1/domains/${id}`)).status, 404);
  const [keys] = await api.world.db.query<{ n: number }>("select count(*) as n from dkim_key where domain_id = $1", [
    id,
  ]);
  assert.equal(keys?.n, 0);
  const again = await add("gone.example.com");
  assert.notEqual(byPurpose(await recordsOf(again.id), "ownership").value, token);
});

test("aliases, queued mail and webhooks are asked of their features", async () => {
  const asked: unknown[] = [];
  const state = { aliases: true, mail: true };
  const ports = {
    ...domainPorts(api.world),
    hasAliases: async (_tx: unknown, ...args: string[]) => asked.push(args) > 0 && state.aliases,
    hasQueuedMail: async (_tx: unknown, ...args: string[]) => asked.push(args) > 0 && state.mail,
    unknownWebhooks: async (_tx: unknown, _orgId: string, ids: string[]) => ids.filter((id) => id === NOBODY),
  };
  const server = await createHttpServer(api.world, (routes) => mountDomains(routes, api.world, ports));
  const ask = async (method: "DELETE" | "PUT", url: string, payload?: object) => {
    const headers = { authorization: `Bearer ${api.live_key}` };
    const answer = await server.app.inject({ method, url, headers, payload });
    return { status: answer.statusCode, body: answer.json() };
  };
  const { id } = await add("used.example.com");
  const path = `/v1/domains/${id}`;
  const refused = await ask("DELETE", path);
  assert.deepEqual([refused.status, refused.body.code], [409, "invalid_state"]);
  assert.match(refused.body.error, /has aliases; add \?force=true/);
  state.aliases = false;
  assert.match((await ask("DELETE", `${path}?force=false`)).body.error, /has mail waiting/);
  assert.deepEqual(asked[0], [api.org_id, id]);
  assert.equal((await ask("DELETE", `${path}?force=perhaps`)).status, 400);

  const hook = "00000000-0000-7000-8000-000000000001";
  const unknown = await ask("PUT", path, { catch_all_webhook_ids: [hook, NOBODY] });
  assert.deepEqual([unknown.status, unknown.body.field], [400, "catch_all_webhook_ids[1]"]);
  assert.deepEqual((await ask("PUT", path, { catch_all_webhook_ids: [hook] })).body.catch_all_webhook_ids, [hook]);

  state.mail = true;
  assert.equal((await ask("DELETE", `${path}?force=true`)).status, 200);
  await server.stop();
});

test("a webhook that is deleted is in no domain's catch-all any more, so that what was read can be written back", async () => {
  const hooks = [];
  for (const name of ["one", "two"]) {
    const { body } = await api.ask("POST", "/v1/webhooks", { url: `https://hooks.example/${name}` });
    hooks.push(body.webhook.id);
  }
  const path = `/v1/domains/${(await add("caught.example.com")).id}`;
  assert.equal((await api.ask("PUT", path, { catch_all_webhook_ids: hooks })).status, 200);
  assert.equal((await api.ask("DELETE", `/v1/webhooks/${hooks[0]}`)).status, 200);
  const { catch_all_webhook_ids } = (await api.ask("GET", path)).body;
  assert.deepEqual(catch_all_webhook_ids, [hooks[1]]);
  assert.equal((await api.ask("PUT", path, { catch_all_webhook_ids })).status, 200);
});

test("another organization's domain answers as one that does not exist, on every path", async () => {
  const other = await api.organization();
  const { id, domain } = await add("mine.example.com", { type: "outbound" });
  for (const name of [id, domain]) {
    const calls: [string, string, unknown?][] = [
      ["GET", ""],
      ["PUT", "", { active: false }],
      ["DELETE", ""],
      ["GET", "/dns"],
      ["POST", "/verify"],
      ["GET", "/dkim"],
      ["POST", "/dkim", {}],
      ["POST", "/dkim/rotate", { old_selector: "postern1", new_selector: "x" }],
      ["POST", "/dkim/verify"],
      ["DELETE", "/dkim/postern1"],
    ];
    for (const [method, path, body] of calls) {
      const answer = await api.ask(method, `/v1/domains/${name}${path}`, body, { key: other.live_key });
      const nobody = await api.ask(method, `/v1/domains/${NOBODY}${path}`, body, { key: other.live_key });
      assert.deepEqual([answer.status, answer.body.error], [404, nobody.body.error], `${method} ${path}`);
    }
  }
  assert.equal((await api.ask("GET", `/v1/domains/${id}`)).body.active, true);
  assert.deepEqual((await api.ask("GET", "/v1/domains", undefined, { key: other.live_key })).body.domains, []);
});

test("a test key manages domains like a live one, and both see the same", async () => {
  const as = { key: api.test_key };
  const record = await addVerifiedDomain(api, dns, "testkey.example.com", { key: api.test_key });
  assert.deepEqual((await api.ask("GET", `/v1/domains/${record.id}`)).body, record);
  assert.equal((await api.ask("PUT", `/v1/domains/${record.id}`, { active: false }, as)).status, 200);
  assert.equal((await api.ask("DELETE", `/v1/domains/${record.id}`, undefined, as)).status, 200);
});

test("without a key every operation is 401", async () => {
  for (const path of ["/v1/domains", "/v1/domains/x.example.com/dns", "/v1/domains/x.example.com/dkim"]) {
    assert.equal((await api.ask("GET", path, undefined, { key: null })).status, 401);
  }
});
