// One address for two Posterns: Debian's nginx with the configuration that `postern cells nginx` prints, and `postern cells door`, which
// it asks. The two have a database, a master key, customers and names of their own.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createTransport } from "nodemailer";
import { type BehindDoor, type CellBehindDoor, SHARED_HOST, setBehindDoor } from "../support/cells-door.ts";
import { hasNginx } from "../support/nginx.ts";
import { rawSmtp } from "../support/raw-smtp.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain, publish, type ShownRecord } from "../support/verified-domain.ts";

const NEEDS = hasNginx()
  ? {}
  : { skip: "nginx and its mail module are not installed (Debian: nginx-light libnginx-mod-mail)" };

let world: BehindDoor;
let one: CellBehindDoor;
let two: CellBehindDoor;

before(async () => {
  if ("skip" in NEEDS) return;
  world = await setBehindDoor(["one", "two"]);
  [one, two] = world.cells as [CellBehindDoor, CellBehindDoor];
});
after(() => world?.close());

const mailTo = (to: string, subject = "hello") =>
  `From: a@b.example\r\nTo: <${to}>\r\nSubject: ${subject}\r\n\r\nx\r\n`;

async function received(cell: CellBehindDoor, subject: string) {
  return until(`${subject} was received`, async () => {
    const { body } = await cell.ask("GET", `/v1/inbound-emails?subject=${encodeURIComponent(subject)}`);
    return (body.emails as unknown as { id: string; recipient: string; remote_ip?: string }[] | undefined)?.[0];
  });
}

/** What is known of the client, and the Received field that was written. */
async function arrived(cell: CellBehindDoor, id: string) {
  const { body } = await cell.ask("GET", `/v1/inbound-emails/${id}`);
  const { envelope } = body.email as unknown as { envelope: { remote_ip: string; helo: string; tls: boolean } };
  const raw = await fetch(`http://${cell.env.POSTERN_HTTP}/v1/inbound-emails/${id}/raw`, {
    headers: { authorization: `Bearer ${cell.live_key}` },
  });
  return { envelope, trace: await raw.text() };
}

test("a key finds its own cell at the shared name, and a host name is one cell's", NEEDS, async () => {
  for (const cell of [one, two]) {
    const own = await cell.ask("GET", "/v1/me");
    const shared = await world.ask(SHARED_HOST, { key: cell.live_key });
    assert.equal(shared.status, 200);
    assert.deepEqual(shared.body, own.body);
  }
  assert.equal((await world.ask("two.example", { key: one.live_key })).status, 401);
  assert.equal((await world.ask("two.example", { key: two.live_key })).status, 200);
  const unknown = await world.ask(SHARED_HOST, { key: "svc_live_0123456789abcdef0123" });
  assert.deepEqual([unknown.status, unknown.body.code], [401, "invalid_api_key"]);
  const page = await world.ask(SHARED_HOST, { path: "/readme-that-nobody-has" });
  assert.equal(page.status, 404);
});

test("a mail with an attachment is sent by the cell of its key", NEEDS, async () => {
  const attachment = {
    filename: "a.bin",
    content: Buffer.alloc(1_000_000, 7).toString("base64"),
    content_type: "application/octet-stream",
  };
  const sent = await world.ask(SHARED_HOST, {
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
    const smtp = await rawSmtp(world.ports.mx, { localAddress: "127.0.0.7" });
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
    const { envelope, trace } = await arrived(two, id);
    assert.deepEqual([envelope.remote_ip, envelope.helo, envelope.tls], ["127.0.0.7", "client.example", true]);
    assert.match(trace, / with ESMTPS \(TLSv1\.[23] [A-Z0-9_-]+\)\r?\n/);

    const first = await rawSmtp(world.ports.mx);
    await first.reply();
    const taken = await first.deliver({
      from: "a@b.example",
      to: ["desk@shop-one.example"],
      content: mailTo("desk@shop-one.example", "for one"),
    });
    assert.equal(taken.code, 250, taken.text);
    const inTheClear = await arrived(one, (await received(one, "for one")).id);
    assert.equal(inTheClear.envelope.tls, false);
    assert.match(inTheClear.trace, / with ESMTP\r?\n/);

    const nobody = await rawSmtp(world.ports.mx);
    await nobody.reply();
    await nobody.ask("EHLO client.example");
    await nobody.ask("MAIL FROM:<a@b.example>");
    assert.equal((await nobody.ask("RCPT TO:<x@nobody.example>")).code, 550);
  },
);

test("the postmaster without a domain is the first cell's, and capitals and quotes change nothing", NEEDS, async () => {
  for (const [to, code] of [
    ["<postmaster>", 250],
    ["<desk@SHOP-TWO.EXAMPLE>", 250],
    ['<"desk"@shop-two.example>', 250],
    ["<desk@[127.0.0.1]>", 550],
    ["<d\u00e9sk@shop-two.example>", 550],
  ] as const) {
    const smtp = await rawSmtp(world.ports.mx);
    await smtp.reply();
    await smtp.ask("EHLO client.example");
    await smtp.ask("MAIL FROM:<a@b.example> SMTPUTF8");
    const answer = await smtp.ask(`RCPT TO:${to}`);
    assert.equal(answer.code, code, `${to}: ${answer.text}`);
    smtp.destroy();
  }
});

test("a login at submission finds the cell of its key", NEEDS, async () => {
  const transport = (pass: string, more: object) =>
    createTransport({ host: "localhost", auth: { user: "postern", pass }, tls: { ca: world.ca }, ...more });
  const mail = { from: "a@shop-one.example", to: "c@recipient.example", text: "x" };
  const starttls = transport(one.live_key, { port: world.ports.submission, requireTLS: true });
  await starttls.sendMail({ ...mail, subject: "submitted to one" });
  const implicit = transport(one.live_key, { port: world.ports.submissions, secure: true });
  await implicit.sendMail({ ...mail, subject: "submitted over TLS" });
  for (const subject of ["submitted to one", "submitted over TLS"]) {
    await until(`${subject} arrived`, () =>
      one.sink.messages.some(({ bytes }) => bytes.includes(`Subject: ${subject}`)),
    );
  }
  const wrong = transport("svc_live_0123456789abcdef0123", { port: world.ports.submission, requireTLS: true });
  await assert.rejects(wrong.sendMail(mail), { responseCode: 535 });
});

test("a domain that one cell holds is not verified in another, until it is free there", NEEDS, async () => {
  const first = await addVerifiedDomain(one, one.dns, "both.example");
  const { body: second } = await two.ask("POST", "/v1/domains", { domain: "both.example", type: "outbound" });
  const { body: shown } = await two.ask("GET", `/v1/domains/${second.id}/dns`);
  publish(two.dns, shown.records as unknown as ShownRecord[]);
  const refused = await two.ask("POST", `/v1/domains/${second.id}/verify`);
  assert.deepEqual([refused.status, refused.body.code], [409, "already_exists"]);
  await one.ask("DELETE", `/v1/domains/${first.id}`);
  const { body: free } = await two.ask("POST", `/v1/domains/${second.id}/verify`);
  assert.equal(free.status, "verified", JSON.stringify(free));
});

test("while a cell is away, what may be its own is deferred, and the other goes on", NEEDS, async () => {
  two.running.child.kill("SIGKILL");
  await two.running.exited;
  const away = await world.ask(SHARED_HOST, { key: two.live_key });
  assert.deepEqual([away.status, away.body.code, away.retry_after], [503, "unavailable", "1"]);
  const unknown = await world.ask(SHARED_HOST, { key: "svc_live_fedcba9876543210fedc" });
  assert.deepEqual([unknown.status, unknown.body.code], [503, "unavailable"]);
  assert.match(String(unknown.body.request_id), /^[0-9a-f]{32}$/);
  const smtp = await rawSmtp(world.ports.mx);
  await smtp.reply();
  await smtp.ask("EHLO client.example");
  await smtp.ask("MAIL FROM:<a@b.example>");
  assert.equal((await smtp.ask("RCPT TO:<x@may-be-of-two.example>")).code, 451);
  assert.equal((await world.ask(SHARED_HOST, { key: one.live_key })).status, 200);
});
