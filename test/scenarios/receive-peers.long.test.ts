// Other people's programs deliver to the MX: swaks, nodemailer, Postfix's smtp-source, and a real Postfix that relays to us.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { createTransport } from "nodemailer";
import { type Postfix, postfixMissing, startPostfix } from "../support/postfix.ts";
import { rawSmtp } from "../support/raw-smtp.ts";
import { addAlias, type Receiving, startTestReceiving } from "../support/receiving.ts";
import { swaksMissing } from "../support/swaks.ts";

const run = promisify(execFile);
const isThere = (program: string) => spawnSync("which", [program]).status === 0;

let r: Receiving;
let postfix: Postfix | null = null;

before(async () => {
  r = await startTestReceiving();
  await addAlias(r, "peer");
});
after(async () => {
  postfix?.stop();
  await r.close();
});

test("swaks delivers, in the clear and over STARTTLS, and learns what is refused", async (t) => {
  const missing = swaksMissing();
  if (missing) return t.skip(missing);
  const swaks = (more: string[]) =>
    run("swaks", ["--server", "127.0.0.1", "--port", String(r.port), "--from", "a@b.example", ...more]);
  const plain = await swaks([
    "--to",
    "peer@in.example",
    "--header",
    "Subject: swaks plain",
    "--attach",
    "@/etc/hostname",
  ]);
  assert.match(plain.stdout, /<- {2}250 2\.0\.0 taken as /);
  const secured = await swaks(["--to", "peer@in.example", "--header", "Subject: swaks tls", "--tls"]);
  assert.match(secured.stdout, /=== TLS started/);
  await assert.rejects(swaks(["--to", "nobody@in.example"]), ({ stdout }) => /<\*\* 550 5\.1\.1 /.test(stdout));
  await assert.rejects(swaks(["--to", "x@elsewhere.example"]), ({ stdout }) => /<\*\* 550 5\.7\.1 /.test(stdout));
  const rows = await r.processed("subject=swaks", 2);
  assert.deepEqual(
    rows.map(({ subject, has_attachments }) => [subject, has_attachments]),
    [
      ["swaks plain", true],
      ["swaks tls", false],
    ],
  );
  const { body } = await r.api.ask("GET", `/v1/inbound-emails/${rows[1].id}`);
  assert.equal(body.email.envelope.tls, true);
});

test("nodemailer delivers over pooled connections with TLS: charsets, an attachment, an inline picture, SMTPUTF8", async () => {
  const transport = createTransport({
    host: "127.0.0.1",
    port: r.port,
    pool: true,
    maxConnections: 3,
    requireTLS: true,
    tls: { rejectUnauthorized: false },
  });
  const picture = Buffer.from("iVBORw0KGgo=", "base64");
  const mail = (n: number) => ({
    from: { name: "Jürgen Groß", address: "a@b.example" },
    to: "peer@in.example",
    envelope: { from: n === 0 ? "jürgen@b.example" : "a@b.example", to: "peer@in.example" },
    subject: `nodemailer ${n} – 注文`,
    text: "Grüße.\n.\n..dots\n",
    html: '<p>Grüße <img src="cid:p@b.example"></p>',
    attachments: [
      { filename: "Übersicht 2026.csv", content: "a;b\r\n1;2\r\n" },
      { filename: "p.png", content: picture, cid: "p@b.example" },
    ],
  });
  try {
    await Promise.all(Array.from({ length: 10 }, (_, n) => transport.sendMail(mail(n))));
  } finally {
    transport.close();
  }
  const rows = await r.processed("subject=nodemailer", 10);
  const answers = await Promise.all(rows.map(({ id }) => r.api.ask("GET", `/v1/inbound-emails/${id}`)));
  for (const { email } of answers.map(({ body }) => body)) {
    assert.match(email.subject, /^nodemailer \d – 注文$/);
    assert.deepEqual([email.from, email.text], ["Jürgen Groß <a@b.example>", "Grüße.\n.\n..dots\n"]);
    assert.deepEqual(
      email.attachments.map((one: { filename: string; size: number; content_id: string | null }) => [
        one.filename,
        one.size,
        one.content_id,
      ]),
      [
        // It stands beside the HTML, within it (multipart/related).
        ["p.png", 8, "p@b.example"],
        ["Übersicht 2026.csv", 10, null],
      ],
    );
    assert.equal(email.envelope.tls, true);
  }
  const senders = answers.map(({ body }) => body.email.envelope.from);
  assert.equal(senders.filter((from) => from === "jürgen@b.example").length, 1);
});

test("smtp-source delivers two hundred messages over ten connections", async (t) => {
  if (!isThere("smtp-source")) return t.skip("Postfix's smtp-source is not installed");
  const options = ["-s", "10", "-m", "200", "-l", "4096", "-S", "from smtp-source", "-f", "a@b.example"];
  await run("smtp-source", [...options, "-t", "peer@in.example", `inet:127.0.0.1:${r.port}`]);
  await r.processed("subject=from%20smtp-source&limit=100&offset=100", 100);
  assert.equal((await r.api.ask("GET", "/v1/inbound-emails?subject=from%20smtp-source")).body.total, 200);
});

test("a Postfix that relays to us delivers over TLS, dots and all", async (t) => {
  const missing = postfixMissing();
  if (missing) return t.skip(missing);
  postfix = await startPostfix(
    () => `mydestination =
relayhost = [127.0.0.1]:${r.port}
smtp_tls_security_level = may
smtpd_relay_restrictions = permit_mynetworks, reject`,
  );
  const smtp = await rawSmtp(postfix.port);
  await smtp.reply();
  const content =
    "From: a@b.example\r\nSubject: through postfix\r\nMessage-ID: <pf@b.example>\r\n\r\n.dot\r\n..\r\nend\r\n";
  assert.equal((await smtp.deliver({ from: "a@b.example", to: ["peer@in.example"], content })).code, 250);
  smtp.destroy();
  const [row] = await r.processed("subject=through%20postfix");
  const { body } = await r.api.ask("GET", `/v1/inbound-emails/${row.id}`);
  assert.deepEqual(
    [body.email.text, body.email.message_id, body.email.envelope.tls],
    [".dot\n..\nend\n", "<pf@b.example>", true],
  );
});
