// The key that is made with a domain: who asks for the first key gets it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { addVerifiedDomain, publish } from "../../test/support/verified-domain.ts";

let dns: DnsServer;
let api: TestApi;
before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
});
after(async () => {
  await api.close();
  await dns.stop();
});

const add = (domain: string) => api.ask("POST", "/v1/domains", { domain, type: "outbound" });
const dkim = (domain: string, method = "GET", path = "", body?: unknown) =>
  api.ask(method, `/v1/domains/${domain}/dkim${path}`, body);

test("the first create gets the key that was made with the domain; the next one of its selector is 409", async () => {
  for (const [domain, body] of [
    ["ask.example.com", undefined],
    ["ask.default.example.com", { algorithm: "rsa" }],
    ["ask.name.example.com", { selector: "Postern1" }],
  ] as const) {
    await add(domain);
    const [made] = (await dkim(domain)).body.keys;
    const asked = await dkim(domain, "POST", "", body);
    assert.deepEqual([asked.status, asked.body.key], [201, made]);
    assert.equal(asked.body.dns_record.name, `postern1._domainkey.${domain}`);
    assert.match(asked.body.message, /^Publish the TXT record postern1/);
    const again = await dkim(domain, "POST", "", { selector: "postern1" });
    assert.deepEqual([again.status, again.body.code, again.body.field], [409, "already_exists", "selector"]);
    assert.equal((await dkim(domain, "POST", "", {})).body.key.selector, "postern2");
  }
});

test("two that ask for the first key at once get a key each", async () => {
  await add("ask.both.example.com");
  const both = await Promise.all([1, 2].map(() => dkim("ask.both.example.com", "POST", "", {})));
  assert.deepEqual(both.map(({ body }) => body.key.selector).sort(), ["postern1", "postern2"]);
});

test("the first create with another algorithm takes the place of the key made with the domain", async () => {
  const domain = "ask.ed.example.com";
  await add(domain);
  const made = (await dkim(domain)).body.keys[0];
  const asked = await dkim(domain, "POST", "", { algorithm: "ed25519" });
  assert.deepEqual(
    [asked.status, asked.body.key.selector, asked.body.key.algorithm, asked.body.key.status],
    [201, "postern1", "ed25519", "pending"],
  );
  assert.notEqual(asked.body.key.public_key, made.public_key);
  const listed = (await dkim(domain)).body;
  assert.deepEqual(listed.keys, [asked.body.key]);
  assert.equal(listed.dns_records[0].value, asked.body.dns_record.value);
  assert.equal((await dkim(domain, "POST", "", { selector: "postern1" })).status, 409);
  publish(dns, [{ purpose: "dkim", priority: null, ...asked.body.dns_record }]);
  await dkim(domain, "POST", "/verify");
  assert.equal((await dkim(domain)).body.keys[0].status, "active");
});

test("a key that DNS has shown is nobody's to take: the next create makes another", async () => {
  const domain = "ask.late.example.com";
  await addVerifiedDomain(api, dns, domain);
  assert.equal((await dkim(domain, "POST", "", { selector: "postern1" })).status, 409);
  assert.equal((await dkim(domain, "POST", "", { algorithm: "ed25519" })).body.key.selector, "postern2");
});

test("a key of a name of its own leaves the one made with the domain for the next who asks; rotating that asks for it", async () => {
  await add("ask.own.example.com");
  await dkim("ask.own.example.com", "POST", "", { selector: "own" });
  assert.equal((await dkim("ask.own.example.com", "POST", "", {})).body.key.selector, "postern1");
  await add("ask.turn.example.com");
  const turn = { old_selector: "postern1", new_selector: "next" };
  assert.equal((await dkim("ask.turn.example.com", "POST", "/rotate", turn)).status, 200);
  assert.equal((await dkim("ask.turn.example.com", "POST", "", {})).body.key.selector, "postern2");
});
