import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { promises as nodeDns } from "node:dns";
import { once } from "node:events";
import { after, before, beforeEach, test } from "node:test";
import { decode, encode, type Packet } from "dns-packet";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { nodeStyleResolver } from "../../../test/support/node-resolver.ts";
import { createResolver, type Resolver, type ResolverOptions } from "./resolver.ts";

let dns: DnsServer;
let nowMs = 0;
before(async () => {
  dns = await startDnsServer();
});
beforeEach(() => {
  dns.clear();
  dns.queries.length = 0;
  dns.authenticated = false;
  nowMs = 1_000_000;
});
after(() => dns.stop());

/** For cases that want silence. */
const SOON = { timeout_ms: 150 };

function resolverOf(options: Partial<ResolverOptions> = {}): Resolver {
  const usual = { servers: [dns.address], timeout_ms: 3_000, attempts: 2, cache_max: 100, validating: false };
  return createResolver({ ...usual, now: () => nowMs, ...options });
}

/** A UDP server that answers each query with what `reply` makes of it. */
async function scriptedServer(
  reply: (query: Packet & { id: number }) => Buffer[],
): Promise<{ address: string; stop(): void; seen: number[] }> {
  const socket: Socket = createSocket("udp4");
  const seen: number[] = [];
  socket.on("message", (bytes, from) => {
    seen.push(from.port);
    for (const message of reply(decode(bytes))) socket.send(message, from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return { address: `127.0.0.1:${socket.address().port}`, stop: () => socket.close(), seen };
}

function answerTo(query: Packet & { id: number }, packet: Packet = {}): Buffer {
  const answers = query.questions!.map(({ name, type }) => ({ name, type, ttl: 60, data: "192.0.2.7" }));
  return encode({ id: query.id, type: "response", flags: 0x180, questions: query.questions!, answers, ...packet });
}

test("every type comes back in its shape", async () => {
  dns.set("example.com", "TXT", ["v=spf1 -all", ["a".repeat(255), "b"]]);
  dns.set("example.com", "MX", [{ exchange: "MX.Example.com", preference: 5 }]);
  dns.set("example.com", "A", ["192.0.2.1", "192.0.2.2"]);
  dns.set("example.com", "AAAA", ["2001:db8:0:0::1"]);
  dns.set("alias.example.com", "CNAME", ["example.com"]);
  dns.set("192.0.2.1", "PTR", ["host.example.com"]);
  dns.set("2001:db8::1", "PTR", ["six.example.com"]);
  const tlsa = { usage: 3, selector: 1, matching_type: 1, data: Buffer.alloc(32, 9) };
  dns.set("_25._tcp.mx.example.com", "TLSA", [tlsa]);
  const resolver = resolverOf();
  const found = (records: unknown[]) => ({ kind: "found", records, ttl_s: 0, authenticated: false });
  assert.deepEqual(await resolver.txt("example.com"), found(["v=spf1 -all", `${"a".repeat(255)}b`]));
  assert.deepEqual(await resolver.mx("example.com"), found([{ preference: 5, exchange: "mx.example.com" }]));
  assert.deepEqual(await resolver.a("EXAMPLE.com."), found(["192.0.2.1", "192.0.2.2"]));
  assert.deepEqual(await resolver.aaaa("example.com"), found(["2001:db8::1"]));
  assert.deepEqual(await resolver.cname("alias.example.com"), found(["example.com"]));
  assert.deepEqual(await resolver.ptr("192.0.2.1"), found(["host.example.com"]));
  assert.deepEqual(await resolver.ptr("::ffff:192.0.2.1"), found(["host.example.com"]));
  assert.deepEqual(await resolver.ptr("2001:db8::1"), found(["six.example.com"]));
  assert.deepEqual(await resolver.tlsa("_25._tcp.mx.example.com"), found([tlsa]));
});

test("a null MX has the root as its exchange", async () => {
  dns.set("example.com", "MX", [{ exchange: ".", preference: 0 }]);
  const answer = await resolverOf().mx("example.com");
  assert.deepEqual(answer.kind === "found" && answer.records, [{ preference: 0, exchange: "." }]);
});

test("a name without the type, or only with names below it, is nodata; an unknown name is nxdomain", async () => {
  dns.set("mail.example.com", "A", ["192.0.2.1"]);
  const resolver = resolverOf();
  assert.deepEqual(await resolver.mx("mail.example.com"), { kind: "absent", reason: "nodata" });
  assert.deepEqual(await resolver.mx("example.com"), { kind: "absent", reason: "nodata" });
  assert.deepEqual(await resolver.mx("other.example.com"), { kind: "absent", reason: "nxdomain" });
});

test("only NOERROR and NXDOMAIN say something about a name; every other code is a failure", async () => {
  const names = new Map([
    [1, "formerr"],
    [2, "servfail"],
    [4, "notimp"],
    [5, "refused"],
  ]);
  const resolver = resolverOf();
  for (const rcode of [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 16, 23]) {
    dns.fail(`r${rcode}.example.com`, { rcode });
    const want = { kind: "failed", reason: names.get(rcode) ?? `rcode ${rcode}` };
    assert.deepEqual(await resolver.a(`r${rcode}.example.com`), want);
  }
  dns.fail("r3.example.com", { rcode: 3 });
  assert.deepEqual(await resolver.a("r3.example.com"), { kind: "absent", reason: "nxdomain" });
});

test("a silent server is a timeout after all attempts, and a dead port a failure at once", async () => {
  dns.fail("example.com", "timeout");
  const started = performance.now();
  assert.deepEqual(await resolverOf(SOON).a("example.com"), { kind: "failed", reason: "timeout" });
  const took = performance.now() - started;
  assert.ok(took >= 290, `took ${took} ms`);
  assert.equal(dns.queries.length, 2);
  const dead = await startDnsServer();
  await dead.stop();
  const answer = await resolverOf({ servers: [dead.address] }).a("example.com");
  assert.equal(answer.kind === "failed" && answer.reason, "network: ECONNREFUSED");
});

test("another server answers for one that is silent, and is asked first from then on", async () => {
  const other = await startDnsServer({ "example.com": { A: ["192.0.2.1"] }, "b.example.com": { A: ["192.0.2.2"] } });
  dns.fail("example.com", "timeout");
  const resolver = resolverOf({ servers: [dns.address, other.address], timeout_ms: 1_000 });
  assert.equal((await resolver.a("example.com")).kind, "found");
  assert.equal((await resolver.a("b.example.com")).kind, "found");
  assert.equal(dns.queries.length, 1);
  await other.stop();
});

test("a truncated answer is asked again over TCP, whether the server cuts it or it is too large for UDP", async () => {
  dns.set("cut.example.com", "TXT", ["whole"]);
  dns.fail("cut.example.com", "truncate");
  dns.set(
    "large.example.com",
    "TXT",
    Array.from({ length: 150 }, (_, index) => `${index} ${"x".repeat(200)}`),
  );
  const resolver = resolverOf();
  const cut = await resolver.txt("cut.example.com");
  assert.deepEqual(cut.kind === "found" && cut.records, ["whole"]);
  const large = await resolver.txt("large.example.com");
  assert.equal(large.kind === "found" && large.records.length, 150);
  assert.deepEqual(
    dns.queries.map((query) => query.transport),
    ["udp", "tcp", "udp", "tcp"],
  );
});

test("answers with a wrong id or for another question are ignored, and the right one is taken", async () => {
  const server = await scriptedServer((query) => [
    answerTo({ ...query, id: (query.id + 1) & 0xffff }, { answers: [] }),
    answerTo(query, { questions: [{ name: "other.example.com", type: "A" }], answers: [] }),
    answerTo(query, { questions: [{ name: "example.com", type: "MX" }], answers: [] }),
    Buffer.from("junk"),
    answerTo(query),
  ]);
  const answer = await resolverOf({ servers: [server.address] }).a("example.com");
  assert.deepEqual(answer.kind === "found" && answer.records, ["192.0.2.7"]);
  server.stop();
});

test("nothing but forged answers is a failure, also when they come in floods", async () => {
  const one = await scriptedServer((query) => [answerTo({ ...query, id: query.id ^ 1 })]);
  assert.deepEqual(await resolverOf({ servers: [one.address], ...SOON }).a("example.com"), {
    kind: "failed",
    reason: "timeout",
  });
  const flood = await scriptedServer((query) => new Array(150).fill(answerTo({ ...query, id: query.id ^ 1 })));
  assert.equal((await resolverOf({ servers: [flood.address], ...SOON }).a("example.com")).kind, "failed");
  one.stop();
  flood.stop();
});

test("a malformed answer is a failure, not an absence", async () => {
  const server = await scriptedServer((query) => [answerTo(query).subarray(0, -2)]);
  assert.deepEqual(await resolverOf({ servers: [server.address] }).a("example.com"), {
    kind: "failed",
    reason: "bad answer",
  });
  server.stop();
});

test("a server that does not know EDNS is asked again without it", async () => {
  const server = await scriptedServer((query) =>
    query.additionals!.length > 0 ? [answerTo(query, { flags: 0x181, answers: [] })] : [answerTo(query)],
  );
  const answer = await resolverOf({ servers: [server.address] }).a("example.com");
  assert.equal(answer.kind, "found");
  server.stop();
});

test("a referral says nothing about the name", async () => {
  const authorities = [{ name: "com", type: "NS", ttl: 60, data: "a.gtld-servers.net" }];
  const server = await scriptedServer((query) => [answerTo(query, { answers: [], authorities })]);
  assert.deepEqual(await resolverOf({ servers: [server.address] }).a("example.com"), {
    kind: "failed",
    reason: "referral",
  });
  server.stop();
});

test("aliases are followed in the answer and by asking again, up to eight", async () => {
  for (let step = 0; step < 8; step += 1) dns.set(`c${step}.example.com`, "CNAME", [`c${step + 1}.example.com`]);
  dns.set("c8.example.com", "TXT", ["end"]);
  dns.set("c-1.example.com", "CNAME", ["c0.example.com"]);
  const answer = await resolverOf().txt("c0.example.com");
  assert.deepEqual(answer.kind === "found" && answer.records, ["end"]);
  assert.deepEqual(await resolverOf().txt("c-1.example.com"), { kind: "failed", reason: "too many aliases" });
  const stepwise = await scriptedServer((query) => {
    const { name } = query.questions![0]!;
    const next = { name, type: "CNAME", ttl: 60, data: "target.example.com" };
    return [name === "target.example.com" ? answerTo(query) : answerTo(query, { answers: [next] })];
  });
  assert.equal((await resolverOf({ servers: [stepwise.address] }).a("example.com")).kind, "found");
  stepwise.stop();
});

test("aliases that run in a circle end as a failure after one question", async () => {
  dns.set("a.example.com", "CNAME", ["b.example.com"]);
  dns.set("b.example.com", "CNAME", ["a.example.com"]);
  dns.set("self.example.com", "CNAME", ["self.example.com"]);
  const resolver = resolverOf();
  assert.deepEqual(await resolver.a("a.example.com"), { kind: "failed", reason: "the aliases run in a circle" });
  assert.equal(dns.queries.length, 1);
  assert.deepEqual(await resolver.a("self.example.com"), { kind: "failed", reason: "the aliases run in a circle" });
});

test("an endless chain that the server makes up as it is asked ends after nine questions", async () => {
  let count = 0;
  const server = await scriptedServer((query) => {
    count += 1;
    const data = `n${count}.example.com`;
    return [answerTo(query, { answers: [{ name: query.questions![0]!.name, type: "CNAME", ttl: 0, data }] })];
  });
  assert.deepEqual(await resolverOf({ servers: [server.address] }).a("example.com"), {
    kind: "failed",
    reason: "too many aliases",
  });
  assert.equal(count, 9);
  server.stop();
});

test("an alias to nowhere is nxdomain, an alias to a name without the type is nodata", async () => {
  dns.set("gone.example.com", "CNAME", ["nowhere.example.com"]);
  dns.set("bare.example.com", "CNAME", ["host.example.com"]);
  dns.set("host.example.com", "A", ["192.0.2.1"]);
  const resolver = resolverOf();
  assert.deepEqual(await resolver.a("gone.example.com"), { kind: "absent", reason: "nxdomain" });
  assert.deepEqual(await resolver.mx("bare.example.com"), { kind: "absent", reason: "nodata" });
});

test("records for other names in the answer are not taken", async () => {
  const answers = [{ name: "evil.example.com", type: "A", ttl: 60, data: "192.0.2.66" }];
  const server = await scriptedServer((query) => [answerTo(query, { answers })]);
  assert.deepEqual(await resolverOf({ servers: [server.address] }).a("example.com"), {
    kind: "absent",
    reason: "nodata",
  });
  server.stop();
});

test("an answer is kept for its TTL, at most five minutes, and says how long it still holds", async () => {
  dns.set("example.com", "A", ["192.0.2.1"], 30);
  dns.set("long.example.com", "A", ["192.0.2.2"], 86_400);
  const resolver = resolverOf();
  await resolver.a("example.com");
  nowMs += 20_000;
  const kept = await resolver.a("example.com");
  assert.equal(kept.kind === "found" && kept.ttl_s, 10);
  assert.equal(dns.queries.length, 1);
  nowMs += 10_000;
  await resolver.a("example.com");
  assert.equal(dns.queries.length, 2);
  await resolver.a("long.example.com");
  nowMs += 299_000;
  await resolver.a("long.example.com");
  assert.equal(dns.queries.length, 3);
  nowMs += 1_000;
  await resolver.a("long.example.com");
  assert.equal(dns.queries.length, 4);
});

test("the shortest TTL of a chain counts", async () => {
  dns.set("a.example.com", "CNAME", ["b.example.com"], 5);
  dns.set("b.example.com", "A", ["192.0.2.1"], 100);
  const answer = await resolverOf().a("a.example.com");
  assert.equal(answer.kind === "found" && answer.ttl_s, 5);
});

test("TTL 0 is asked each time; a fresh question passes the cache by and renews it", async () => {
  dns.set("zero.example.com", "A", ["192.0.2.1"]);
  dns.set("example.com", "A", ["192.0.2.1"], 300);
  const resolver = resolverOf();
  await resolver.a("zero.example.com");
  await resolver.a("zero.example.com");
  assert.equal(dns.queries.length, 2);
  await resolver.a("example.com");
  dns.set("example.com", "A", ["192.0.2.9"], 300);
  const fresh = await resolver.a("example.com", { fresh: true });
  assert.deepEqual(fresh.kind === "found" && fresh.records, ["192.0.2.9"]);
  const kept = await resolver.a("example.com");
  assert.deepEqual(kept.kind === "found" && kept.records, ["192.0.2.9"]);
});

test("absence is kept for the SOA's minimum, at most a minute, and not at all without a SOA; failures never", async () => {
  const soa = (minimum: number) => [{ mname: "ns.example.com", rname: "root.example.com", serial: 1, minimum }];
  dns.set("example.com", "SOA", soa(20), 3_600);
  dns.set("example.org", "SOA", soa(9_000), 9_000);
  const resolver = resolverOf();
  for (const [name, keptMs] of [
    ["x.example.com", 20_000],
    ["x.example.org", 60_000],
  ] as const) {
    dns.queries.length = 0;
    await resolver.a(name);
    nowMs += keptMs - 1;
    assert.equal((await resolver.a(name)).kind, "absent");
    assert.equal(dns.queries.length, 1);
    nowMs += 1;
    await resolver.a(name);
    assert.equal(dns.queries.length, 2);
  }
  dns.fail("example.net", "servfail");
  await resolver.a("example.net");
  dns.heal("example.net");
  dns.set("example.net", "A", ["192.0.2.1"]);
  assert.equal((await resolver.a("example.net")).kind, "found");
  const bare = await scriptedServer((query) => [answerTo(query, { answers: [] })]);
  const other = resolverOf({ servers: [bare.address] });
  await other.a("example.com");
  await other.a("example.com");
  assert.equal(bare.seen.length, 2);
  bare.stop();
});

test("the cache forgets what was used longest ago", async () => {
  for (const name of ["a", "b", "c"]) dns.set(`${name}.example.com`, "A", ["192.0.2.1"], 300);
  const resolver = resolverOf({ cache_max: 2 });
  for (const name of ["a", "b", "a", "c", "a"]) await resolver.a(`${name}.example.com`);
  assert.deepEqual(
    dns.queries.map((query) => query.name[0]),
    ["a", "b", "c"],
  );
  await resolver.a("b.example.com");
  assert.equal(dns.queries.length, 4);
});

test("a large answer is given but not kept", async () => {
  dns.set("example.com", "TXT", new Array(30).fill("x".repeat(200)), 300);
  const resolver = resolverOf();
  assert.equal((await resolver.txt("example.com")).kind, "found");
  dns.queries.length = 0;
  await resolver.txt("example.com");
  assert.notEqual(dns.queries.length, 0);
});

test("the same question asked by many at once goes out once", async () => {
  dns.set("example.com", "A", ["192.0.2.1"]);
  const resolver = resolverOf();
  const answers = await Promise.all(Array.from({ length: 500 }, () => resolver.a("example.com")));
  assert.ok(answers.every((answer) => answer.kind === "found"));
  assert.equal(dns.queries.length, 1);
});

test("thousands of questions at once are all answered", async () => {
  dns.set("*.example.com", "A", ["192.0.2.1"]);
  const resolver = resolverOf({ timeout_ms: 5_000 });
  const answers = await Promise.all(Array.from({ length: 3_000 }, (_, index) => resolver.a(`n${index}.example.com`)));
  assert.equal(answers.filter((answer) => answer.kind === "found").length, 3_000);
});

test("thousands of questions to a silent server all end in the time of one", async () => {
  dns.set("*.example.com", "A", ["192.0.2.1"]);
  const silent = await scriptedServer(() => []);
  const resolver = resolverOf({ servers: [silent.address], timeout_ms: 200, attempts: 2 });
  const started = performance.now();
  const answers = await Promise.all(Array.from({ length: 2_000 }, (_, index) => resolver.a(`n${index}.example.com`)));
  const took = performance.now() - started;
  assert.ok(answers.every((answer) => answer.kind === "failed" && answer.reason === "timeout"));
  assert.ok(took < 20_000, `took ${took} ms`);
  silent.stop();
});

test("the AD bit counts only from servers that are set as validating, and for the whole chain", async () => {
  dns.set("example.com", "TLSA", [{ usage: 3, selector: 1, matching_type: 1, data: "00".repeat(32) }]);
  dns.authenticated = true;
  const believed = async (validating: boolean) => {
    const answer = await resolverOf({ validating }).tlsa("example.com");
    return answer.kind === "found" && answer.authenticated;
  };
  assert.equal(await believed(false), false);
  assert.equal(await believed(true), true);
  dns.authenticated = false;
  assert.equal(await believed(true), false);
  const eager = await scriptedServer((query) => [answerTo(query, { flags: 0x1a0 })]);
  for (const validating of [false, true]) {
    const answer = await resolverOf({ servers: [eager.address], validating }).a("example.com");
    assert.equal(answer.kind === "found" && answer.authenticated, validating);
  }
  eager.stop();
});

test("international names are asked in their ASCII form", async () => {
  dns.set("xn--bcher-kva.example", "A", ["192.0.2.1"]);
  assert.equal((await resolverOf().a("Bücher.example")).kind, "found");
});

test("what cannot be a name in the DNS is not there, and no server is asked", async () => {
  const resolver = resolverOf();
  const names = [
    "",
    ".",
    "..",
    "a..b",
    `${"x".repeat(64)}.com`,
    `${"abcdefg.".repeat(32)}com`,
    "a\r\nb.com",
    "a\\.b",
    "a\0b",
  ];
  for (const name of names) assert.deepEqual(await resolver.a(name), { kind: "absent", reason: "nxdomain" }, name);
  assert.deepEqual(await resolver.ptr("no address"), { kind: "absent", reason: "nxdomain" });
  assert.equal(dns.queries.length, 0);
});

test("names of object properties are names like any other", async () => {
  const resolver = resolverOf();
  for (const name of ["constructor", "__proto__", "tostring"]) {
    assert.deepEqual(await resolver.a(name), { kind: "absent", reason: "nxdomain" });
  }
});

/** What a look-up gave, or the code it threw. */
async function outcome(ask: () => Promise<unknown>): Promise<unknown> {
  try {
    return await ask();
  } catch (error) {
    return (error as { code: string }).code;
  }
}

test("the adapter gives what Node's own resolver gives: the same shapes and the same codes", async () => {
  dns.set("example.com", "TXT", ["v=spf1 -all"]);
  dns.set("example.com", "MX", [{ exchange: "mx.example.com", preference: 5 }]);
  dns.set("null.example.com", "MX", [{ exchange: ".", preference: 0 }]);
  dns.set("example.com", "A", ["192.0.2.1"]);
  dns.set("example.com", "AAAA", ["2001:db8::1"]);
  dns.set("alias.example.com", "CNAME", ["example.com"]);
  dns.set("192.0.2.1", "PTR", ["host.example.com"]);
  dns.set("2001:db8::1", "PTR", ["host.example.com"]);
  dns.fail("bad.example.com", "servfail");
  dns.fail("no.example.com", "refused");
  dns.fail("slow.example.com", "timeout");
  const nodeOf = (timeout: number) => {
    const node = new nodeDns.Resolver({ timeout, tries: 1 });
    node.setServers([dns.address]);
    return (name: string, type: string) => node.resolve(name, type);
  };
  const [usual, soon] = [3_000, 150].map((timeout_ms) => ({
    node: nodeOf(timeout_ms),
    ours: nodeStyleResolver(resolverOf({ timeout_ms })),
  }));
  const { ours } = usual!;
  const v6 = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
  const questions: [string, string][] = [
    ...["TXT", "MX", "A", "AAAA", "CNAME"].map((type): [string, string] => ["example.com", type]),
    ...["A", "AAAA", "CNAME", "TXT"].map((type): [string, string] => ["alias.example.com", type]),
    ["null.example.com", "MX"],
    ["1.2.0.192.in-addr.arpa", "PTR"],
    [v6, "PTR"],
    ["9.2.0.192.in-addr.arpa", "PTR"],
    ["unknown.example.com", "A"],
    ["bad.example.com", "A"],
    ["no.example.com", "TXT"],
    ["slow.example.com", "MX"],
  ];
  for (const [name, type] of questions) {
    const both = (name.startsWith("slow.") ? soon : usual)!;
    const want = await outcome(() => both.node(name, type));
    const got = await outcome(() => both.ours(name, type));
    assert.deepEqual(plain(got), plain(want), `${name} ${type}`);
  }
  assert.equal(await outcome(() => ours("example.com", "SRV")), "EBADQUERY");
});

// Node's records may have further fields, such as the type; only ours are compared, whatever their order.
function plain(value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  return value.map((record) => {
    if (typeof record !== "object" || !("exchange" in record)) return record;
    return { exchange: record.exchange, priority: record.priority };
  });
}
