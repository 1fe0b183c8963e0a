// Mail through SMTP submission with the clients people have: nodemailer, swaks, curl and Python's smtplib as they are
// installed, against a certificate they check, to a real SMTP server.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import { createTransport, type Transporter } from "nodemailer";
import PostalMime from "postal-mime";
import { startSubmitting } from "../../src/app.ts";
import type { Submission } from "../../src/submission/submission.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { nodeStyleResolver } from "../support/node-resolver.ts";
import { type Received, type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { swaksMissing } from "../support/swaks.ts";
import { makeCertificateAuthority } from "../support/tls.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const HOST = "localhost";
const USER = ["--auth-user", "postern"];

let api: TestApi;
let dns: DnsServer;
let sink: SmtpSink;
let submission: Submission;
let dir: string;
let ca: string;
let caFile: string;

before(async () => {
  dir = mkdtempSync(join(tmpdir(), "postern-submission-"));
  const authority = makeCertificateAuthority(dir);
  const issued = authority.issue([HOST, "127.0.0.1"]);
  ca = authority.ca;
  caFile = authority.ca_file;
  writeFileSync(join(dir, "cert.pem"), issued.cert);
  writeFileSync(join(dir, "key.pem"), issued.key);
  dns = await startDnsServer();
  sink = await startSmtpSink();
  api = await testApi({
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    POSTERN_SUBMISSION: "127.0.0.1:0",
    POSTERN_SUBMISSIONS: "127.0.0.1:0",
    POSTERN_TLS_CERT: join(dir, "cert.pem"),
    POSTERN_TLS_KEY: join(dir, "key.pem"),
  });
  await addVerifiedDomain(api, dns, "sender.example");
  receiveAt(dns, "recipient.example");
  await api.startMta();
  submission = await startSubmitting(api.world, api.engine);
});

after(async () => {
  await submission?.stop();
  await api?.close();
  await sink?.stop();
  await dns?.stop();
  rmSync(dir, { recursive: true, force: true });
});

function nodemailer(how: { implicit?: boolean; password?: string; pool?: boolean } = {}): Transporter {
  const { implicit = false, password = api.live_key, pool = false } = how;
  return createTransport({
    host: HOST,
    port: implicit ? (submission.implicit_port as number) : submission.port,
    secure: implicit,
    requireTLS: !implicit,
    tls: { ca },
    auth: { user: "postern", pass: password },
    pool,
  } as object);
}

async function arrival(id: string): Promise<{ received: Received; email: Record<string, never> }> {
  const email = await emailWithStatus(api, id, ["delivered"]);
  const received = sink.messages.find(({ message_id }) => message_id === email.message_id);
  assert.ok(received, "the sink has the message");
  return { received, email };
}

/** Runs a client of the machine's. Without a terminal it asks nobody for what is missing. */
function run(program: string, args: string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    output += chunk;
  });
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, output })));
}

/** Why a client cannot be tried here; false when it can. */
function missing(program: string, ...args: string[]): string | false {
  return spawnSync(program, args).status === 0 ? false : `${program} is not installed`;
}

function idIn(response: string | undefined): string {
  const id = /as ([0-9a-f-]{36})/.exec(response ?? "")?.[1];
  assert.ok(id, response);
  return id;
}

describe("nodemailer", () => {
  it("sends text, HTML and an attachment through STARTTLS; they arrive signed and whole", async () => {
    const content = Buffer.from(Array.from({ length: 2_000 }, (_, n) => n % 256));
    const info = await nodemailer().sendMail({
      from: "Grüße <orders@sender.example>",
      to: "Anna Ä <anna@recipient.example>",
      bcc: "secret@recipient.example",
      subject: "Ihre Bestellung №17",
      text: "Hallo Anna\n.\n..punkte",
      html: "<p>Hallo <b>Anna</b></p>",
      attachments: [{ filename: "rechnung.bin", content }],
      headers: { "X-Service-Tag": "order", "X-Service-Metadata-Order": "17" },
    });
    const { received, email } = await arrival(idIn(info.response));
    assert.deepEqual(email.tags, ["order"]);
    assert.deepEqual(email.metadata, { order: "17" });
    assert.equal(`<${email.message_id}>`, info.messageId);
    const copies = sink.messages.filter(({ message_id }) => message_id === email.message_id);
    assert.deepEqual(copies.flatMap(({ to }) => to).sort(), ["anna@recipient.example", "secret@recipient.example"]);
    for (const { bytes } of copies) assert.doesNotMatch(bytes.toString("latin1"), /^(bcc|x-service)/im);
    const verdict = await dkimVerify(received.bytes, { resolver: nodeStyleResolver(api.world.resolver) as never });
    assert.equal(verdict.results[0]?.status.result, "pass");
    const parsed = await PostalMime.parse(received.bytes);
    assert.deepEqual([parsed.subject, parsed.html?.trim()], ["Ihre Bestellung №17", "<p>Hallo <b>Anna</b></p>"]);
    assert.equal(parsed.text?.trim(), "Hallo Anna\n.\n..punkte");
    assert.deepEqual(Buffer.from(parsed.attachments[0]?.content as ArrayBuffer), content);
  });

  it("sends with TLS from the first byte, and many over a pool of connections", async () => {
    const transport = nodemailer({ implicit: true, pool: true });
    const sent = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        transport.sendMail({
          from: "orders@sender.example",
          to: `r${n}@recipient.example`,
          subject: `${n}`,
          text: "x",
        }),
      ),
    );
    for (const { response } of sent) await emailWithStatus(api, idIn(response), ["delivered"]);
    assert.equal(new Set(sent.map(({ messageId }) => messageId)).size, 40);
    transport.close();
  });

  it("sends a large e-mail, and hears about one that is too large", async () => {
    const content = Buffer.alloc(3_000_000, "0123456789abcdef\n");
    const info = await nodemailer().sendMail({
      from: "orders@sender.example",
      to: "big@recipient.example",
      subject: "big",
      text: "x",
      attachments: [{ filename: "big.bin", content }],
    });
    const { received } = await arrival(idIn(info.response));
    const parsed = await PostalMime.parse(received.bytes);
    assert.ok(Buffer.from(parsed.attachments[0]?.content as ArrayBuffer).equals(content));
    const tooBig = { filename: "x", content: Buffer.alloc(20_000_000) };
    const refused = nodemailer().sendMail({
      from: "a@sender.example",
      to: "b@recipient.example",
      attachments: [tooBig],
    });
    await assert.rejects(refused, { responseCode: 552 });
  });

  it("sends exactly as much as was offered, and not two bytes more", async () => {
    const head = "From: orders@sender.example\r\nTo: anna@recipient.example\r\nSubject: full\r\n\r\n";
    const line = `${"x".repeat(510)}\r\n`;
    const rest = 25 * 1024 * 1024 - head.length;
    const raw = `${head}${line.repeat(rest / line.length - 1)}${"x".repeat((rest % line.length) + line.length - 2)}\r\n`;
    assert.equal(raw.length, 25 * 1024 * 1024);
    const envelope = { from: "orders@sender.example", to: "anna@recipient.example" };
    const { response } = await nodemailer().sendMail({ envelope, raw });
    assert.match(response ?? "", /^250 2\.0\.0 queued as /);
    const more = nodemailer().sendMail({ envelope, raw: raw.replace("\r\n\r\n", "\r\n\r\nxx") });
    await assert.rejects(more, /552/);
  });

  it("understands what it is refused", async () => {
    await assert.rejects(nodemailer({ password: "svc_live_wrongwrongwrongwrong" }).verify(), {
      code: "EAUTH",
      responseCode: 535,
    });
    const mail = { to: "anna@recipient.example", subject: "s", text: "x" };
    await assert.rejects(nodemailer().sendMail({ ...mail, from: "ceo@victim.example" }), { responseCode: 550 });
    const disguised = { ...mail, from: "ceo@victim.example", envelope: { from: "a@sender.example", to: mail.to } };
    await assert.rejects(nodemailer().sendMail(disguised), { responseCode: 550 });
    await api.ask("POST", "/v1/suppressions", { email: "gone@recipient.example" });
    const gone = { ...mail, from: "a@sender.example", to: "gone@recipient.example" };
    await assert.rejects(nodemailer().sendMail(gone), { responseCode: 550 });
    const test = await nodemailer({ password: api.test_key }).sendMail({ ...mail, from: "a@sender.example" });
    assert.match(test.response ?? "", /^250 2\.0\.0 simulated as /);
  });
});

describe("swaks", { skip: swaksMissing() ?? false }, () => {
  function swaks(...more: string[]): Promise<{ code: number | null; output: string }> {
    const given = ["--server", HOST, "--tls-verify", "--tls-ca-path", caFile, "--timeout", "20"];
    const envelope = ["--from", "swaks@sender.example", "--to", "sam@recipient.example"];
    return run("swaks", [...given, ...envelope, ...more]);
  }
  const port = (): string[] => ["--port", String(submission.port), "--tls"];

  it("sends with PLAIN over STARTTLS and with LOGIN over implicit TLS", async () => {
    const ways = [
      [...port(), "--auth", "PLAIN", ...USER],
      ["--port", String(submission.implicit_port), "--tls-on-connect", "--auth", "LOGIN", ...USER],
    ];
    for (const way of ways) {
      const { code, output } = await swaks(...way, "--auth-password", api.live_key, "--header", "Subject: from swaks");
      assert.equal(code, 0, output);
      const { received, email } = await arrival(idIn(output));
      assert.equal(email.subject, "from swaks");
      assert.match(received.from, /^b\+[a-z2-7]{44}@pt-bounces\.sender\.example$/);
    }
  });

  it("sees the codes of RFC 4954", async () => {
    const wrong = await swaks(...port(), "--auth", "PLAIN", ...USER, "--auth-password", "wrong");
    assert.match(wrong.output, /<~\* 535 5\.7\.8 /);
    assert.notEqual(wrong.code, 0);
    const withKey = ["--auth", "PLAIN", ...USER, "--auth-password", api.live_key];
    const clear = await swaks("--port", String(submission.port), ...withKey);
    assert.match(clear.output, /Host did not advertise authentication/);
    assert.ok(!clear.output.includes(Buffer.from(api.live_key).toString("base64")));
    const nobody = await swaks(...port());
    assert.match(nobody.output, /530 5\.7\.0 /);
  });
});

describe("a file as it lies on the disk, with LF for line ends", () => {
  const lines = ["From: orders@sender.example", "To: anna@recipient.example", "Subject: from a file", ""];
  const text = ["Hello", ".", ".hidden", "", "end of it"];

  function bodyOf(received: Received): string {
    return received.bytes.toString("latin1").split("\r\n\r\n").slice(1).join("\r\n\r\n").trimEnd();
  }

  it("arrives whole from Python's smtplib", { skip: missing("python3", "-c", "import smtplib, ssl") }, async () => {
    const script = [
      "import smtplib, ssl, sys, email.message",
      "host, port, ca, key = sys.argv[1:]",
      "mail = email.message.EmailMessage()",
      "mail['From'], mail['To'], mail['Subject'] = 'orders@sender.example', 'anna@recipient.example', 'from a file'",
      `mail.set_content(${JSON.stringify(`${text.join("\n")}\n`)})`,
      "smtp = smtplib.SMTP(host, int(port))",
      "smtp.starttls(context=ssl.create_default_context(cafile=ca))",
      "smtp.login('postern', key)",
      "for n in range(2):",
      "    smtp.mail('orders@sender.example'); smtp.rcpt('anna@recipient.example')",
      "    print(smtp.data(mail.as_bytes()))",
      "smtp.sendmail('orders@sender.example', ['anna@recipient.example'], mail.as_bytes())",
      "smtp.quit()",
    ].join("\n");
    const { code, output } = await run("python3", [
      ...["-c", script, HOST],
      ...[String(submission.port), caFile, api.live_key],
    ]);
    assert.equal(code, 0, output);
    const { received, email } = await arrival(idIn(output));
    assert.equal(email.subject, "from a file");
    assert.equal(bodyOf(received), text.join("\r\n"));
    const verdict = await dkimVerify(received.bytes, { resolver: nodeStyleResolver(api.world.resolver) as never });
    assert.equal(verdict.results[0]?.status.result, "pass");
  });

  it("arrives whole from curl", { skip: missing("curl", "--version") }, async () => {
    for (const end of ["\n", ""]) {
      const file = join(dir, "mail.eml");
      writeFileSync(file, `${[...lines, ...text].join("\n")}${end}`);
      const { code, output } = await run("curl", [
        ...["-sv", `smtp://${HOST}:${submission.port}`, "--ssl-reqd", "--cacert", caFile],
        ...["--mail-from", "orders@sender.example", "--mail-rcpt", "anna@recipient.example"],
        ...["--user", `postern:${api.live_key}`, "-T", file],
      ]);
      assert.equal(code, 0, output);
      const { received } = await arrival(idIn(output));
      assert.equal(bodyOf(received), text.join("\r\n"));
    }
  });
});
