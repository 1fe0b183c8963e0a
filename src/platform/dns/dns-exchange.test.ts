import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { test } from "node:test";
import { type Decoded, decode, encode } from "dns-packet";
import { startDnsServer } from "../../../test/support/dns-server.ts";
import { askServer, type Outcome, parseServer } from "./dns-exchange.ts";

const question = { name: "example.com", type: "A" as const };
const options = { timeout_ms: 3_000, ad: false, dnssec: false };

function answerTo(query: Decoded, flags = 0x180): Buffer {
  const answers = [{ name: "example.com", type: "A", ttl: 60, data: "192.0.2.7" }];
  return encode({ id: query.id, type: "response", flags, questions: query.questions, answers });
}

/** Asks a server that cuts every answer over UDP and lets `speak` answer over TCP. */
async function askOverTcp(
  speak: (socket: Socket, query: Decoded) => void,
  timeout_ms = options.timeout_ms,
): Promise<Outcome> {
  const tcp = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (bytes: Buffer) => speak(socket, decode(bytes.subarray(2))));
  }).listen(0, "127.0.0.1");
  await once(tcp, "listening");
  const { port } = tcp.address() as { port: number };
  const udp = createSocket("udp4").bind(port, "127.0.0.1");
  udp.on("message", (bytes, from) => udp.send(answerTo(decode(bytes), 0x380), from.port, from.address));
  await once(udp, "listening");
  const outcome = await askServer({ host: "127.0.0.1", port }, question, { ...options, timeout_ms });
  udp.close();
  tcp.close();
  return outcome;
}

function framed(bytes: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

test("an answer over TCP is read however it is cut into pieces", async () => {
  const outcome = await askOverTcp(async (socket, query) => {
    for (const byte of framed(answerTo(query))) {
      socket.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
  assert.equal(outcome.kind === "answer" && outcome.message.answers[0]?.value, "192.0.2.7");
});

test("over TCP a cut, foreign, again truncated or missing answer is a failure in time", async () => {
  const cases: [string, (socket: Socket, query: Decoded) => void][] = [
    ["bad answer", (socket) => socket.end()],
    ["bad answer", (socket, query) => socket.end(framed(answerTo(query)).subarray(0, -1))],
    ["bad answer", (socket, query) => socket.end(framed(answerTo({ ...query, id: query.id ^ 1 })))],
    ["bad answer", (socket, query) => socket.end(framed(answerTo(query, 0x380)))],
    ["bad answer", (socket) => socket.end(Buffer.from([0, 0]))],
    ["bad answer", (socket) => socket.write(Buffer.alloc(200_000, 0xff))],
    ["timeout", () => {}],
    ["network: ECONNRESET", (socket) => socket.resetAndDestroy()],
  ];
  for (const [reason, speak] of cases) {
    assert.deepEqual(await askOverTcp(speak, reason === "timeout" ? 200 : 20_000), { kind: "failed", reason });
  }
});

test("ids and source ports are not the same from question to question", async () => {
  const ids = new Set<number>();
  const ports = new Set<number>();
  const udp = createSocket("udp4").bind(0, "127.0.0.1");
  udp.on("message", (bytes, from) => {
    ids.add(bytes.readUInt16BE(0));
    ports.add(from.port);
    udp.send(answerTo(decode(bytes)), from.port, from.address);
  });
  await once(udp, "listening");
  const server = { host: "127.0.0.1", port: udp.address().port };
  for (let count = 0; count < 50; count += 1) await askServer(server, question, options);
  assert.ok(ids.size >= 48, `${ids.size} ids`);
  assert.ok(ports.size >= 40, `${ports.size} ports`);
  udp.close();
});

test("with validation AD is asked for, and DO where asked", async () => {
  const dns = await startDnsServer({ "example.com": { A: ["192.0.2.1"] } });
  dns.authenticated = true;
  const authenticated = async (ad: boolean, dnssec: boolean) => {
    const outcome = await askServer(parseServer(dns.address), question, { ...options, ad, dnssec });
    return outcome.kind === "answer" && outcome.message.authenticated;
  };
  assert.deepEqual([await authenticated(false, false), await authenticated(true, false)], [false, true]);
  assert.equal(await authenticated(false, true), true);
  await dns.stop();
});

test("servers are written as host:port; anything else is a mistake in the settings", () => {
  assert.deepEqual(parseServer("127.0.0.1:5353"), { host: "127.0.0.1", port: 5353 });
  assert.deepEqual(parseServer("127.0.0.1"), { host: "127.0.0.1", port: 53 });
  assert.deepEqual(parseServer("[::1]:5353"), { host: "::1", port: 5353 });
  assert.deepEqual(parseServer("::1"), { host: "::1", port: 53 });
  for (const text of ["dns.example.com", "127.0.0.1:0", "127.0.0.1:99999", "[::1", ""]) {
    assert.throws(() => parseServer(text), /not a name server/);
  }
});
