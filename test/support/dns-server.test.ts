import assert from "node:assert/strict";
import { promises as nodeDns } from "node:dns";
import { after, before, test } from "node:test";
import { type DnsServer, startDnsServer } from "./dns-server.ts";

// The oracle is Node's own resolver (c-ares), so that our own fault cannot hide in our own resolver.
let dns: DnsServer;
const node = new nodeDns.Resolver({ timeout: 200, tries: 1 });
before(async () => {
  dns = await startDnsServer({ "example.com": { MX: [{ exchange: "mx.example.com", preference: 10 }] } });
  node.setServers([dns.address]);
});
after(() => dns.stop());

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => "found",
    (error: { code: string }) => error.code,
  );

test("records are served, replaced and removed", async () => {
  const [mx] = await node.resolveMx("example.com");
  assert.deepEqual([mx?.exchange, mx?.priority], ["mx.example.com", 10]);
  dns.set("example.com", "A", ["192.0.2.1"]);
  dns.set("example.com", "A", ["192.0.2.2"]);
  assert.deepEqual(await node.resolve4("example.com"), ["192.0.2.2"]);
  dns.remove("example.com", "A");
  assert.equal(await code(node.resolve4("example.com")), "ENODATA");
  dns.set("gone.example.org", "A", ["192.0.2.1"]);
  dns.remove("gone.example.org");
  assert.equal(await code(node.resolve4("gone.example.org")), "ENOTFOUND");
  assert.equal(await code(node.resolve4("example.org")), "ENOTFOUND");
});

test("a name with other types or with names below is nodata, any other unknown name does not exist", async () => {
  dns.set("deep.down.example.net", "A", ["192.0.2.1"]);
  for (const name of ["down.example.net", "example.net", "deep.down.example.net"]) {
    assert.equal(await code(node.resolveTxt(name)), "ENODATA", name);
  }
  assert.equal(await code(node.resolveTxt("other.example.net")), "ENOTFOUND");
});

test("a wildcard answers for absent names, not for names that exist", async () => {
  dns.set("*.wild.example", "A", ["192.0.2.3"]);
  dns.set("real.wild.example", "TXT", ["here"]);
  assert.deepEqual(await node.resolve4("any.thing.wild.example"), ["192.0.2.3"]);
  assert.equal(await code(node.resolve4("real.wild.example")), "ENODATA");
});

test("aliases are followed, and a long text is split and joined", async () => {
  dns.set("alias.example.com", "CNAME", ["target.example.com"]);
  dns.set("target.example.com", "TXT", ["k".repeat(600)]);
  assert.deepEqual(
    (await node.resolveTxt("alias.example.com"))[0]?.map((part) => part.length),
    [255, 255, 90],
  );
  dns.set("192.0.2.5", "PTR", ["back.example.com"]);
  assert.deepEqual(await node.reverse("192.0.2.5"), ["back.example.com"]);
});

test("faults: servfail, refused, silence, truncation to TCP; and they heal", async () => {
  dns.set("sick.example.com", "A", ["192.0.2.1"]);
  const faults = [
    ["servfail", "ESERVFAIL"],
    ["refused", "EREFUSED"],
    ["timeout", "ETIMEOUT"],
    ["truncate", "found"],
  ] as const;
  for (const [fault, want] of faults) {
    dns.fail("sick.example.com", fault);
    assert.equal(await code(node.resolve4("sick.example.com")), want, fault);
  }
  assert.equal(dns.queries.at(-1)?.transport, "tcp");
  dns.heal("sick.example.com");
  dns.queries.length = 0;
  assert.equal(await code(node.resolve4("sick.example.com")), "found");
  assert.deepEqual(dns.queries, [{ name: "sick.example.com", type: "A", transport: "udp" }]);
  dns.clear();
  assert.equal(await code(node.resolve4("sick.example.com")), "ENOTFOUND");
});
