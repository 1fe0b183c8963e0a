// Certificates of a running Postern from a real ACME server: the API, the MX and submission show a new one without a
// restart, while connections that were there before go on.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { freePort } from "../support/free-port.ts";
import { noPebble, type Pebble, startPebble } from "../support/pebble.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { until } from "../support/until.ts";

const HOST = "mail.example";
const POLICY_HOSTS = ["bounces", "reports", "masked"].map((name) => `mta-sts.${name}.${HOST}`);
const EACH = 34;

const skip = noPebble();
let scene: Scene;
let pebble: Pebble;
let root: string;
const ports = { https: 0, smtp: 0, submissions: 0, challenges: 0 };

before(async () => {
  if (skip) return;
  for (const name of ["https", "submissions", "challenges"] as const) ports[name] = await freePort();
  scene = await setScene({
    env: {
      POSTERN_HOSTNAME: HOST,
      POSTERN_HTTPS: `127.0.0.1:${ports.https}`,
      POSTERN_SUBMISSIONS: `127.0.0.1:${ports.submissions}`,
      POSTERN_ACME_HTTP: `127.0.0.1:${ports.challenges}`,
      POSTERN_BASE_URL: `https://${HOST}`,
    },
  });
  ports.smtp = scene.mx_port;
  for (const name of [HOST, `mx.${HOST}`, ...POLICY_HOSTS]) scene.dns.set(name, "A", ["127.0.0.1"]);
  pebble = await startPebble(scene.dns, { http_port: ports.challenges });
  root = await pebble.root();
  await scene.start(undefined, { POSTERN_ACME: pebble.directory, POSTERN_ACME_CA: pebble.ca_file });
});

after(async () => {
  await scene?.close();
  await pebble?.stop();
});

/** A line of the other side's, or what came so far. */
async function readUntil(socket: Socket, isWhole: RegExp): Promise<string> {
  let text = "";
  while (!isWhole.test(text)) {
    const [chunk] = (await Promise.race([once(socket, "data"), once(socket, "close").then(() => [null])])) as [Buffer];
    if (chunk === null) throw new Error(`the connection ended after: ${text}`);
    text += chunk.toString();
  }
  return text;
}

async function secured(port: number, plain?: Socket): Promise<TLSSocket> {
  const socket = connect({
    ...(plain ? { socket: plain } : { port, host: "127.0.0.1" }),
    servername: HOST,
    ca: [root],
  });
  await once(socket, "secureConnect");
  return socket;
}

type Kind = "https" | "smtp" | "submissions";
const KINDS: Kind[] = ["https", "smtp", "submissions"];

/** Verified against Pebble's root, or this rejects. */
async function open(kind: Kind): Promise<TLSSocket> {
  const port = ports[kind];
  if (kind === "https") return await secured(port);
  if (kind === "submissions") {
    const socket = await secured(port);
    await readUntil(socket, /^220 .*\r\n$/m);
    return socket;
  }
  const plain = connectTcp(port, "127.0.0.1");
  await readUntil(plain, /^220 .*\r\n$/m);
  plain.write("EHLO client.example\r\n");
  await readUntil(plain, /^250 .*\r\n$/m);
  plain.write("STARTTLS\r\n");
  await readUntil(plain, /^220 .*\r\n$/m);
  return await secured(port, plain);
}

async function serialOf(kind: Kind): Promise<string> {
  const socket = await open(kind);
  const serial = socket.getPeerX509Certificate()?.serialNumber ?? "";
  socket.destroy();
  return serial;
}

async function works(kind: Kind, socket: TLSSocket): Promise<boolean> {
  socket.write(kind === "https" ? `GET /healthz HTTP/1.1\r\nHost: ${HOST}\r\n\r\n` : "NOOP\r\n");
  return kind === "https"
    ? /^HTTP\/1\.1 200 /.test(await readUntil(socket, /\{"status":"ok"\}$/))
    : /^250 /.test(await readUntil(socket, /\r\n$/));
}

describe("a Postern with POSTERN_ACME", { skip }, () => {
  it("shows its certificate on all listeners, and a renewed one while 102 connections go on", async () => {
    const first = await until("a certificate is there", () => serialOf("https").catch(() => null));
    for (const kind of KINDS) assert.equal(await serialOf(kind), first, kind);
    const kept = await Promise.all(
      KINDS.flatMap((kind) => Array.from({ length: EACH }, async () => ({ kind, socket: await open(kind) }))),
    );
    const admin = await scene.admin();
    await admin.query("update acme_certificate set renew_at = now()");
    await admin.query("notify postern_certificates");
    await until("a new certificate is there", async () => (await serialOf("https")) !== first);
    const second = await serialOf("https");
    for (const kind of KINDS) assert.equal(await serialOf(kind), second, kind);
    const alive = await Promise.all(kept.map(({ kind, socket }) => works(kind, socket)));
    assert.equal(alive.filter(Boolean).length, 3 * EACH);
    for (const { socket } of kept) socket.destroy();
  });

  it("serves the MTA-STS policy at the names of its own domains only", async () => {
    const read = async (host: string) => {
      const socket = await open("https");
      socket.write(`GET /.well-known/mta-sts.txt HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      const text = await readUntil(socket, /max_age: \d+\r\n|no policy/);
      socket.destroy();
      return text;
    };
    for (const host of POLICY_HOSTS) {
      assert.match(
        await read(host),
        /^HTTP\/1\.1 200 [\s\S]*\r\n\r\nversion: STSv1\r\nmode: enforce\r\nmx: mx\.mail\.example\r\n/,
      );
    }
    assert.match(await read(HOST), /^HTTP\/1\.1 404 /);
  });

  it("sends what comes to the port of the challenges to HTTPS, and shows how long the certificate is valid", async () => {
    const answer = await fetch(`http://127.0.0.1:${ports.challenges}/docs`, { redirect: "manual" });
    assert.deepEqual([answer.status, answer.headers.get("location")], [308, `https://${HOST}/docs`]);
    const unknown = await fetch(`http://127.0.0.1:${ports.challenges}/.well-known/acme-challenge/${"a".repeat(43)}`);
    assert.equal(unknown.status, 404);
    const metrics = await (await fetch(`http://${scene.env.POSTERN_INTERNAL}/metrics`)).text();
    const [, until] = /^postern_certificate_not_after_timestamp_seconds (\S+)$/m.exec(metrics) ?? [];
    assert.ok(Number(until) > Date.now() / 1_000 + 86_400, until);
    assert.match(metrics, /^postern_certificate_orders_total\{result="issued"\} 2$/m);
  });
});
