// Other people's programs deliver to the MX: swaks, Postfix's smtp-source, and a real Postfix that relays to us.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { type Postfix, postfixMissing, startPostfix } from "../support/postfix.ts";
import { rawSmtp } from "../support/raw-smtp.ts";
import { addAlias, type Receiving, startTestReceiving } from "../support/receiving.ts";

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

test("swaks delivers, in the clear and over STARTTLS, and is told what is refused", async (t) => {
  if (!isThere("swaks")) return t.skip("swaks is not installed");
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
