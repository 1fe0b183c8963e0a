// Mail as a real Postfix stores it verifies with Python's dkimverify and with mailauth, and reads as it was written.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import PostalMime from "postal-mime";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { nodeStyleResolver } from "../support/node-resolver.ts";
import { type Postfix, postfixMissing, postfixVersion, startPostfix } from "../support/postfix.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const missing = postfixMissing();
const pythonDkim = spawnSync("/usr/bin/python3", ["-c", "import dkim"]).status === 0;
const NOBODY = 65_534;

let api: TestApi;
let dns: DnsServer;
let postfix: Postfix;
let keyRecord = "";

before(async () => {
  if (missing) return;
  dns = await startDnsServer();
  postfix = await startPostfix((dir) => {
    mkdirSync(join(dir, "mail"));
    chmodSync(join(dir, "mail"), 0o700);
    chownSync(join(dir, "mail"), NOBODY, NOBODY);
    return `mydestination =
virtual_mailbox_domains = recipient.example
virtual_mailbox_base = ${join(dir, "mail")}
virtual_mailbox_maps = static:inbox/
virtual_uid_maps = static:${NOBODY}
virtual_gid_maps = static:${NOBODY}
virtual_minimum_uid = 1`;
  });
  api = await testApi({ POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(postfix.port) });
  await api.startMta();
  await addVerifiedDomain(api, dns, "sender.example");
  receiveAt(dns, "recipient.example");
  const { body } = await api.ask("GET", "/v1/domains/sender.example/dns");
  keyRecord = body.records.find((record: { purpose: string }) => record.purpose === "dkim").value;
});

after(async () => {
  if (missing) return;
  await api.close();
  postfix.stop();
  await dns.stop();
});

/** The one message in the mailbox, as Postfix stored it. */
function stored(): string {
  const folder = join(postfix.dir, "mail/inbox/new");
  const [name] = readdirSync(folder);
  return readFileSync(join(folder, name as string), "latin1");
}

test("a message stored by Postfix verifies with dkimverify and mailauth", { skip: missing ?? false }, async () => {
  const sent = await api.ask("POST", "/v1/send", {
    from: "Größe & Söhne <post@sender.example>",
    to: ["Ånna <anna@recipient.example>"],
    subject: "Здравствуйте, мир — und ein langer Betreff, der umgebrochen werden muss, weil er so lang ist 🎉",
    html_body: `<p>${"Ein langer Satz ohne Zeilenumbruch. ".repeat(60)}</p><p>.</p>`,
    text_body: ".\r\nA line with a dot, trailing space \nFrom here on\n\n\n",
    attachments: [{ filename: "Übersicht.csv", content: Buffer.from("a;b\r\n1;2\r\n").toString("base64") }],
  });
  assert.equal(sent.status, 202, JSON.stringify(sent.body));
  await emailWithStatus(api, sent.body.id, ["delivered"]);
  const message = await waitForMessage();
  const wire = Buffer.from(message.replace(/\r?\n/g, "\r\n"), "latin1");

  const verdict = await dkimVerify(wire, { resolver: nodeStyleResolver(api.world.resolver) as never });
  assert.equal(verdict.results[0]?.status.result, "pass");
  if (pythonDkim) assert.equal(verifyWithPython(wire), "pass");

  const parsed = await PostalMime.parse(wire);
  assert.match(parsed.subject ?? "", /^Здравствуйте, мир — .* 🎉$/);
  assert.equal(parsed.from?.name, "Größe & Söhne");
  assert.equal(parsed.attachments[0]?.filename, "Übersicht.csv");
  assert.match(parsed.text ?? "", /^\.\n?/);
});

function waitForMessage(): Promise<string> {
  return until("Postfix has stored the message", () => {
    try {
      return stored();
    } catch {
      return null; // not yet there
    }
  });
}

/** dkimpy with the key record handed in: it needs no name server. */
function verifyWithPython(wire: Buffer): string {
  const file = join(postfix.dir, "message.eml");
  writeFileSync(file, wire);
  const script = `import dkim,sys
ok = dkim.verify(open(sys.argv[1],'rb').read(), dnsfunc=lambda name, timeout=5: sys.argv[2].encode())
print('pass' if ok else 'fail')`;
  return execFileSync("/usr/bin/python3", ["-c", script, file, keyRecord], { encoding: "utf8" }).trim();
}

test("its version can be read where /etc/postfix has no settings", { skip: missing ?? false }, () => {
  assert.match(postfixVersion(), /^postfix \d+\.\d+/);
});
