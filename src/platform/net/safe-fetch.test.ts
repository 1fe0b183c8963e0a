import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer as createTcpServer, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, mock, test } from "node:test";
import { createServer, getCACertificates, setDefaultCACertificates, type TLSSocket, type TlsOptions } from "node:tls";
import { gzipSync } from "node:zlib";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { type CertificateAuthority, makeCertificateAuthority } from "../../../test/support/tls.ts";
import { startWebhookSink, type WebhookSink } from "../../../test/support/webhook-sink.ts";
import { sleep } from "../clock.ts";
import { createResolver, type Resolver } from "../dns/resolver.ts";
import type { Inside } from "./addresses.ts";
import {
  checkUrl,
  createSafeFetch,
  type FetchRequest,
  type FetchResult,
  failureText,
  type SafeFetch,
} from "./safe-fetch.ts";

const PUBLIC = "93.184.216.34";
const dir = mkdtempSync(join(tmpdir(), "safe-fetch-"));
let authority: CertificateAuthority;
let dns: DnsServer;
let sink: WebhookSink;
let resolver: Resolver;
const fetchers: SafeFetch[] = [];

// Every connection of this process is written down, and none leaves this machine.
const dialled: string[] = [];
const { connect } = Socket.prototype;
mock.method(Socket.prototype, "connect", function (this: Socket, ...args: unknown[]) {
  const target = (Array.isArray(args[0]) ? args[0][0] : args[0]) as { host: string };
  dialled.push(target.host);
  if (target.host === "127.0.0.1" || target.host === "::1")
    return (connect as (...all: unknown[]) => Socket).apply(this, args);
  process.nextTick(() => this.destroy(Object.assign(new Error("denied in tests"), { code: "EHOSTUNREACH" })));
  return this;
});

before(async () => {
  authority = makeCertificateAuthority(dir);
  setDefaultCACertificates([...getCACertificates("default"), authority.ca]);
  dns = await startDnsServer();
  sink = await startWebhookSink({ tls: authority.issue(["localhost", "hooks.example.com", "127.0.0.1"]) });
  const options = { servers: [dns.address], timeout_ms: 500, attempts: 1, cache_max: 100, validating: false };
  resolver = createResolver({ ...options, now: () => performance.now() });
});
beforeEach(() => {
  dns.clear();
  sink.respond(() => ({ status: 200 }));
  sink.requests.length = 0;
});
afterEach(async () => {
  await Promise.all(fetchers.splice(0).map((fetcher) => fetcher.close()));
  dialled.length = 0;
});
after(async () => {
  await Promise.all([dns.stop(), sink.stop()]);
  rmSync(dir, { recursive: true });
});

function fetcher(options: { inside?: Inside; resolver?: Pick<Resolver, "a" | "aaaa"> } = {}): SafeFetch {
  const made = createSafeFetch({ resolver, inside: { loopback: true }, ...options });
  fetchers.push(made);
  return made;
}

function post(url: string, more: Partial<FetchRequest> = {}): FetchRequest {
  const headers = { "content-type": "application/json" };
  return { method: "POST", url, headers, body: "{}", timeout_ms: 2_000, response_bytes_max: 4_096, ...more };
}

function failureCode(result: FetchResult): string {
  return result.kind === "failed" ? result.code : `answered ${result.status}`;
}

/** A TLS server that hands each connection, once a request has begun to arrive, to `speak`. */
async function rawServer(speak: (socket: TLSSocket) => void, tls: TlsOptions = authority.issue(["localhost"])) {
  const sockets = new Set<TLSSocket>();
  const server = createServer(tls, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", () => speak(socket));
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  };
  return { url: `https://localhost:${(server.address() as AddressInfo).port}/`, stop };
}

// --- the way through -------------------------------------------------------------------------------------------------

test("a request arrives with its method, path, headers and exact bytes, and the answer comes back", async () => {
  dns.set("hooks.example.com", "A", ["127.0.0.1"]);
  sink.respond(() => ({ status: 202, headers: { "X-Kind": "test" }, body: "thanks" }));
  const body = Buffer.from('{"text":"\u2028 ü 🙂"}');
  const result = await fetcher()(post(`https://hooks.example.com:${sink.port}/a/b?c=d`, { body }));
  assert.ok(result.kind === "answered");
  assert.equal(result.status, 202);
  assert.equal(result.headers.get("x-kind"), "test");
  assert.equal(result.body.toString(), "thanks");
  const [request] = sink.requests;
  assert.deepEqual([request?.method, request?.path, request?.body], ["POST", "/a/b?c=d", body]);
  assert.equal(request?.headers.host, `hooks.example.com:${sink.port}`);
});

test("each header is sent exactly once, and no compression is offered", async () => {
  await fetcher()(post(sink.url));
  const names = sink.requests[0]!.raw_headers.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  assert.deepEqual(names.toSorted(), ["connection", "content-length", "content-type", "host"]);
});

test("requests to one origin, one after the other, share connections", async () => {
  const fetch = fetcher();
  const before = sink.connections();
  for (let count = 0; count < 20; count += 1) assert.equal((await fetch(post(sink.url))).kind, "answered");
  // undici may open a second one while it still tidies up after the first answer.
  assert.ok(sink.connections() - before <= 2, `${sink.connections() - before} connections`);
});

test("the second address is tried when the first does not answer", async () => {
  const answering = { a: async () => found([PUBLIC, "127.0.0.1"]), aaaa: async () => nothing };
  const result = await fetcher({ resolver: answering })(post(`https://hooks.example.com:${sink.port}/`));
  assert.equal(result.kind, "answered");
  assert.deepEqual(dialled, [PUBLIC, "127.0.0.1"]);
});

const nothing = { kind: "absent", reason: "nodata" } as const;
const found = (records: string[]) => ({ kind: "found" as const, records, ttl_s: 0, authenticated: false });

// --- where it must not go --------------------------------------------------------------------------------------------

const FORBIDDEN_HOSTS = [
  ...["127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001"],
  ...["2130706433", "①②⑦.0.0.1", "１２７.０.０.１", "127。0。0。1", "%31%32%37.0.0.1", "127.0.0.1.", "0", "0.0.0.0"],
  ...["localhost", "LOCALHOST", "localhost.", "x.localhost", "localhost.localdomain"],
  ...["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "169.254.169.254", "2852039166"],
  ...["0xa9fea9fe", "168.63.129.16", "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255"],
  ...["[::1]", "[::]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[64:ff9b::7f00:1]"],
  ...["[2002:7f00:1::]", "[2001::1]", "[fd00::1]", "[fe80::1]", "[fd00:ec2::254]", "[ff02::1]", "[2001:db8::1]"],
];

test("no spelling of an internal address is accepted as a URL or connected to", async () => {
  const fetch = fetcher({ inside: { loopback: false } });
  const before = sink.connections();
  for (const host of FORBIDDEN_HOSTS) {
    const url = `https://${host}:${sink.port}/`;
    assert.match(checkUrl(url, { loopback: false }) ?? "accepted", /private|internal/, url);
    assert.equal(failureCode(await fetch(post(url))), "blocked", url);
  }
  assert.deepEqual(dialled, []);
  assert.equal(sink.connections(), before);
  assert.ok(FORBIDDEN_HOSTS.length >= 40);
});

test("a network that the operator allows is reached by requests to customers' receivers only", async () => {
  const inside = { loopback: false, networks: ["127.0.0.0/30"] };
  const fetch = fetcher({ inside });
  dns.set("hooks.example.com", "A", ["127.0.0.1"]);
  const [within, beside] = [`https://hooks.example.com:${sink.port}/`, `https://127.0.0.9:${sink.port}/`];
  assert.equal(failureCode(await fetch(post(within, { to_customer: true }))), "answered 200");
  assert.equal(failureCode(await fetch(post(within))), "blocked", "connections are not shared either");
  assert.equal(failureCode(await fetch(post(beside, { to_customer: true }))), "blocked");
  assert.deepEqual([checkUrl(`https://127.0.0.1/`, inside), checkUrl(beside, inside) === null], [null, false]);
});

test("no name that resolves to an internal address is connected to, over A, AAAA or an alias", async () => {
  const internal = [
    "127.0.0.1",
    "10.0.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.168.0.1",
    "0.0.0.0",
    "168.63.129.16",
  ];
  const internal6 = [
    "::1",
    "::",
    "fd00::1",
    "fe80::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "::7f00:1",
  ];
  const names: string[] = [];
  const add = (type: string, address: string) => {
    const name = `n${names.push(type)}.example.com`;
    dns.set(name, type, [address]);
    dns.set(`alias-${name}`, "CNAME", [name]);
    return [name, `alias-${name}`];
  };
  const urls = [...internal.map((ip) => add("A", ip)), ...internal6.map((ip) => add("AAAA", ip))].flat();
  const fetch = fetcher({ inside: { loopback: false } });
  for (const name of urls)
    assert.equal(failureCode(await fetch(post(`https://${name}:${sink.port}/`))), "blocked", name);
  assert.deepEqual(dialled, []);
});

test("one internal address among public ones blocks the name", async () => {
  dns.set("mixed.example.com", "A", [PUBLIC, "127.0.0.1"]);
  dns.set("six.example.com", "A", [PUBLIC]);
  dns.set("six.example.com", "AAAA", ["fd00::1"]);
  const fetch = fetcher({ inside: { loopback: false } });
  for (const host of ["mixed", "six"]) {
    assert.equal(failureCode(await fetch(post(`https://${host}.example.com/`))), "blocked");
  }
  assert.deepEqual(dialled, []);
});

test("a name that flips between a public and a loopback address is never connected to on the inside", async () => {
  let asked = 0;
  const flipping = {
    a: async () => found([asked++ % 2 === 0 ? PUBLIC : "127.0.0.1"]),
    aaaa: async () => nothing,
  };
  const fetch = fetcher({ inside: { loopback: false }, resolver: flipping });
  const codes = new Map<string, number>();
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const code = failureCode(await fetch(post(`https://rebind.example.com:${sink.port}/`)));
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  assert.deepEqual(new Set(dialled), new Set([PUBLIC]));
  assert.equal(sink.requests.length, 0);
  assert.deepEqual(
    codes,
    new Map([
      ["connect", 100],
      ["blocked", 100],
    ]),
  );
});

test("the same flip through the real resolver and a TTL of 0", async () => {
  const fetch = fetcher({ inside: { loopback: false } });
  for (let attempt = 0; attempt < 20; attempt += 1) {
    dns.set("rebind.example.com", "A", [attempt % 2 === 0 ? PUBLIC : "127.0.0.1"]);
    const result = await fetch(post(`https://rebind.example.com:${sink.port}/`));
    assert.equal(failureCode(result), attempt % 2 === 0 ? "connect" : "blocked");
  }
  assert.deepEqual(new Set(dialled), new Set([PUBLIC]));
});

test("leave for loopback is leave for loopback only", async () => {
  const fetch = fetcher({ inside: { loopback: true } });
  for (const host of ["10.0.0.1", "169.254.169.254", "192.168.0.1", "[fd00::1]", "0.0.0.0", "[::ffff:127.0.0.1]"]) {
    assert.equal(failureCode(await fetch(post(`https://${host}:${sink.port}/`))), "blocked", host);
  }
  assert.equal((await fetch(post(`https://127.1:${sink.port}/`))).kind, "answered");
});

test("a redirect is an answer like any other and is not followed", async () => {
  for (const status of [301, 302, 303, 307, 308]) {
    sink.respond(() => ({ status, headers: { location: `${sink.url}/inside` } }));
    const result = await fetcher()(post(sink.url));
    assert.equal(failureCode(result), `answered ${status}`);
  }
  assert.deepEqual(
    sink.requests.map((request) => request.path),
    new Array(5).fill("/"),
  );
});

test("URLs are checked before anything is asked or sent", () => {
  const good = [
    "https://example.com",
    "https://example.com:8443/a?b=c#d",
    "https://8.8.8.8/",
    "https://bücher.example/",
    "https://[2606:4700::1111]/",
  ];
  for (const url of good) assert.equal(checkUrl(url, { loopback: false }), null, url);
  const bad: [string, RegExp][] = [
    ["http://example.com/", /https/],
    ["ftp://example.com/", /https/],
    ["file:///etc/passwd", /https/],
    ["https:example.com", /https:\/\//],
    ["https:/example.com/", /https:\/\//],
    ["https:\\\\example.com\\", /https:\/\//],
    ["https:///example.com/", /https:\/\//],
    ["example.com", /not a URL/],
    ["", /not a URL/],
    ["https://", /not a URL/],
    ["https://1.2.3.4.5/", /not a URL/],
    ["https://user:pass@example.com/", /user name/],
    ["https://127.0.0.1@example.com/", /user name/],
    ["https://example.com:25/", /Port 25/],
    ["https://example.com:6379/", /Port 6379/],
    ["https://redis/", /full domain name/],
    [`https://${"a.".repeat(130)}example/`, /full domain name/],
    ["https://exa\nmple.com/", /control characters/],
    [" https://example.com/", /spaces/],
    [`https://example.com/${"x".repeat(2_048)}`, /longer than 2048/],
  ];
  for (const [url, sentence] of bad) assert.match(checkUrl(url, { loopback: true }) ?? "accepted", sentence, url);
});

// --- what it must not bear -------------------------------------------------------------------------------------------

test("a slow drip of header or body ends at the time limit", async () => {
  const head = "HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n";
  for (const start of ["", "HTTP/1.1 200 OK\r\nX: ", head]) {
    const server = await rawServer((socket) => {
      socket.write(start);
      const drip = setInterval(() => socket.write("x"), 20);
      socket.on("close", () => clearInterval(drip));
    });
    const result = await fetcher()(post(server.url, { timeout_ms: 300 }));
    // The first bytes of a drip without a head are no HTTP at all, which may be noticed sooner.
    assert.match(failureCode(result), start === "" ? /timeout|protocol/ : /timeout/);
    assert.ok(result.duration_ms < 10_000, `took ${result.duration_ms} ms`);
    await server.stop();
  }
});

test("endless bodies and headers end early, without filling the memory", async () => {
  const block = Buffer.alloc(65_536, "x: y\r\n");
  const heads = [
    "HTTP/1.1 200 OK\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000\r\n",
    "HTTP/1.1 200 OK\r\n",
  ];
  const codes: string[] = [];
  const before = process.memoryUsage().rss;
  for (const head of heads) {
    const server = await rawServer((socket) => {
      socket.write(head);
      const pour = () => {
        while (socket.writable && socket.write(block)) {}
      };
      socket.on("drain", pour);
      pour();
    });
    const result = await fetcher()(post(server.url, { timeout_ms: 20_000 }));
    codes.push(failureCode(result));
    assert.ok(result.duration_ms < 10_000, `took ${result.duration_ms} ms`);
    await server.stop();
  }
  assert.deepEqual(codes, ["too_large", "too_large", "too_large"]);
  assert.ok(process.memoryUsage().rss - before < 50e6);
});

test("a stream of interim answers ends at the time limit", async () => {
  const server = await rawServer((socket) => {
    const interim = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), 10);
    socket.on("close", () => clearInterval(interim));
  });
  assert.equal(failureCode(await fetcher()(post(server.url, { timeout_ms: 300 }))), "timeout");
  await server.stop();
});

test("a body of exactly the limit is answered; one byte more is too large, or cut when the caller says so", async () => {
  sink.respond(() => ({ status: 200, body: "x".repeat(100) }));
  const fetch = fetcher();
  const whole = await fetch(post(sink.url, { response_bytes_max: 100 }));
  assert.equal(whole.kind === "answered" && whole.body.length, 100);
  assert.equal(failureCode(await fetch(post(sink.url, { response_bytes_max: 99 }))), "too_large");
  const cut = await fetch(post(sink.url, { response_bytes_max: 99, when_cut_short: "keep" }));
  assert.equal(cut.kind === "answered" && cut.body.length, 99);
});

test("a body that breaks off or never ends is no answer, or the status is when the caller says so", async () => {
  for (const [code, breaksOff] of [
    ["protocol", true],
    ["timeout", false],
  ] as const) {
    const server = await rawServer((socket) => {
      socket.write("HTTP/1.1 410 Gone\r\nContent-Length: 9\r\n\r\npart");
      if (breaksOff) socket.end();
    });
    const asked = post(server.url, { timeout_ms: 300 });
    assert.equal(failureCode(await fetcher()(asked)), code);
    const kept = await fetcher()({ ...asked, when_cut_short: "keep" });
    assert.deepEqual(kept.kind === "answered" && [kept.status, String(kept.body)], [410, "part"], code);
    await server.stop();
  }
});

test("a compressed body is handed over as it is", async () => {
  const bomb = gzipSync(Buffer.alloc(10_000_000));
  sink.respond(() => ({ status: 200, headers: { "content-encoding": "gzip, gzip" }, body: bomb }));
  const result = await fetcher()(post(sink.url, { response_bytes_max: 100_000 }));
  assert.deepEqual(result.kind === "answered" && result.body, bomb);
});

test("a server that never answers, and a slow look-up, end at the time limit", async () => {
  const silent = await rawServer(() => {});
  const after = await fetcher()(post(silent.url, { timeout_ms: 200 }));
  assert.deepEqual([failureCode(after), after.duration_ms < 10_000], ["timeout", true]);
  await silent.stop();
  const hurry = new AbortController();
  const slowDns = { a: () => sleep(20_000, hurry.signal).then(() => nothing), aaaa: async () => nothing };
  const before = await fetcher({ resolver: slowDns })(post("https://slow.example.com/", { timeout_ms: 200 }));
  hurry.abort();
  assert.deepEqual([failureCode(before), before.duration_ms < 10_000], ["timeout", true]);
});

test("a server that never begins TLS ends at the time limit, and closing ends the connection itself", async () => {
  const server = createTcpServer((socket) => socket.on("error", () => {}).resume()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const port = (server.address() as AddressInfo).port;
  const fetch = fetcher();
  const result = await fetch(post(`https://localhost:${port}/`, { timeout_ms: 200 }));
  assert.deepEqual([failureCode(result), result.duration_ms < 5_000], ["timeout", true]);
  const started = performance.now();
  server.close();
  await Promise.all([fetch.close(), once(server, "close")]);
  assert.ok(performance.now() - started < 10_000);
  assert.deepEqual(dialled, ["127.0.0.1"]);
});

test("once closed, nobody is asked any more, a request that was begun just before included", async () => {
  const fetch = fetcher();
  const begun = fetch(post(`${sink.url}/`));
  await fetch.close();
  assert.deepEqual(
    [failureCode(await begun), failureCode(await fetch(post(`${sink.url}/`)))],
    ["protocol", "protocol"],
  );
  assert.deepEqual(dialled, []);
});

test("what is not HTTP, and a connection that just ends, are failures of the protocol", async () => {
  for (const text of [
    "SSH-2.0-OpenSSH_9\r\n",
    "HTTP/1.1 OK\r\n\r\n",
    "",
    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
  ]) {
    const server = await rawServer((socket) => socket.end(text));
    const result = await fetcher()(post(server.url));
    assert.equal(failureCode(result), "protocol", text);
    assert.ok(result.kind === "failed" && /^[ -~]+$/.test(result.reason));
    await server.stop();
  }
});

// --- TLS and DNS -----------------------------------------------------------------------------------------------------

test("expired, foreign and wrongly named certificates and old TLS are refused, and no request is sent", async () => {
  const stranger = makeCertificateAuthority(mkdtempSync(join(dir, "other-")));
  const cases: TlsOptions[] = [
    authority.issue(["localhost"], { from_days: -20, until_days: -1 }),
    authority.issue(["localhost"], { from_days: 2, until_days: 9 }),
    stranger.issue(["localhost"]),
    authority.issue(["other.example.com"]),
    { ...authority.issue(["localhost"]), minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" },
  ];
  for (const [index, tls] of cases.entries()) {
    let spoken = false;
    const server = await rawServer(() => {
      spoken = true;
    }, tls);
    assert.equal(failureCode(await fetcher()(post(server.url))), "tls", `case ${index}`);
    assert.equal(spoken, false);
    await server.stop();
  }
});

test("a name that is not there and one that leads inside are shown in the same words, one that fails to be looked up is not", async () => {
  dns.set("empty.example.com", "TXT", ["x"]);
  dns.set("inside.example.com", "A", ["10.0.0.7"]);
  dns.set("alias.example.com", "CNAME", ["inside.example.com"]);
  dns.fail("broken.example.com", "servfail");
  const fetch = fetcher();
  const words = new Map<string, string>();
  for (const name of ["missing", "empty", "inside", "alias", "broken"]) {
    const result = await fetch(post(`https://${name}.example.com/`));
    words.set(name, result.kind === "failed" ? failureText(result) : "");
  }
  const absent = "dns: the host has no address on the public internet";
  assert.deepEqual(Object.fromEntries(words), {
    missing: absent,
    empty: absent,
    inside: absent,
    alias: absent,
    broken: "dns: the host could not be looked up: servfail",
  });
});

test("a closed port is a failure to connect", async () => {
  const server = await rawServer(() => {});
  await server.stop();
  assert.equal(failureCode(await fetcher()(post(server.url))), "connect");
});
