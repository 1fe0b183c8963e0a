// Keys that people paste, and mail encrypted for them: decrypted again by OpenPGP.js, and by GnuPG where it is installed.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  createMessage,
  decrypt,
  encrypt,
  generateKey,
  readKey,
  readMessage,
  readPrivateKey,
  revokeKey,
  sign,
} from "openpgp";
import PostalMime from "postal-mime";
import { encryptMail } from "./encrypt-mail.ts";
import { readPublicKey } from "./read-public-key.ts";

const DAY_MS = 86_400_000;
const now = Date.now();
const person = { userIDs: [{ name: "Anna", email: "anna@home.example" }] };
const curve = { type: "curve25519" as const, ...person };
const anna = await generateKey(curve);
const MAIL = Buffer.from(
  [
    "Authentication-Results: mx.postern.test; spf=pass",
    'From: "Shop (shop at contact.example)" <r.aaaaaaaaaaaaaaaaaaaaaaaaaa@own.example>',
    "To: alias@own.example",
    "Subject: =?utf-8?Q?Your_order_1001_=E2=9C=93?=",
    "Date: Thu, 26 Nov 2026 10:00:00 +0000",
    "Message-ID: <c1@contact.example>",
    "MIME-Version: 1.0",
    'Content-Type: text/plain; charset=utf-8; hp="clear"',
    "Content-Transfer-Encoding: 8bit",
    "",
    "Dear customer, caf\u00e9",
    "",
  ].join("\r\n"),
);
const encrypted = (key: string, more: object = {}, mail: Buffer = MAIL) =>
  encryptMail(mail, { key, hide_subject: true, now_ms: Date.now(), ...more });
const opened = async (mail: Buffer, privateKey = anna.privateKey) => {
  const parsed = await PostalMime.parse(mail);
  const file = parsed.attachments.find(({ mimeType }) => mimeType === "application/octet-stream");
  const armoredMessage = Buffer.from(file?.content as ArrayBuffer).toString();
  const { data } = await decrypt({
    message: await readMessage({ armoredMessage }),
    decryptionKeys: await readPrivateKey({ armoredKey: privateKey }),
    format: "binary",
  });
  return Buffer.from(data as Uint8Array);
};
const problemOf = async (text: string, at = Date.now()) => {
  const read = await readPublicKey(text, at);
  return read.ok ? null : read.problem;
};

test("a mail is encrypted with its header within, and names how to answer outside", async () => {
  const mail = (await encrypted(anna.publicKey)) as Buffer;
  const { headers, from, subject, messageId } = await PostalMime.parse(mail);
  assert.deepEqual(
    [from?.address, subject, messageId],
    ["r.aaaaaaaaaaaaaaaaaaaaaaaaaa@own.example", "...", "<c1@contact.example>"],
  );
  const type = headers.find(({ key }) => key === "content-type")?.value ?? "";
  assert.match(type, /^multipart\/encrypted; protocol="application\/pgp-encrypted"; boundary="/);
  assert.doesNotMatch(mail.toString("latin1"), /order|Dear/);
  assert.match(mail.toString("latin1"), /^Authentication-Results: mx/);
  const within = await opened(mail);
  const inner = await PostalMime.parse(within);
  assert.deepEqual([inner.subject, inner.text?.trim()], ["Your order 1001 \u2713", "Dear customer, caf\u00e9"]);
  const text = within.toString("latin1");
  assert.match(text, /^Content-Type: text\/plain; charset=utf-8;\r\n protected-headers="v1"; hp="cipher"\r$/m);
  assert.match(text, /^HP-Outer: Subject: \.\.\.\r$/m);
  assert.match(text, /^HP-Outer: Message-ID: <c1@contact\.example>\r$/m);
  assert.doesNotMatch(text, /Authentication-Results|hp="clear"/);
  const shown = (await encrypted(anna.publicKey, { hide_subject: false })) as Buffer;
  assert.equal((await PostalMime.parse(shown)).subject, "Your order 1001 \u2713");
});

test("a foreign mark goes from the type of the content, and quoted values stay whole", async () => {
  const typed = (type: string) =>
    Buffer.from(MAIL.toString("latin1").replace(/Content-Type: .*/, `Content-Type: ${type}`));
  for (const [type, wanted] of [
    ['multipart/mixed; boundary="a; hp=b"', 'multipart/mixed; boundary="a; hp=b"'],
    ['text/plain; name="x; protected-headers=v1.txt"; hp="clear"', 'text/plain; name="x; protected-headers=v1.txt"'],
    ['text/plain; name="a \\"; hp=clear; b"; charset=utf-8', 'text/plain; name="a \\"; hp=clear; b"; charset=utf-8'],
    ['text/plain; hp=cl"ear"; charset=utf-8', "text/plain; charset=utf-8"],
    ['text/plain; name="x; hp=clear; charset=utf-8', 'text/plain; name="x; charset=utf-8'],
    ['text/plain; charset=utf-8; hp="clear; x=y', "text/plain; charset=utf-8"],
    ["text/plain; HP*0=cl; hp*1*=ear; protected-headers*=us-ascii''v1; charset=utf-8", "text/plain; charset=utf-8"],
  ] as const) {
    const within = await opened((await encrypted(anna.publicKey, {}, typed(type))) as Buffer);
    const [, found] =
      /^Content-Type: (.*);\r\n protected-headers="v1"; hp="cipher"\r$/m.exec(within.toString("latin1")) ?? [];
    assert.equal(found, wanted);
  }
});

test("GnuPG opens it", async (context) => {
  const home = mkdtempSync(join(tmpdir(), "gpg-"));
  const gpg = (args: string[]) =>
    execFileSync("gpg", ["--homedir", home, "--batch", "--quiet", "--no-tty", "--pinentry-mode", "loopback", ...args], {
      stdio: ["ignore", "pipe", "ignore"],
    });
  try {
    try {
      gpg(["--version"]);
    } catch {
      context.skip("gpg is not installed");
      return;
    }
    gpg(["--passphrase", "", "--quick-generate-key", "anna@home.example", "default", "default", "1y"]);
    const read = await readPublicKey(gpg(["--armor", "--export"]).toString(), Date.now());
    assert.ok(read.ok, JSON.stringify(read));
    assert.ok(read.key.expires_at && read.key.expires_at.getTime() > now + 300 * DAY_MS);
    const mail = ((await encrypted(read.key.armored)) as Buffer).toString("latin1");
    const file = join(home, "mail.asc");
    writeFileSync(file, mail.slice(mail.indexOf("-----BEGIN PGP MESSAGE")));
    const within = await PostalMime.parse(new Uint8Array(gpg(["--decrypt", file])));
    assert.deepEqual([within.subject, within.text?.trim()], ["Your order 1001 \u2713", "Dear customer, caf\u00e9"]);
  } finally {
    try {
      execFileSync("gpgconf", ["--homedir", home, "--kill", "all"], { stdio: "ignore" });
    } catch {}
    rmSync(home, { recursive: true, force: true });
  }
});

test("what is encrypted already stays as it is, and what only says so does not", async () => {
  const message = await createMessage({ text: "secret" });
  const armor = String(await encrypt({ message, encryptionKeys: await readKey({ armoredKey: anna.publicKey }) }));
  const signingKeys = await readPrivateKey({ armoredKey: anna.privateKey });
  const signedText = String(await sign({ message: await createMessage({ text: "clear" }), signingKeys }));
  const whole = (type: string, body: string) =>
    Buffer.from(`From: a@b.example\r\nSubject: hi\r\nContent-Type: ${type}\r\n\r\n${body}`);
  const mime = 'multipart/encrypted; protocol="application/pgp-encrypted"; boundary=x';
  const parts = (second: string) =>
    `--x\r\nContent-Type: application/pgp-encrypted\r\n\r\nVersion: 1\r\n\r\n--x\r\nContent-Type: application/octet-stream\r\n\r\n${second}\r\n--x--\r\n`;
  const enveloped = Buffer.from("30820100 06092a864886f70d010703 a0820100".replaceAll(" ", ""), "hex").toString(
    "base64",
  );
  const signed = Buffer.from("30820100 06092a864886f70d010702 a0820100".replaceAll(" ", ""), "hex").toString("base64");
  const cases: [what: string, mail: Buffer, again: boolean][] = [
    ["PGP/MIME", whole(mime, parts(armor)), false],
    ["PGP/MIME with text", whole(mime, parts("clear")), true],
    ["PGP/MIME with text behind", whole(mime, parts(`${armor}\r\nclear`)), true],
    ["PGP/MIME with a text that is signed alone", whole(mime, parts(signedText)), true],
    ["armour", whole("text/plain", armor), false],
    ["armour with a comment", whole("text/plain", armor.replace("\n\n", "\nComment: by hand\n\n")), false],
    ["armour of a text that is signed alone", whole("text/plain", signedText), true],
    [
      "a text in the marks of armour",
      whole("text/plain", armor.replace(/\n\n[\s\S]*(?=\n-----END)/, "\n\nclear words.")),
      true,
    ],
    ["armour in a text", whole("text/plain", `look:\r\n${armor}`), true],
    ["S/MIME", whole("application/pkcs7-mime; smime-type=enveloped-data", enveloped), false],
    ["S/MIME, signed alone", whole("application/pkcs7-mime; smime-type=enveloped-data", signed), true],
  ];
  for (const [what, mail, again] of cases) {
    const sent = (await encrypted(anna.publicKey, {}, mail)) as Buffer;
    assert.equal(!sent.equals(mail), again, what);
  }
});

test("a key is refused with what is wrong with it", async () => {
  assert.equal(await problemOf(anna.publicKey), null);
  assert.match((await problemOf("hello")) ?? "", /not an armoured/);
  assert.match(
    (await problemOf(anna.publicKey.slice(0, 200) + anna.publicKey.slice(260))) ?? "",
    /not an armoured|signature/,
  );
  assert.match((await problemOf(anna.privateKey)) ?? "", /private key/);
  assert.match((await problemOf(`${anna.publicKey}${"x".repeat(70_000)}`)) ?? "", /longer than 65536/);
  const ends = await generateKey({ ...curve, keyExpirationTime: 86_400, date: new Date(now - DAY_MS / 2) });
  const read = await readPublicKey(ends.publicKey, now);
  assert.ok(
    read.ok && Math.abs((read.key.expires_at?.getTime() ?? 0) - now - DAY_MS / 2) < 2_000,
    JSON.stringify(read),
  );
  assert.equal(await problemOf(ends.publicKey, now + DAY_MS), "is expired");
  assert.equal(await encrypted(ends.publicKey, { now_ms: now + DAY_MS }), null, "nothing leaves unencrypted");
  assert.equal(await encrypted("", {}), null);
  const revoked = await revokeKey({
    key: await readKey({ armoredKey: anna.publicKey }),
    revocationCertificate: anna.revocationCertificate,
    format: "armored",
  });
  assert.equal(await problemOf(revoked.publicKey), "is revoked");
  const signing = await generateKey({ ...curve, subkeys: [{ sign: true }] });
  assert.match((await problemOf(signing.publicKey)) ?? "", /cannot encrypt/);
  const weak = await generateKey({ type: "rsa", rsaBits: 1024, ...person, config: { minRSABits: 1024 } });
  assert.match((await problemOf(weak.publicKey)) ?? "", /too weak/);
});

test("two keys pasted one after the other are refused; a key after a byte order mark is read", async () => {
  const other = await generateKey(curve);
  assert.equal(await problemOf(`${anna.publicKey}\n${other.publicKey}`), "holds more than one key: give one");
  assert.equal(await problemOf(`\ufeff${anna.publicKey}`), null);
});

test("a key ends when the last of its subkeys that can encrypt does", async () => {
  const subkeys = (...days: number[]) => days.map((n) => ({ keyExpirationTime: n * 86_400 }));
  for (const [days, end] of [
    [[30, 60], 60],
    [[60, 30], 60],
    [[30, 0], null],
    [[30], 30],
  ] as const) {
    const two = await generateKey({ ...curve, subkeys: subkeys(...days), date: new Date(now) });
    const read = await readPublicKey(two.publicKey, now + 1_000);
    const shown = read.ok && read.key.expires_at;
    const isRight = end === null ? shown === null : shown && Math.abs(shown.getTime() - now - end * DAY_MS) < 5_000;
    assert.ok(isRight, `${days}: ${JSON.stringify(shown)}`);
    const afterFirst = await encrypted(two.publicKey, { now_ms: now + 45 * DAY_MS });
    assert.equal(afterFirst === null, end === 30, `${days}`);
  }
});
