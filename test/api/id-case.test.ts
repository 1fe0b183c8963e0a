// Ids may be written in any case (RFC 9562 §4), in paths, queries and bodies; every answer shows them in lower case.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { operationsOf, type Placed, readDescription } from "./operations.ts";
import { makeNamed, type Names, type Owner, ownerOf, paramsOf } from "./resources.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

let dns: DnsServer;
let api: TestApi;
let owner: Owner;
let readings: Placed[];

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
  owner = ownerOf(api, dns, api.live_key, "anycase");
  readings = operationsOf(await readDescription(api)).filter(
    ({ method, path }) => method === "GET" && path.startsWith("/v1/") && path.includes("{"),
  );
});

after(async () => {
  await api?.close();
  await dns?.stop();
});

function pathOf(path: string, names: Names, spell: (id: string) => string): string {
  return paramsOf(path).reduce((url, param) => {
    const name = names[param] ?? "";
    return url.replace(`{${param}}`, encodeURIComponent(UUID.test(name) ? spell(name) : name));
  }, path);
}

const plain = ({ status, body }: { status: number; body: object }) => [status, { ...body, request_id: undefined }];

describe("an id in upper case", () => {
  it("in a path names what it names in lower case, for every operation that reads", async (t) => {
    assert.ok(readings.length > 20, `${readings.length} operations`);
    for (const { name, path } of readings) {
      await t.test(name, async () => {
        for (const names of await makeNamed(owner, path)) {
          const lower = await api.ask(
            "GET",
            pathOf(path, names, (id) => id),
          );
          const upper = await api.ask(
            "GET",
            pathOf(path, names, (id) => id.toUpperCase()),
          );
          assert.deepEqual(plain(upper), plain(lower));
        }
      });
    }
  });

  it("in a body and in a query means the same record, which shows it in lower case", async () => {
    const domain = await owner.domain();
    const hook = (await api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/a" })).body.webhook;
    const [domain_id, webhook] = [domain.id.toUpperCase(), hook.id.toUpperCase()];
    const alias = { domain_id, local_part: "anycase", webhook_ids: [webhook] };
    const made = await api.ask("POST", "/v1/aliases", alias);
    assert.equal(made.status, 201, JSON.stringify(made.body));
    assert.deepEqual([made.body.alias.domain_id, made.body.alias.webhook_ids], [domain.id, [hook.id]]);
    const listed = await api.ask("GET", `/v1/aliases?domain_id=${domain_id}`);
    assert.ok(listed.body.aliases.some(({ id }: { id: string }) => id === made.body.alias.id));
    const caught = await api.ask("PUT", `/v1/domains/${domain_id}`, { catch_all_webhook_ids: [webhook] });
    assert.deepEqual([caught.status, caught.body.catch_all_webhook_ids], [200, [hook.id]]);
    const scoped = { email: "a@recipient.example", scope_type: "domain", scope_id: domain_id };
    assert.equal((await api.ask("POST", "/v1/suppressions", scoped)).body.suppression.scope_id, domain.id);
    const found = await api.ask("GET", `/v1/suppressions?scope_type=domain&scope_id=${domain_id}`);
    assert.equal(found.body.total, 1);
  });

  it("of a template is taken by a send and by each item of a batch", async () => {
    const domain = await owner.domain();
    const given = { name: "t", slug: "any-case", subject: "Hi", html_body: "<p>x</p>" };
    const { template } = (await api.ask("POST", "/v1/templates", given)).body;
    const template_id = template.id.toUpperCase();
    const mail = { from: `a@${domain.domain}`, to: ["b@recipient.example"], template_id };
    const sent = await api.ask("POST", "/v1/send", mail);
    assert.equal(sent.status, 202, JSON.stringify(sent.body));
    const batch = await api.ask("POST", "/v1/send/batch", [mail]);
    assert.equal(batch.body.accepted, 1, JSON.stringify(batch.body));
    const shown = await api.ask("GET", `/v1/emails/${batch.body.results[0].id.toUpperCase()}`);
    assert.equal(shown.body.email.template_id, template.id);
  });

  it("beside the same in lower case is the same value twice", async () => {
    const domain = await owner.domain();
    const hook = (await api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/b" })).body.webhook;
    const catch_all_webhook_ids = [hook.id, hook.id.toUpperCase()];
    const answer = await api.ask("PUT", `/v1/domains/${domain.id}`, { catch_all_webhook_ids });
    assert.deepEqual([answer.status, answer.body.field], [400, "catch_all_webhook_ids"]);
  });

  it("stays as it is where it is only a name", async () => {
    const list = "0190A000-0000-7000-8000-00000000DEAD";
    const entry = { email: "c@recipient.example", scope_type: "list", scope_id: list };
    assert.equal((await api.ask("POST", "/v1/suppressions", entry)).body.suppression.scope_id, list);
    assert.equal((await api.ask("GET", `/v1/suppressions?scope_type=list&scope_id=${list}`)).body.total, 1);
  });
});
