// Opening a session over real sockets against scripted servers: greeting, EHLO, limits on what a server may send.
import assert from "node:assert/strict";
import { type AddressInfo, createServer } from "node:net";
import { afterEach, test } from "node:test";
import { greet, type Peer } from "./scripted-server.fixture.ts";
import { closeOpened, failed, opened, openedWith, type Script } from "./scripted-session.fixture.ts";
import { openSession } from "./session.ts";

afterEach(closeOpened);

const hostile: [string, Script, RegExp][] = [
  ["an endless line", (peer) => flood(peer, "220 ", "A".repeat(1000)), /longer than 2048/],
  ["a line one byte too long", (peer) => peer.say(`220 ${"A".repeat(2043)}`), /longer than 2048/],
  ["a reply of endless lines", (peer) => flood(peer, "", "220-hello\r\n"), /more than 100 lines/],
  ["a reply over 64 KiB", (peer) => flood(peer, "", `220-${"A".repeat(2000)}\r\n`), /larger than 65536/],
  ["no reply at all but HTTP", (peer) => peer.say("HTTP/1.1 400 Bad Request"), /not an SMTP reply/],
  ["an impossible code", (peer) => peer.say("199 hello"), /not an SMTP reply/],
  ["a code of four digits", (peer) => peer.say("2200 hello"), /not an SMTP reply/],
  ["nothing at all", () => {}, /no reply within 300 ms/],
  ["one byte at a time", (peer) => drip(peer), /no reply within 300 ms/],
  ["silence and the end", (peer) => peer.drop(), /closed|ECONNRESET/],
];
function flood(peer: Peer, start: string, piece: string): void {
  peer.raw(start);
  const timer = setInterval(() => peer.raw(piece.repeat(50)), 1);
  peer.gone().then(() => clearInterval(timer));
}
function drip(peer: Peer): void {
  let at = 0;
  const timer = setInterval(() => peer.raw("220-never ending greeting"[at++ % 20] ?? "x"), 20);
  peer.gone().then(() => clearInterval(timer));
}
for (const [what, script, detail] of hostile) {
  test(`a server that greets with ${what} gets no session`, async () => {
    const greeting_ms = detail.source.includes("300 ms") ? 300 : 10_000;
    const failure = await failed({ timeouts: { greeting_ms } }, script);
    assert.equal(failure.stage, "banner");
    assert.match(failure.detail, detail);
    assert.equal(failure.reply, null);
  });
}

test("a server that refuses connections, and a local address that is not there, are shown in words with their code", async () => {
  const port = await new Promise<number>((done) => {
    const gone = createServer().listen(0, "127.0.0.1", () => {
      const { port } = gone.address() as AddressInfo;
      gone.close(() => done(port));
    });
  });
  const dial = { address: "127.0.0.1", host: "mx.test", ehlo_name: "us.test", tls: { mode: "none" } } as const;
  for (const [change, words] of [
    [{}, "the server refuses connections (ECONNREFUSED)"],
    [
      { local_address: "192.0.2.1" },
      "this machine does not have the address that the mail is to leave from (EADDRNOTAVAIL)",
    ],
  ] as const) {
    const failure = await openSession({ ...dial, port, ...change });
    assert.ok(failure.kind === "failed");
    assert.deepEqual([failure.stage, failure.cause, failure.detail], ["connect", "network", words]);
  }
});

test("a line of exactly 2,048 bytes and a reply of exactly 100 lines are read", async () => {
  const session = await opened(async (peer) => {
    peer.say(`220 ${"A".repeat(2042)}`);
    await peer.line();
    peer.say(...Array.from({ length: 99 }, (_, index) => `250-X${index}`), "250 PIPELINING");
  });
  assert.equal(session.capabilities.pipelining, true);
  assert.equal(session.banner.text.length, 1000);
});

test("a greeting that refuses is reported with its reply", async () => {
  const failure = await failed({}, (peer) => peer.say("554-5.7.1 blocked by \xe9\x1b[31m", "554 5.7.1 list"));
  assert.equal(failure.cause, "refused");
  assert.deepEqual([failure.stage, failure.reply?.code, failure.reply?.enhanced], ["banner", 554, "5.7.1"]);
  assert.match(failure.reply?.text ?? "", /^blocked by .*\\x1b\[31m list$/);
});

test("a server that does not know EHLO is greeted with HELO and has no extensions", async () => {
  const session = await opened(async (peer) => {
    peer.say("220 old");
    await peer.line();
    peer.say("502 what?");
    assert.equal(await peer.line(), "HELO out.example.com");
    peer.say("250 old");
  });
  assert.deepEqual([session.capabilities.pipelining, session.capabilities.size], [false, null]);
});

test("an EHLO refused by policy is not tried again with HELO", async () => {
  const failure = await failed({}, async (peer) => {
    peer.say("220 x");
    await peer.line();
    peer.say("550 5.7.1 bad name");
  });
  assert.deepEqual([failure.stage, failure.cause, failure.reply?.code], ["ehlo", "refused", 550]);
});

test("a port nobody listens on and a local address that is not there are connect failures", async () => {
  const closed = await openSession({
    host: "mx.test",
    address: "127.0.0.1",
    port: 1,
    ehlo_name: "out.example.com",
    tls: { mode: "opportunistic" },
  });
  assert.deepEqual(closed.kind === "failed" && [closed.stage, closed.cause, closed.tls_failed], [
    "connect",
    "network",
    false,
  ]);
  const failure = await failed({ local_address: "203.0.113.7" }, () => {});
  assert.deepEqual([failure.stage, failure.cause], ["connect", "network"]);
});

test("the connection leaves from the address asked for", async () => {
  let seen: string | undefined;
  await openedWith({ local_address: "127.0.0.2" }, async (peer) => {
    seen = peer.remoteAddress;
    await greet(peer);
  });
  assert.equal(seen, "127.0.0.2");
});

test("a name instead of an address, or an EHLO name that cannot be sent, is a bug of the caller", async () => {
  const options = {
    host: "mx.test",
    address: "127.0.0.1",
    port: 25,
    ehlo_name: "a.example",
    tls: { mode: "none" },
  } as const;
  await assert.rejects(openSession({ ...options, address: "mx.test" }), /IP address/);
  await assert.rejects(openSession({ ...options, ehlo_name: "a\r\nMAIL FROM:<x>" }), /ehlo_name/);
});

test("the extensions of EHLO are read whatever their case, also SIZE without a number and AUTH with =", async () => {
  const session = await opened((peer) =>
    greet(peer, "pipelining", "Size", "AUTH=LOGIN PLAIN", "8BitMime", "X-UNKNOWN foo"),
  );
  const { pipelining, size, auth, eightbitmime, smtputf8 } = session.capabilities;
  assert.deepEqual([pipelining, size, auth, eightbitmime, smtputf8], [true, 0, ["LOGIN", "PLAIN"], true, false]);
});

test("replies ended by LF alone and empty lines between replies are borne", async () => {
  const session = await opened(async (peer) => {
    peer.raw("\r\n220 old server\n");
    await peer.line();
    peer.raw("250-old server\n250 PIPELINING\n");
  });
  assert.equal(session.capabilities.pipelining, true);
});

test("a reply nobody asked for before EHLO ends the attempt", async () => {
  const failure = await failed({}, (peer) => peer.say("220 hello", "250 hello again"));
  assert.equal(failure.cause, "protocol");
});

test("an endless flood of whole replies ends the attempt at the first that nobody asked for", async () => {
  const failure = await failed({ timeouts: { greeting_ms: 2000 } }, (peer) => flood(peer, "", "220 hello\r\n"));
  assert.equal(failure.cause, "protocol");
});
