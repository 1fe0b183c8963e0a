// The audit log as its readers see it: each change once, with who, when, from where and what, and no text of a person's.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { noteCommand } from "./audit.ts";
import { sweepAudit } from "./background.ts";

let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

async function newest(query = "", key = api.live_key) {
  const { status, body } = await api.ask("GET", `/v1/audit-log?${query}`, undefined, { key });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

test("a change is noted with who, when, from where and what, and without an address", async () => {
  const url = "https://hooks.example.com/secret-path";
  const { body: made, headers } = await api.ask("POST", "/v1/webhooks", { url, events: ["email.bounced"] });
  const { entries } = await newest("limit=1");
  const { id, at, key_id, name, ip, ...rest } = entries[0];
  assert.deepEqual(rest, {
    actor: "key",
    person_id: null,
    operation: "createWebhook",
    target: { id: made.webhook.id },
    fields: ["url", "events"],
    changes: [{ field: "events", before: null, after: "email.bounced" }],
    request_id: headers["x-request-id"],
  });
  const { body: keys } = await api.ask("GET", "/v1/api-keys");
  assert.equal(keys.keys.find((one: { id: string }) => one.id === key_id)?.name, name);
  assert.equal(ip, "127.0.0.1");
  assert.ok(Math.abs(Date.parse(at) - api.world.clock.now()) < 60_000);
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.ok(!JSON.stringify(entries).includes("secret-path"));
});

test("what names a thing in its path is noted, and an address of a person is not", async () => {
  const { body: domain } = await api.ask("POST", "/v1/domains", { domain: "noted.example" });
  await api.ask("PUT", "/v1/domains/noted.example", { active: false });
  assert.deepEqual((await newest("limit=1")).entries[0].target, { id: domain.id });
  await api.ask("POST", "/v1/suppressions", { email: "anna@person.example" });
  await api.ask("DELETE", "/v1/suppressions/anna@person.example");
  await api.ask("DELETE", "/v1/masked/people?email=anna@person.example");
  const { entries } = await newest("limit=3");
  assert.deepEqual(
    entries.map(({ operation }: { operation: string }) => operation),
    ["eraseMaskedPerson", "removeSuppression", "addSuppression"],
  );
  assert.ok(!JSON.stringify(entries).includes("anna@"));
});

type Change = { field: string; before: string | null; after: string | null };

/** What the newest entry says of values, as `field: before > after`. */
async function newestChanges(): Promise<string[]> {
  const { changes } = (await newest("limit=1")).entries[0];
  return changes.map(({ field, before: was, after: is }: Change) => `${field}: ${was} > ${is}`);
}

test("what was changed is noted as it was before and after, and what stayed is not", async () => {
  const domain = "before-after.example";
  const { body: made } = await api.ask("POST", "/v1/domains", { domain, type: "outbound" });
  assert.deepEqual(await newestChanges(), ["type: null > outbound"]);
  assert.deepEqual((await newest("limit=1")).entries[0].fields, ["domain", "type"]);
  await api.ask("PUT", `/v1/domains/${made.id}`, { active: false, tls_policy: "require", type: "outbound" });
  assert.deepEqual(await newestChanges(), ["active: true > false", "tls_policy: opportunistic > require"]);

  const { body: hook } = await api.ask("POST", "/v1/webhooks", {
    url: "https://a.example/x",
    events: ["email.bounced"],
  });
  const change = { enabled: false, events: ["email.bounced", "email.delivered"], url: "https://b.example/secret" };
  await api.ask("PUT", `/v1/webhooks/${hook.webhook.id}`, change);
  const of_hook = ["enabled: true > false", "events: email.bounced > email.bounced, email.delivered"];
  assert.deepEqual((await newestChanges()).toSorted(), of_hook);

  const spam = { thresholds: { tag: 4, quarantine: 7 }, block: ["mallory@there.example"], enabled: true };
  const inbound = { domain: "before-after-in.example", type: "inbound" };
  const { body: receives } = await api.ask("POST", "/v1/domains", inbound);
  const { body: was } = await api.ask("GET", `/v1/domains/${receives.id}/spam`);
  assert.equal((await api.ask("PUT", `/v1/domains/${receives.id}/spam`, spam)).status, 200);
  const noted = await newestChanges();
  const { tag } = (was.spam ?? was).thresholds;
  assert.ok(noted.includes(`thresholds.tag: ${tag} > 4`), noted.join("; "));
  assert.ok(!noted.join().includes("mallory"));

  const { body: key } = await api.ask("POST", "/v1/api-keys", { name: "first name", environment: "live" });
  assert.deepEqual(await newestChanges(), ["name: null > first name", "environment: null > live"]);
  await api.ask("PUT", `/v1/api-keys/${key.key.id}`, { name: "second name" });
  assert.deepEqual(await newestChanges(), ["name: first name > second name"]);
});

test("what is cleared is noted, a long list is compared to its end, and a text that is not kept is no nothing", async () => {
  const { body: domain } = await api.ask("POST", "/v1/domains", { domain: "cleared.example", type: "inbound" });
  const spam = `/v1/domains/${domain.id}/spam`;
  await api.ask("PUT", spam, { thresholds: { reject: 12 } });
  assert.equal((await api.ask("PUT", spam, { thresholds: { reject: null } })).status, 200);
  assert.deepEqual(await newestChanges(), ["thresholds.reject: 12 > null"]);
  await api.ask("PUT", spam, { thresholds: { reject: null } });
  assert.deepEqual(await newestChanges(), []);

  const hooks: string[] = [];
  for (let n = 0; n < 10; n += 1) {
    const { body } = await api.ask("POST", "/v1/webhooks", { url: `https://h${n}.example/` });
    hooks.push(body.webhook.id);
  }
  const path = `/v1/domains/${domain.id}`;
  assert.equal((await api.ask("PUT", path, { catch_all_webhook_ids: hooks.slice(0, 9) })).status, 200);
  await api.ask("PUT", path, { catch_all_webhook_ids: [...hooks.slice(0, 8), hooks[9]] });
  assert.equal((await newestChanges()).length, 1, "only the ninth is another one");

  const { body: key } = await api.ask("POST", "/v1/api-keys", { name: "shop", environment: "live" });
  const rename = (name: string) => api.ask("PUT", `/v1/api-keys/${key.key.id}`, { name });
  await rename("for anna@person.example");
  assert.deepEqual(await newestChanges(), ["name: shop > …"]);
  await rename("for zoe@person.example");
  assert.deepEqual(await newestChanges(), ["name: … > …"]);
  await rename("shop");
  assert.deepEqual(await newestChanges(), ["name: … > shop"]);
});

test("the values of a template's texts, of a relay's password and of what a person wrote are not kept", async () => {
  const texts = { name: "Plain", subject: "Dear <b>Anna</b>", html_body: "<p>private</p>", active: true };
  await api.ask("POST", "/v1/templates", texts);
  assert.deepEqual(await newestChanges(), ["name: null > Plain", "active: null > true"]);
  const { body: domain } = await api.ask("POST", "/v1/domains", { domain: "relayed.example" });
  const relay = { host: "127.0.0.1", port: 2525, username: "anna", password: "hush-hush" };
  await api.ask("PUT", `/v1/domains/${domain.id}/relay`, relay);
  const { entries } = await newest("limit=1");
  assert.doesNotMatch(JSON.stringify(entries[0].changes), /anna|hush/);
  await api.ask("POST", "/v1/suppressions", {
    email: "zoe@person.example",
    note: "Zoe asked by phone",
    reason: "manual",
  });
  assert.doesNotMatch(JSON.stringify((await newest("limit=1")).entries), /zoe|phone/i);
});

test("names of masked addresses are a person's, and only their switches are kept", async () => {
  const { body: mailbox } = await api.ask("POST", "/v1/masked/destinations", { email: "lena@home.example" });
  assert.ok(mailbox);
  await api.ask("PUT", "/v1/masked/settings", { aliases_hour: 7, forged_mail: "warn" });
  const noted = await newestChanges();
  assert.equal(noted.length, 2, noted.join("; "));
  assert.match(noted.join("; "), /aliases_hour: \S+ > 7/);
  assert.match(noted.join("; "), /forged_mail: quarantine > warn/);
});

test("a password manager gives a masked address its owner's name, and the log keeps none", async () => {
  const destination = "lena@home.example";
  const asked = { name: "Lena's phone", environment: "live", kind: "mask", destination };
  const { body: made } = await api.ask("POST", "/v1/api-keys", asked);
  const as = { key: null, headers: { authentication: made.secret } };
  const { body: options } = await api.ask("GET", "/api/v5/alias/options", undefined, as);
  const { signed_suffix } = options.suffixes[0];
  const mask = { alias_prefix: "shop", signed_suffix, name: "Lena Realname", note: "for shoes" };
  const { body: alias, status } = await api.ask("POST", "/api/v3/alias/custom/new", mask, as);
  assert.equal(status, 201, JSON.stringify(alias));
  assert.equal((await api.ask("PATCH", `/api/aliases/${alias.id}`, { name: "Lena Othername" }, as)).status, 200);
  const { entries } = await newest("limit=2");
  const operations = entries.map(({ operation }: { operation: string }) => operation);
  assert.deepEqual(operations, ["updateMaskedAlias", "createMaskedAlias"]);
  assert.doesNotMatch(JSON.stringify(entries), /Realname|Othername|shoes/);
  const odd = { note: "x", "zoe@person.example": true };
  assert.equal((await api.ask("PATCH", `/api/aliases/${alias.id}`, odd, as)).status, 200);
  assert.equal((await api.ask("POST", "/api/alias/random/new", odd, as)).status, 201);
  for (const { fields } of (await newest("limit=2")).entries) assert.deepEqual(fields, ["note"]);

  const contacts = `/v1/masked/aliases/${alias.id}/contacts`;
  const { contact } = (await api.ask("POST", contacts, { email: "shop@there.example" })).body;
  await api.ask("PATCH", `${contacts}/${contact.id}`, { blocked: true });
  await api.ask("DELETE", `${contacts}/${contact.id}`);
  for (const { target } of (await newest("limit=2")).entries) {
    assert.deepEqual(target, { id: alias.id, contact_id: contact.id });
  }
});

test("what failed, what only reads and what sends is no change", async () => {
  const { total } = await newest();
  assert.equal((await api.ask("POST", "/v1/webhooks", { url: "nonsense" })).status, 400);
  assert.equal((await api.ask("DELETE", "/v1/domains/none.example")).status, 404);
  assert.equal((await api.ask("GET", "/v1/webhooks")).status, 200);
  const mail = { from: "a@noted.example", to: ["b@there.example"], subject: "x", text_body: "x" };
  await api.ask("POST", "/v1/send", mail);
  assert.equal((await newest()).total, total);
});

test("the log is asked by operation, key and time, and pages with an exact total", async () => {
  const { live_key: key } = await api.organization();
  const made = await api.ask("POST", "/v1/api-keys", { name: "second", environment: "live" }, { key });
  const other = made.body.secret;
  for (let n = 0; n < 3; n += 1) {
    await api.ask("POST", "/v1/suppressions", { email: `n${n}@person.example` }, { key: other });
  }
  assert.equal((await newest("", key)).total, 4);
  assert.equal((await newest("operation=createApiKey", key)).total, 1);
  const page = await newest(`key_id=${made.body.key.id}&limit=2&offset=2`, key);
  assert.deepEqual([page.total, page.entries.length, page.entries[0].name], [3, 1, "second"]);
  assert.equal((await newest("to_date=2020-01-01", key)).total, 0);
  assert.equal((await newest("from_date=2020-01-01", key)).total, 4);
});

test("what the operator does at the command line is noted with their name on the machine", async () => {
  const { org_id, live_key } = await api.organization();
  const changes = [{ field: "plan", before: "free", after: "pro" }];
  await noteCommand(api.world, org_id, { command: "organizations set", fields: ["plan"], changes });
  const { entries } = await newest("", live_key);
  const { actor, operation, fields, key_id, ip, name } = entries[0];
  assert.deepEqual(entries[0].changes, changes);
  assert.deepEqual([actor, operation, fields, key_id, ip], ["command", "organizations set", ["plan"], null, null]);
  assert.ok(name.length > 0);
});

test("entries are kept for 400 days", async () => {
  const { org_id, live_key } = await api.organization();
  await noteCommand(api.world, org_id, { command: "settings" });
  const in_days = (days: number) => ({
    ...api.world,
    clock: { ...api.world.clock, now: () => Date.now() + days * 86_400_000 },
  });
  await sweepAudit(in_days(399));
  assert.equal((await newest("", live_key)).total, 1);
  await sweepAudit(in_days(401));
  assert.equal((await newest("", live_key)).total, 0);
});
