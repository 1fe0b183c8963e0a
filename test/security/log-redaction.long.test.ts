// Everything that one real process prints at its most talkative level, errors included, while secrets, addresses, subjects
// and bodies are planted in every surface: HTTP, SMTP in both directions, submission, webhooks, imports, reports, a cut
// database. None of it may be there (docs: reliability rule 15); domains, ids and codes may.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { makeSelfSigned } from "../../src/platform/net/self-signed.ts";
import type { PosternProcess } from "../support/postern-process.ts";
import { rawSmtp } from "../support/raw-smtp.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

/** Stands in every planted text; what follows names the surface, so that a finding says where it came from. */
const MARK = "zqplant";
const planted = new Set<string>();

function plant(surface: string): string {
  planted.add(surface);
  return `${MARK}${surface}`;
}

let s: Scene;
let postern: PosternProcess;
let said = "";
let domainId: string;

before(async () => {
  s = await setScene({ env: { POSTERN_LOG_LEVEL: "trace", POSTERN_GREYLISTING: "0" } });
  receiveAt(s.dns, "recipient.example");
  s.dns.set("hooks.example", "A", ["127.0.0.1"]);
  const { key, cert } = makeSelfSigned(["localhost"], Date.now());
  const tls = { POSTERN_TLS_KEY: join(s.dir, "key.pem"), POSTERN_TLS_CERT: join(s.dir, "cert.pem") };
  writeFileSync(tls.POSTERN_TLS_KEY, key);
  writeFileSync(tls.POSTERN_TLS_CERT, cert);
  postern = await s.start(undefined, tls);
  said = postern.output();
  for (const stream of [postern.child.stdout, postern.child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
  }
  ({ id: domainId } = await addVerifiedDomain(s, s.dns, "sender.example", { type: "both" }));
});
after(() => s?.close());

type Asking = { method?: string; path: string; body?: unknown; key?: string; headers?: Record<string, string> };

async function request({ method = "POST", path, body, key = s.live_key, headers = {} }: Asking): Promise<number> {
  const isText = typeof body === "string" || Buffer.isBuffer(body);
  const response = await fetch(s.base_url + path, {
    ...{ method, headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers } },
    ...(body === undefined ? {} : { body: isText ? (body as string) : JSON.stringify(body) }),
  });
  await response.arrayBuffer();
  return response.status;
}

const mail = (surface: string, more: object = {}) => ({
  from: `${plant(`${surface}name`)} <orders@sender.example>`,
  to: [`${plant(`${surface}to`)}@recipient.example`],
  subject: plant(`${surface}subject`),
  text_body: plant(`${surface}text`),
  html_body: `<p>${plant(`${surface}html`)}</p>`,
  tags: [plant(`${surface}tag`)],
  metadata: { note: plant(`${surface}metadata`) },
  headers: { "X-Note": plant(`${surface}header`) },
  attachments: [
    { filename: `${plant(`${surface}file`)}.txt`, content: Buffer.from(plant("content")).toString("base64") },
  ],
  ...more,
});

/** Sends it; its id. */
async function send(surface: string, more: object = {}): Promise<string> {
  const { status, body } = await s.ask("POST", "/v1/send", mail(surface, more));
  assert.equal(status, 202, JSON.stringify(body));
  return String(body.id);
}

test("requests: good ones, bad ones, ones that are no HTTP", async () => {
  assert.equal(await request({ path: "/v1/send", body: mail("good") }), 202);
  assert.equal(await request({ path: "/v1/send", body: mail("bad", { to: ["no address zqplantinvalid@"] }) }), 400);
  await request({ path: "/v1/send", body: `{"subject":"${plant("json")}` });
  await request({ path: "/v1/send", body: mail("key"), key: `svc_live_of-ours_${plant("badkey")}` });
  await request({ path: "/v1/send", body: mail("idem"), headers: { "idempotency-key": plant("idempotency") } });
  await request({ path: "/v1/send", body: "x".repeat(26 * 1024 * 1024) });
  await request({ method: "GET", path: `/v1/suppressions/check?email=${plant("query")}@recipient.example` });
  await request({ method: "DELETE", path: `/v1/suppressions/${plant("path")}@recipient.example` });
  await request({ method: "GET", path: `/v1/nothing/${plant("missing")}` });
  await request({
    path: "/v1/suppressions",
    body: { email: `${plant("suppressed")}@recipient.example`, note: plant("note") },
  });
  await request({ path: "/v1/api-keys", body: { name: plant("keyname"), environment: "test" } });
  const csv = `email,reason\n${plant("csv")}@recipient.example,bounce\n"${plant("open")}`;
  await request({ path: "/v1/imports/suppressions/preview", body: { csv, provider: "custom" } });
  const broken = { name: plant("template"), slug: "a", subject: `{{${plant("variable")}`, text_body: plant("source") };
  await request({ path: "/v1/templates", body: broken });
  const port = Number(new URL(s.base_url).port);
  for (const text of [
    `${plant("nohttp")}\r\n\r\n`,
    `GET /${plant("smuggled")} HTTP/1.1\r\nContent-Length: x\r\n\r\n`,
  ]) {
    await new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1", () => socket.end(text));
      socket.on("close", resolve).on("error", resolve).resume();
    });
  }
});

test("mail that comes in, by SMTP, well and badly", async () => {
  const content = (surface: string) =>
    `From: ${plant(`${surface}from`)}@stranger.example\r\nSubject: ${plant(`${surface}subject`)}\r\n` +
    `Content-Type: multipart/mixed; boundary=${plant(`${surface}boundary`)}\r\n\r\n${plant(`${surface}body`)}\r\n`;
  await request({ path: "/v1/aliases", body: { domain_id: domainId, local_part: plant("alias"), action: "store" } });
  const attempts: ((smtp: Awaited<ReturnType<typeof rawSmtp>>) => Promise<unknown>)[] = [
    (smtp) =>
      smtp.deliver({
        from: `${plant("sender")}@stranger.example`,
        to: [`${MARK}alias@sender.example`],
        content: content("in"),
      }),
    (smtp) =>
      smtp.deliver({ from: "a@stranger.example", to: [`${plant("unknown")}@sender.example`], content: content("no") }),
    (smtp) =>
      smtp.deliver({ from: "a@stranger.example", to: [`${plant("relay")}@elsewhere.example`], content: content("re") }),
    (smtp) => smtp.ask(`${plant("verb")} ${plant("argument")}`),
    (smtp) => smtp.ask(`MAIL FROM:<${plant("syntax")}`),
    (smtp) => smtp.ask(`EHLO ${plant("helo")}`),
    async (smtp) => {
      await smtp.ask("EHLO a.example");
      await smtp.ask("MAIL FROM:<a@stranger.example>");
      await smtp.ask(`RCPT TO:<${MARK}alias@sender.example>`);
      await smtp.ask("DATA");
      smtp.write(`Subject: ${plant("smuggle")}\n.\nMAIL FROM:<${plant("smuggler")}@stranger.example>\r\n.\r\n`);
      return smtp.reply();
    },
    async (smtp) => {
      await smtp.ask("EHLO a.example");
      await smtp.ask("STARTTLS");
      smtp.write(`${plant("handshake")}\r\n`);
    },
  ];
  for (const attempt of attempts) {
    const smtp = await rawSmtp(s.mx_port);
    await smtp.reply();
    await attempt(smtp).catch(() => undefined);
    smtp.destroy();
  }
  await until("what was taken is stored", async () => {
    const { total } = (await s.ask("GET", "/v1/inbound-emails?status=delivered")).body;
    return Number(total) > 0;
  });
});

test("submission: a password that is wrong, and one that is right", async () => {
  for (const password of [`svc_live_${plant("password")}`, s.live_key]) {
    const smtp = await rawSmtp(s.submission_port);
    await smtp.reply();
    await smtp.ask("EHLO a.example");
    await smtp.ask("STARTTLS");
    await smtp.startTls();
    await smtp.ask("EHLO a.example");
    const user = password === s.live_key ? "postern" : plant("user");
    const login = Buffer.from(`\0${user}\0${password}`).toString("base64");
    const { code } = await smtp.ask(`AUTH PLAIN ${login}`);
    assert.equal(code, password === s.live_key ? 235 : 535);
    const content = `From: orders@sender.example\r\nTo: ${plant("subto")}@recipient.example\r\nSubject: ${plant("subsubject")}\r\n\r\n${plant("subtext")}\r\n`;
    const last = await smtp.deliver({ from: "orders@sender.example", to: [`${MARK}subto@recipient.example`], content });
    assert.equal(last.code, password === s.live_key ? 250 : 530);
    smtp.destroy();
  }
});

test("mail that leaves, and servers that answer with what they got", async () => {
  s.sink.onRcpt((address) => ({ code: 550, text: `5.1.1 no mailbox ${address} here, ${plant("reply")}` }));
  await emailWithStatus(s, await send("refused"), ["bounced"]);
  s.sink.onRcpt((address) => ({ code: 451, text: `4.7.1 ${address} try later, token=${plant("later")}` }));
  await emailWithStatus(s, await send("deferred"), ["deferred"]);
  s.sink.onRcpt(() => null);
  s.dns.set("broken.example", "MX", [{ exchange: "nowhere.broken.example", preference: 10 }]);
  const unreachable = await send("unreachable", { to: [`${plant("away")}@broken.example`] });
  await emailWithStatus(s, unreachable, ["deferred"]);
});

test("webhooks with secrets in their URLs that cannot be reached; reports that cannot be read", async () => {
  const url = `https://hooks.example/${plant("hookpath")}?token=${plant("hooktoken")}`;
  assert.equal(await request({ path: "/v1/webhooks", body: { url, events: ["email.delivered"] } }), 201);
  await request({
    path: "/v1/webhooks",
    body: { url: `https://${plant("urluser")}:${plant("urlpass")}@hooks.example/` },
  });
  await send("hooked");
  for (const body of [
    `<feedback>${plant("xml")}`,
    gzipSync(`<feedback><org_name>${plant("gzip")}`),
    plant("noreport"),
  ]) {
    await request({ path: "/v1/dmarc/reports", body, headers: { "content-type": "application/octet-stream" } });
  }
  await until("the webhook was tried", async () => {
    const { deliveries } = (await s.ask("GET", "/v1/webhook-deliveries")).body;
    return (deliveries as unknown as { attempt: number }[]).some(({ attempt }) => attempt > 0);
  });
});

test("a database that goes away in the middle of requests and deliveries", async () => {
  const admin = await s.admin();
  const sends = Array.from({ length: 12 }, (_, index) =>
    request({ path: "/v1/send", body: mail(`cut${index}`) }).catch(() => 0),
  );
  for (let round = 0; round < 4; round += 1) {
    await admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await Promise.all(sends);
  await admin.query("alter table message rename to message_away");
  await request({ path: "/v1/send", body: mail("notable") });
  await request({ method: "GET", path: `/v1/emails?search=${plant("search")}` });
  await admin.query("alter table message_away rename to message");
  await emailWithStatus(s, await send("after"), ["delivered"]);
});

test("nothing of it was printed, nor a key", async () => {
  postern.child.kill("SIGTERM");
  assert.equal(await postern.exited, 0);
  const lines = said.split("\n").filter((line) => line !== "");
  assert.ok(lines.length > 10, `the process said only ${lines.length} lines`);
  assert.ok(
    lines.some((line) => line.includes('"level":"error"')),
    "nothing went wrong, so nothing was shown",
  );
  const leaks = lines.filter((line) => line.toLowerCase().includes(MARK));
  assert.deepEqual(leaks.map((line) => line.slice(0, 600)).slice(0, 5), [], `${leaks.length} lines of ${lines.length}`);
  for (const secret of [s.live_key, s.test_key]) assert.ok(!said.includes(secret), "a key was printed");
  assert.ok(!/-----BEGIN|whsec_[0-9A-Za-z]{10}/.test(said));
  assert.ok(planted.size > 100, `${planted.size} plants`);
});
