// One address for two Posterns: Debian's nginx with the configuration that `postern cells nginx` prints, and `postern cells door`, which
// it asks. The two have a database, a master key, customers and names of their own.
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { type RequestOptions, request } from "node:https";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { createTransport } from "nodemailer";
import { freePort } from "../support/free-port.ts";
import { inheritedEnv } from "../support/inherited-env.ts";
import { hasNginx, NGINX_MODULES, startNginx } from "../support/nginx.ts";
import type { PosternProcess } from "../support/postern-process.ts";
import { rawSmtp } from "../support/raw-smtp.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { makeCertificateAuthority } from "../support/tls.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const PROGRAM = resolve(import.meta.dirname, "../../src/main.ts");
const SHARED = "mail.example";
const NEEDS = hasNginx()
  ? {}
  : { skip: "nginx and its mail module are not installed (Debian: nginx-light libnginx-mod-mail)" };
const NAMES = ["one", "two"] as const;

type Cell = Scene & { running: PosternProcess };
let one: Cell;
let two: Cell;
let door: ChildProcess;
let ca: string;
let ports: { https: number; mx: number; submission: number; submissions: number };
const undo = new AsyncDisposableStack();

before(async () => {
  if ("skip" in NEEDS) return;
  const place = `127.0.0.1:${await freePort()}`;
  [one, two] = (await Promise.all(NAMES.map((name) => startCell(name, place)))) as [Cell, Cell];
  const places = ({ env }: Scene) => ({
    internal: env.POSTERN_INTERNAL,
    http: env.POSTERN_HTTP,
    mx: env.POSTERN_MX,
    submission: env.POSTERN_SUBMISSION,
  });
  const dir = join(one.dir, "door");
  mkdirSync(dir);
  const file = join(dir, "cells.json");
  writeFileSync(
    file,
    JSON.stringify({ cells: [one, two].map((cell, n) => ({ name: `cell_${NAMES[n]}`, ...places(cell) })) }),
  );
  door = spawn(process.execPath, [PROGRAM, "cells", "door", "--cells", file, "--listen", place], {
    env: inheritedEnv(),
  });
  undo.defer(() => void door.kill("SIGKILL"));
  await until("the door answers", () =>
    fetch(`http://${place}/where?domain=one.example`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );

  const authority = makeCertificateAuthority(dir);
  const { key, cert } = authority.issue([SHARED, "one.example", "two.example", "localhost"]);
  ca = authority.ca;
  const files = { certificate: join(dir, "cert.pem"), key: join(dir, "key.pem") };
  writeFileSync(files.certificate, cert);
  writeFileSync(files.key, key);
  const options = [
    "--cells",
    file,
    "--door",
    place,
    "--name",
    SHARED,
    "--certificate",
    files.certificate,
    "--key",
    files.key,
  ];
  const printed = spawnSync(process.execPath, [PROGRAM, "cells", "nginx", ...options, "--modules", NGINX_MODULES], {
    env: inheritedEnv(),
    encoding: "utf8",
  });
  assert.equal(printed.status, 0, printed.stderr);
  const [https, mx, submission, submissions] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  ports = { https, mx, submission, submissions };
  const conf = Object.entries({ 443: https, 25: mx, 587: submission, 465: submissions }).reduce(
    (text, [from, to]) => text.replace(new RegExp(`listen (\\[::\\]:)?${from}\\b`, "g"), `listen $1${to}`),
    printed.stdout,
  );
  undo.defer(await startNginx(dir, conf, https));
});
after(() => undo.disposeAsync());

async function startCell(name: (typeof NAMES)[number], doorPlace: string): Promise<Cell> {
  const scene = await setScene({
    env: {
      POSTERN_HOSTNAME: `${name}.postern.example`,
      POSTERN_BASE_URL: `https://${name}.example`,
      POSTERN_CELLS_DOOR: doorPlace,
      POSTERN_PROXY_PROTOCOL_FROM: "127.0.0.1",
      POSTERN_PROXY_TLS: "1",
      POSTERN_TRUSTED_PROXIES: "127.0.0.1",
    },
  });
  undo.defer(() => scene.close());
  const running = await scene.start();
  const { id } = await addVerifiedDomain(scene, scene.dns, `shop-${name}.example`, { type: "both" });
  await scene.ask("POST", "/v1/aliases", { domain_id: id, local_part: "desk", action: "store" });
  scene.dns.set("recipient.example", "MX", [{ exchange: "mx.recipient.example", preference: 10 }]);
  scene.dns.set("mx.recipient.example", "A", ["127.0.0.1"]);
  return Object.assign(scene, { running });
}

type Answered = { status: number; body: Record<string, unknown>; retry_after: string | undefined };

/** Over HTTPS at the address that both share; `host` is what the browser or the program calls it. */
function askShared(
  host: string,
  { key, path = "/v1/me", body }: { key?: string; path?: string; body?: unknown },
): Promise<Answered> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    host,
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    ...(text === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
  };
  const options: RequestOptions = {
    port: ports.https,
    host: "127.0.0.1",
    servername: host,
    ca,
    path,
    headers,
    agent: false,
  };
  return new Promise((done, fail) => {
    const asked = request({ ...options, method: text === undefined ? "GET" : "POST" }, (response) => {
      let read = "";
      response.on("data", (piece) => {
        read += piece;
      });
      response.on("end", () => {
        const retry_after = response.headers["retry-after"];
        done({ status: response.statusCode ?? 0, body: read.startsWith("{") ? JSON.parse(read) : {}, retry_after });
      });
    });
    asked.on("error", fail).end(text);
  });
}

const mailTo = (to: string, subject = "hello") =>
  `From: a@b.example\r\nTo: <${to}>\r\nSubject: ${subject}\r\n\r\nx\r\n`;

async function received(cell: Cell, subject: string) {
  return until(`${subject} was received`, async () => {
    const { body } = await cell.ask("GET", `/v1/inbound-emails?subject=${encodeURIComponent(subject)}`);
    return (body.emails as unknown as { id: string; recipient: string; remote_ip?: string }[] | undefined)?.[0];
  });
}

test("a key finds its own cell at the shared name, and a host name is one cell's", NEEDS, async () => {
  for (const cell of [one, two]) {
    const own = await cell.ask("GET", "/v1/me");
    const shared = await askShared(SHARED, { key: cell.live_key });
    assert.equal(shared.status, 200);
    assert.deepEqual(shared.body, own.body);
  }
  assert.equal((await askShared("two.example", { key: one.live_key })).status, 401);
  assert.equal((await askShared("two.example", { key: two.live_key })).status, 200);
  const unknown = await askShared(SHARED, { key: "svc_live_0123456789abcdef0123" });
  assert.deepEqual([unknown.status, unknown.body.code], [401, "invalid_api_key"]);
  const page = await askShared(SHARED, { path: "/readme-that-nobody-has" });
  assert.equal(page.status, 404);
});

test("a mail with an attachment is sent by the cell of its key", NEEDS, async () => {
  const attachment = {
    filename: "a.bin",
    content: Buffer.alloc(1_000_000, 7).toString("base64"),
    content_type: "application/octet-stream",
  };
  const sent = await askShared(SHARED, {
    key: two.live_key,
    path: "/v1/send",
    body: {
      from: "a@shop-two.example",
      to: ["c@recipient.example"],
      subject: "by two",
      text_body: "x",
      attachments: [attachment],
    },
  });
  assert.equal(sent.status, 202, JSON.stringify(sent.body));
  await until("it arrived at the server of cell two's recipients", () =>
    two.sink.messages.some(({ bytes }) => bytes.includes("Subject: by two")),
  );
});

test(
  "mail comes to the cell of its recipient's domain, from its real client; a recipient of another cell is deferred",
  NEEDS,
  async () => {
    const smtp = await rawSmtp(ports.mx, { localAddress: "127.0.0.7" });
    assert.equal((await smtp.reply()).code, 220);
    assert.match((await smtp.ask("EHLO client.example")).text, /STARTTLS/);
    assert.equal((await smtp.ask("STARTTLS")).code, 220);
    await smtp.startTls();
    await smtp.ask("EHLO client.example");
    await smtp.ask("MAIL FROM:<a@b.example>");
    assert.equal((await smtp.ask("RCPT TO:<desk@shop-two.example>")).code, 250);
    const elsewhere = await smtp.ask("RCPT TO:<desk@shop-one.example>");
    assert.equal(elsewhere.code, 452, elsewhere.text);
    assert.match(elsewhere.text, /4\.5\.3/);
    const relay = await smtp.ask("RCPT TO:<x@nobody.example>");
    assert.equal(relay.code, 550, relay.text);
    assert.equal((await smtp.ask("DATA")).code, 354);
    smtp.write(`${mailTo("desk@shop-two.example", "for two")}.\r\n`);
    assert.equal((await smtp.reply()).code, 250);
    smtp.destroy();
    const { id } = await received(two, "for two");
    const { body } = await two.ask("GET", `/v1/inbound-emails/${id}`);
    assert.ok(JSON.stringify(body).includes("127.0.0.7"), JSON.stringify(body));

    const first = await rawSmtp(ports.mx);
    await first.reply();
    const taken = await first.deliver({
      from: "a@b.example",
      to: ["desk@shop-one.example"],
      content: mailTo("desk@shop-one.example", "for one"),
    });
    assert.equal(taken.code, 250, taken.text);
    await received(one, "for one");

    const nobody = await rawSmtp(ports.mx);
    await nobody.reply();
    await nobody.ask("EHLO client.example");
    await nobody.ask("MAIL FROM:<a@b.example>");
    assert.equal((await nobody.ask("RCPT TO:<x@nobody.example>")).code, 550);
  },
);

test("a login at submission finds the cell of its key", NEEDS, async () => {
  const transport = (pass: string, more: object) =>
    createTransport({ host: "localhost", auth: { user: "postern", pass }, tls: { ca }, ...more });
  const mail = { from: "a@shop-one.example", to: "c@recipient.example", text: "x" };
  const starttls = transport(one.live_key, { port: ports.submission, requireTLS: true });
  await starttls.sendMail({ ...mail, subject: "submitted to one" });
  const implicit = transport(one.live_key, { port: ports.submissions, secure: true });
  await implicit.sendMail({ ...mail, subject: "submitted over TLS" });
  for (const subject of ["submitted to one", "submitted over TLS"]) {
    await until(`${subject} arrived`, () =>
      one.sink.messages.some(({ bytes }) => bytes.includes(`Subject: ${subject}`)),
    );
  }
  const wrong = transport("svc_live_0123456789abcdef0123", { port: ports.submission, requireTLS: true });
  await assert.rejects(wrong.sendMail(mail), { responseCode: 535 });
});

test("while a cell is away, what may be its own is deferred, and the other goes on", NEEDS, async () => {
  two.running.child.kill("SIGKILL");
  await two.running.exited;
  const away = await askShared(SHARED, { key: two.live_key });
  assert.deepEqual([away.status, away.body.code, away.retry_after], [503, "unavailable", "1"]);
  const unknown = await askShared(SHARED, { key: "svc_live_fedcba9876543210fedc" });
  assert.deepEqual([unknown.status, unknown.body.code], [503, "unavailable"]);
  const smtp = await rawSmtp(ports.mx);
  await smtp.reply();
  await smtp.ask("EHLO client.example");
  await smtp.ask("MAIL FROM:<a@b.example>");
  assert.equal((await smtp.ask("RCPT TO:<x@may-be-of-two.example>")).code, 451);
  assert.equal((await askShared(SHARED, { key: one.live_key })).status, 200);
});
