// Every way in which a stranger can make us connect somewhere, with loopback forbidden as it is where nobody tests:
// webhooks, mail servers, relays and MTA-STS policies, named by address, by name, over an alias, and by a name that turns
// inside after it was looked at. Each connection that this process begins is noted: none may go to an inner address. The
// table of addresses and the checks of one connection: src/platform/net/addresses.test.ts, safe-fetch.test.ts.
import assert from "node:assert/strict";
import { Socket } from "node:net";
import { after, before, test } from "node:test";
import { stsFinder } from "../../src/outbound/route/sts.ts";
import { isPublicAddress } from "../../src/platform/net/addresses.ts";
import { startHooks } from "../../src/webhooks/dispatch.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

/** A port that only what a stranger named can lead to. */
const PORT = 48_443;
const INNER = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.0.1", "100.64.0.1", "0.0.0.0"];
const INNER6 = ["::1", "fd00::1", "fe80::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"];
const SPELLINGS = [
  "127.1",
  "0x7f000001",
  "2130706433",
  "127.0.0.1.",
  "localhost",
  "①②⑦.0.0.1",
  "[::1]",
  "[::ffff:7f00:1]",
];

type Dial = { host: string; port: number };

const dialled: Dial[] = [];
const { connect } = Socket.prototype;

/** Notes every connection that begins, however it is made: node:tls and undici end here too. */
function noteConnections(): void {
  Socket.prototype.connect = function noted(this: Socket, ...given: unknown[]) {
    const [first] = (Array.isArray(given[0]) ? given[0] : given) as [{ host?: string; port?: number } | number];
    if (typeof first === "object") dialled.push({ host: first.host ?? "localhost", port: Number(first.port) });
    return Reflect.apply(connect, this, given);
  } as typeof connect;
}

let dns: DnsServer;
let api: TestApi;
let own: Set<number>;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({
    ...{ POSTERN_DNS: dns.address, POSTERN_TESTING_ALLOW_LOOPBACK: "0", POSTERN_TESTING_OUTBOUND_PORT: String(PORT) },
  });
  own = new Set([Number(new URL(api.database_url).port), Number(dns.address.split(":")[1])]);
  await addVerifiedDomain(api, dns, "sender.example");
  noteConnections();
});

after(async () => {
  Socket.prototype.connect = connect;
  await api?.world.fetch.close();
  await api?.close();
  await dns?.stop();
});

/** The connections to anything but our own database and name server. */
function strangersDials(): Dial[] {
  return dialled.filter(({ host, port }) => !own.has(port) && !host.startsWith("/"));
}

let names = 0;

/** Names that lead inside: by each address, and over an alias to it. */
function innerNames(): string[] {
  const add = (type: string, address: string): string[] => {
    names += 1;
    dns.set(`n${names}.inner.example`, type, [address]);
    dns.set(`c${names}.inner.example`, "CNAME", [`n${names}.inner.example`]);
    return [`n${names}.inner.example`, `c${names}.inner.example`];
  };
  return [...INNER.map((ip) => add("A", ip)), ...INNER6.map((ip) => add("AAAA", ip))].flat();
}

test("no spelling of an inner address is taken for a webhook or a relay", async () => {
  for (const host of [...SPELLINGS, ...INNER, ...INNER6.map((ip) => `[${ip}]`)]) {
    const hook = await api.ask("POST", "/v1/webhooks", { url: `https://${host}:${PORT}/x` });
    assert.deepEqual([hook.status, hook.body.field], [400, "url"], host);
    const relay = await api.ask("PUT", "/v1/domains/sender.example/relay", { host, port: PORT });
    assert.deepEqual([relay.status, relay.body.field], [400, "host"], host);
  }
  assert.deepEqual(strangersDials(), []);
});

test("a webhook's delivery to a name that leads inside connects nowhere, nor when it turns inside later", async () => {
  const hooks = await startHooks(api.world, { poll_ms: 20 });
  const ids: string[] = [];
  for (const name of [...innerNames(), "turning.example"]) {
    dns.set("turning.example", "A", ["203.0.114.1"]);
    const made = await api.ask("POST", "/v1/webhooks", { url: `https://${name}:${PORT}/x` });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    dns.set("turning.example", "A", ["127.0.0.1"]);
    ids.push(made.body.webhook.id);
    assert.equal((await api.ask("POST", `/v1/webhooks/${ids.at(-1)}/test`)).status, 200);
  }
  await until("every delivery was tried", async () => {
    const { body } = await api.ask("GET", "/v1/webhook-deliveries?limit=100");
    return body.deliveries.length >= ids.length && body.deliveries.every((one: { attempt: number }) => one.attempt > 0);
  });
  const { body } = await api.ask("GET", "/v1/webhook-deliveries?limit=100");
  for (const delivery of body.deliveries)
    assert.match(JSON.stringify(delivery), /no address on the public internet|not allowed|internal/);
  await hooks.stop();
  assert.deepEqual(strangersDials(), []);
});

test("mail to a domain whose servers lead inside is refused, and connects nowhere", async () => {
  await api.startMta();
  const sent: string[] = [];
  for (const [index, name] of innerNames().entries()) {
    const domain = index % 2 === 0 ? `mx${index}.example` : name;
    if (index % 2 === 0) dns.set(domain, "MX", [{ exchange: name, preference: 10 }]);
    const mail = { from: "a@sender.example", to: [`x@${domain}`], subject: "x", text_body: "x" };
    const { status, body } = await api.ask("POST", "/v1/send", mail);
    assert.equal(status, 202);
    sent.push(body.id);
  }
  for (const id of sent) {
    await until(
      `${id} was tried`,
      async () => (await api.ask("GET", `/v1/emails/${id}/events`)).body.events.length > 1,
    );
    const { events } = (await api.ask("GET", `/v1/emails/${id}/events`)).body;
    assert.match(
      JSON.stringify(events.at(-1)),
      /does not exist, or has no mail server on the public internet/,
      JSON.stringify(events.at(-1)),
    );
  }
  assert.deepEqual(strangersDials(), []);
});

test("an address in a network that the operator allows is taken for a webhook or a relay, and its neighbour is not", async () => {
  const opened = await testApi({
    ...{ POSTERN_DNS: dns.address, POSTERN_TESTING_ALLOW_LOOPBACK: "0", POSTERN_ALLOWED_NETWORKS: "10.20.0.0/16" },
  });
  try {
    await addVerifiedDomain(opened, dns, "opened.example");
    for (const [host, status] of [
      ["10.20.3.4", [201, 200]],
      ["10.21.0.1", [400, 400]],
    ] as const) {
      const hook = await opened.ask("POST", "/v1/webhooks", { url: `https://${host}/in` });
      const relay = await opened.ask("PUT", "/v1/domains/opened.example/relay", { host, port: PORT });
      assert.deepEqual([hook.status, relay.status], status, host);
    }
  } finally {
    await opened.close();
  }
});

test("a relay whose name leads inside is not connected to", async () => {
  // Relays are remembered for two seconds: a domain that nothing was sent from yet.
  await addVerifiedDomain(api, dns, "relayed.example");
  const [name = ""] = innerNames();
  const login = { username: "u", password: "p" };
  const made = await api.ask("PUT", "/v1/domains/relayed.example/relay", { host: name, port: PORT, ...login });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const mail = { from: "a@relayed.example", to: ["x@recipient.example"], subject: "x", text_body: "x" };
  const { body } = await api.ask("POST", "/v1/send", mail);
  await until(
    "it was tried",
    async () => (await api.ask("GET", `/v1/emails/${body.id}/events`)).body.events.length > 1,
  );
  const { events } = (await api.ask("GET", `/v1/emails/${body.id}/events`)).body;
  assert.match(JSON.stringify(events.at(-1)), /no address on the public internet/);
  assert.deepEqual(strangersDials(), []);
});

test("a domain's MTA-STS policy is not fetched from inside", async () => {
  const find = stsFinder(api.world);
  for (const [index, address] of [...INNER, ...INNER6].entries()) {
    const domain = `sts${index}.example`;
    dns.set(`_mta-sts.${domain}`, "TXT", ["v=STSv1; id=1"]);
    dns.set(`mta-sts.${domain}`, address.includes(":") ? "AAAA" : "A", [address]);
    const { policy, trouble } = await find(domain);
    assert.equal(policy, null);
    assert.equal(trouble?.result, "sts-policy-fetch-error", address);
  }
  assert.deepEqual(strangersDials(), []);
});

test("connections are noted, so that none is seen to be none", async () => {
  const socket = new Socket();
  socket.on("error", () => undefined);
  socket.connect({ host: "127.0.0.1", port: PORT });
  await new Promise((resolve) => socket.once("close", resolve));
  assert.deepEqual(strangersDials(), [{ host: "127.0.0.1", port: PORT }]);
  assert.ok(!isPublicAddress("127.0.0.1"));
});
