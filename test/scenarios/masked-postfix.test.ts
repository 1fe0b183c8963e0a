// Masked addresses between two real mail servers: one Postfix is the contact's, another the real mailbox's. A mail goes
// C → A → D, is answered D → R → C, and answered again; both mailboxes are read as Postfix stored them. Whatever the
// contact's server got in its life is searched for anything of the mailbox: address, host, time zone, program.
import assert from "node:assert/strict";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import PostalMime, { type Email } from "postal-mime";
import { startReceiving } from "../../src/app.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { freePort } from "../support/free-port.ts";
import { nodeStyleResolver } from "../support/node-resolver.ts";
import { type Postfix, postfixMissing, startPostfix } from "../support/postfix.ts";
import { rawSmtp } from "../support/raw-smtp.ts";
import { until } from "../support/until.ts";

const missing = postfixMissing();
const C = "shop@contact.example";
const D = "anna.real@home.example";
const HOST_C = { address: "127.0.0.2", hostname: "mail.contact.example" };
const HOST_D = { address: "127.0.0.3", hostname: "laptop-relay.home.example" };
const MASKED = "masked.postern.test";
const NOBODY = 65_534;

let api: TestApi;
let dns: DnsServer;
let mx: Awaited<ReturnType<typeof startReceiving>>;
let contact: Postfix;
let mailbox: Postfix;

before(async () => {
  if (missing) return;
  dns = await startDnsServer();
  const port = await freePort();
  api = await testApi({
    POSTERN_DNS: dns.address,
    POSTERN_MX: "127.0.0.1:0",
    POSTERN_TESTING_OUTBOUND_PORT: String(port),
  });
  await api.startMta();
  mx = await startReceiving(api.world, api.engine);
  const start = (host: typeof HOST_C, domain: string) =>
    startPostfix((dir) => mailboxOf(dir, domain, host.address), { ...host, port });
  [contact, mailbox] = await Promise.all([start(HOST_C, "contact.example"), start(HOST_D, "home.example")]);
  for (const [domain, { address, hostname }] of [
    ["contact.example", HOST_C],
    ["home.example", HOST_D],
  ] as const) {
    dns.set(domain, "MX", [{ exchange: hostname, preference: 10 }]);
    dns.set(hostname, "A", [address]);
    dns.set(domain, "TXT", [`v=spf1 ip4:${address} -all`]);
  }
  const { body } = await api.ask("GET", "/v1/masked/domain");
  for (const { type, name, value } of body.records) if (type === "TXT") dns.set(name, type, [value]);
});

after(async () => {
  if (missing) return;
  contact?.stop();
  mailbox?.stop();
  await mx.stop();
  await api.close();
  await dns.stop();
});

/** One mailbox for the domain; everything else goes to our MX, from the server's own address. */
function mailboxOf(dir: string, domain: string, address: string): string {
  mkdirSync(join(dir, "mail"));
  chmodSync(join(dir, "mail"), 0o700);
  chownSync(join(dir, "mail"), NOBODY, NOBODY);
  return `mydestination =
virtual_mailbox_domains = ${domain}
virtual_mailbox_base = ${join(dir, "mail")}
virtual_mailbox_maps = static:inbox/
virtual_uid_maps = static:${NOBODY}
virtual_gid_maps = static:${NOBODY}
virtual_minimum_uid = 1
relayhost = [127.0.0.1]:${mx.port}
smtp_bind_address = ${address}
smtp_dns_support_level = disabled
smtp_tls_security_level = may
smtpd_relay_restrictions = permit_mynetworks, reject`;
}

type Stored = { raw: string; mail: Email };

/** The mails in a mailbox once there are so many, in the order in which they came. */
async function stored(postfix: Postfix, count: number): Promise<Stored[]> {
  const folder = join(postfix.dir, "mail/inbox/new");
  const filled = async () => {
    const names = existsSync(folder) ? readdirSync(folder) : [];
    return names.length >= count && names;
  };
  const names = await until(() => `${count} mails\n${logs()}`, filled);
  const paths = names.map((name) => join(folder, name));
  // Names of one second are not in the order of their times (https://cr.yp.to/proto/maildir.html).
  const writtenAt = new Map(paths.map((path) => [path, statSync(path, { bigint: true }).mtimeNs]));
  paths.sort((a, b) => Number((writtenAt.get(a) as bigint) - (writtenAt.get(b) as bigint)));
  const raws = paths.map((path) => readFileSync(path, "latin1"));
  return Promise.all(raws.map(async (raw) => ({ raw, mail: await PostalMime.parse(Buffer.from(raw, "latin1")) })));
}

function logs(): string {
  return [contact, mailbox].map(({ dir }) => readFileSync(join(dir, "maillog"), "utf8").slice(-2_000)).join("\n---\n");
}

/** A user of the server hands it a mail. */
async function write(server: Postfix, address: string, mail: { from: string; to: string; content: string }) {
  const smtp = await rawSmtp(server.port, { host: address });
  await smtp.reply();
  const answer = await smtp.deliver({ ...mail, to: [mail.to], helo: "users-notebook.local" });
  smtp.destroy();
  assert.equal(answer.code, 250, answer.text);
}

const verified = async (raw: string) => {
  const wire = Buffer.from(raw.replace(/\r?\n/g, "\r\n"), "latin1");
  const { results } = await dkimVerify(wire, { resolver: nodeStyleResolver(api.world.resolver) as never });
  return results.map(({ signingDomain, status }) => `${signingDomain} ${status.result}`);
};

test("C → A → D → R → C → A → D: threads hold on both sides, and C's server never sees anything of D", {
  skip: missing ?? false,
}, async () => {
  const made = await api.ask("POST", "/v1/masked/aliases", { forward_to: [D], display_name: "Anna" });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { alias } = made.body;
  const A = `${alias.address}@${MASKED}`;
  const asked = (await stored(mailbox, 1))[0]?.mail;
  const link = /https:\/\/api\.postern\.test(\/masked\/confirm\/\S+)/.exec(asked?.text ?? "")?.[1] ?? "";
  assert.equal((await api.ask("POST", link, undefined, { key: null })).status, 200);

  const first = `From: The Shop <${C}>\r\nTo: <${A}>\r\nSubject: Your order\r\nDate: Fri, 20 Nov 2026 10:00:00 -0500\r\nMessage-ID: <order-1@contact.example>\r\n\r\nIs it right?\r\n`;
  await write(contact, HOST_C.address, { from: C, to: A, content: first });
  const forward = (await stored(mailbox, 2))[1] as Stored;
  const R = forward.mail.from?.address ?? "";
  assert.match(R, /^r\.[a-z2-7]{26}@masked\.postern\.test$/);
  assert.equal(forward.mail.from?.name, "The Shop (shop at contact.example)");
  assert.deepEqual(
    forward.mail.to?.map(({ address }) => address),
    [A],
  );
  assert.equal(forward.mail.messageId, "<order-1@contact.example>");
  assert.deepEqual(await verified(forward.raw), [`${MASKED} pass`]);

  const reply = `Received: from [192.168.17.4] (users-notebook.local [203.0.113.77]) by ${HOST_D.hostname}; Fri, 20 Nov 2026 16:05:00 +0530\r\nFrom: Anna Real <${D}>\r\nTo: "The Shop (shop at contact.example)" <${R}>\r\nSubject: Re: Your order\r\nDate: Fri, 20 Nov 2026 20:35:00 +0530\r\nMessage-ID: <d-1@${HOST_D.hostname}>\r\nIn-Reply-To: <order-1@contact.example>\r\nReferences: <order-1@contact.example>\r\nUser-Agent: SecretClient/4.2\r\nX-Originating-IP: [203.0.113.77]\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8; format=flowed\r\nContent-Language: en-US\r\n\r\nYes, thank you.\r\n\r\nOn 20/11/2026 20:30, The Shop (shop at contact.example) wrote:\r\n> Is it right?\r\n> sent to ${D}\r\n`;
  await write(mailbox, HOST_D.address, { from: D, to: R, content: reply });
  const answer = (await stored(contact, 1))[0] as Stored;
  assert.equal(answer.mail.from?.address, A);
  assert.equal(answer.mail.from?.name, "Anna");
  assert.deepEqual(
    answer.mail.to?.map(({ address, name }) => [name, address]),
    [["The Shop", C]],
  );
  assert.equal(answer.mail.inReplyTo, "<order-1@contact.example>");
  assert.match(answer.mail.text ?? "", /^Yes, thank you\./);
  assert.match(answer.mail.text ?? "", new RegExp(`> sent to ${A.replaceAll(".", "\\.")}`));
  assert.deepEqual(await verified(answer.raw), [`${MASKED} pass`]);

  const outer = answer.mail.messageId as string;
  const second = `From: The Shop <${C}>\r\nTo: Anna <${A}>\r\nSubject: Re: Re: Your order\r\nDate: Fri, 20 Nov 2026 11:00:00 -0500\r\nMessage-ID: <order-2@contact.example>\r\nIn-Reply-To: ${outer}\r\nReferences: <order-1@contact.example> ${outer}\r\n\r\nGood.\r\n`;
  await write(contact, HOST_C.address, { from: C, to: A, content: second });
  // Beside it what D learns: that the quote named the mailbox.
  const fourth = (await stored(mailbox, 4)).slice(2);
  const again = fourth.find(({ mail }) => mail.subject === "Re: Re: Your order") as Stored;
  assert.ok(fourth.some(({ mail }) => mail.subject === "Your reply was sent, with something hidden in it"));
  assert.equal(again.mail.inReplyTo, `<d-1@${HOST_D.hostname}>`);
  assert.equal(again.mail.references, `<order-1@contact.example> <d-1@${HOST_D.hostname}>`);
  assert.equal(again.mail.from?.address, R);

  const seen = (await stored(contact, 1)).map(({ raw }) => raw).join("\n") + readFileSync(join(contact.dir, "maillog"));
  for (const secret of [
    /anna\.real/i,
    /home\.example/i,
    /laptop-relay/i,
    /\+0530/,
    /203\.0\.113\.77/,
    /192\.168\.17/,
  ]) {
    assert.doesNotMatch(seen, secret);
  }
  for (const secret of [/SecretClient/i, /notebook/i, /127\.0\.0\.3/, /r\.[a-z2-7]{26}/]) {
    assert.doesNotMatch(answer.raw, secret);
  }
  const { body } = await api.ask("GET", `/v1/masked/aliases/${alias.id}`);
  const { emails_received, emails_forwarded, emails_replied } = body.alias;
  assert.deepEqual([emails_received, emails_forwarded, emails_replied], [2, 2, 1]);
});
