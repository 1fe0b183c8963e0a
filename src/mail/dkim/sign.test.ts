// Signatures, verified by two programs that are not ours: mailauth (strict) and Python's dkimpy (where it is installed).
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { before, test } from "node:test";
import fc from "fast-check";
import { dkimVerify } from "mailauth";
import { dkimRecord, generateDkimKey, loadSigningKey } from "./key.ts";
import { type SigningKey, signMessage } from "./sign.ts";

const NOW_S = 1_760_000_000;
const DKIMPY = join(import.meta.dirname, "dkimpy-verify.py");
const hasDkimpy = spawnSync("python3", ["-c", "import dkim, nacl"]).status === 0;
const dkimpyMissing = hasDkimpy
  ? false
  : "Python's dkim (with nacl) is not installed: apt-get install python3-dkim python3-nacl";

let rsa: SigningKey;
let ed25519: SigningKey;
const zone = new Map<string, string>();

before(async () => {
  const made = [];
  for (const [algorithm, selector] of [
    ["rsa", "postern1"],
    ["ed25519", "postern2"],
  ] as const) {
    const key = await generateDkimKey(algorithm);
    zone.set(`${selector}._domainkey.example.com`, dkimRecord(key.public_key, algorithm));
    made.push(loadSigningKey(key.private_key_pem, { domain: "example.com", selector }));
  }
  [rsa, ed25519] = made as [SigningKey, SigningKey];
});

const MESSAGE = [
  "From: Anna <anna@example.com>",
  "To: bob@example.net",
  "Subject: a subject",
  "  that is folded",
  "Date: Thu, 14 Jan 2027 12:00:00 +0000",
  "Message-ID: <1@example.com>",
  "MIME-Version: 1.0",
  "Content-Type: text/plain; charset=utf-8",
  "Content-Transfer-Encoding: 8bit",
  "Feedback-ID: 1:2:3:postern",
  "",
  "Hello  Bob, \t",
  "",
  "gr\u00fc\u00dfe",
  "",
  "",
].join("\r\n");

async function signed(message: Buffer, keys = [rsa, ed25519]): Promise<Buffer> {
  return Buffer.concat([await signMessage(message, keys, { now_s: NOW_S }), message]);
}

async function verifiedByMailauth(message: Buffer): Promise<string[]> {
  const resolver = async (name: string) => {
    const txt = zone.get(name);
    if (txt === undefined) throw Object.assign(new Error("not found"), { code: "ENOTFOUND" });
    return [[txt]];
  };
  const options = { resolver, strict: true, curTime: new Date(NOW_S * 1000), sender: "anna@example.com" };
  const { results } = await dkimVerify(message, options as Parameters<typeof dkimVerify>[1]);
  return results.map((entry) => String(entry.status.result));
}

function verifiedByDkimpy(messages: Buffer[]): unknown[][] {
  const txt = Object.fromEntries(zone);
  const input = messages.map((message) => JSON.stringify({ message: message.toString("base64"), txt })).join("\n");
  const run = spawnSync("python3", [DKIMPY], { input, encoding: "utf8", maxBuffer: 1 << 26 });
  assert.equal(run.status, 0, run.stderr);
  return run.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

test("both signatures of one message verify with mailauth in strict mode", async () => {
  assert.deepEqual(await verifiedByMailauth(await signed(Buffer.from(MESSAGE))), ["pass", "pass"]);
});

test("both signatures of one message verify with dkimpy", { skip: dkimpyMissing }, async () => {
  assert.deepEqual(verifiedByDkimpy([await signed(Buffer.from(MESSAGE))]), [[true, true]]);
});

test("the header is folded at 78, has t= and relaxed/relaxed, and no l=", async () => {
  const header = (await signMessage(Buffer.from(MESSAGE), [rsa, ed25519], { now_s: NOW_S + 0.7 })).toString();
  assert.ok(header.endsWith("\r\n"));
  for (const line of header.split("\r\n")) assert.ok(line.length <= 78, line);
  assert.equal(header.match(/^DKIM-Signature: v=1; a=(rsa|ed25519)-sha256; c=relaxed\/relaxed;/gm)?.length, 2);
  assert.ok(header.includes(`t=${NOW_S};`));
  assert.ok(!/[;\s]l=/.test(header));
});

test("fields that will stand in front of the message are signed as if they stood there", async () => {
  const above = Buffer.from("List-Unsubscribe:\r\n <https://mail.example/u/1>\r\nCFBL-Feedback-ID: 1\r\n");
  const message = Buffer.from(MESSAGE);
  const apart = await signMessage(message, [rsa], { now_s: NOW_S, above });
  const whole = await signMessage(Buffer.concat([above, message]), [rsa], { now_s: NOW_S });
  assert.equal(apart.toString(), whole.toString());
});

test("every protected field is listed once more than it occurs", async () => {
  const header = (await signMessage(Buffer.from(MESSAGE), [rsa], { now_s: NOW_S })).toString();
  const listed =
    header
      .replace(/\s/g, "")
      .match(/h=([^;]+);/)?.[1]
      ?.split(":") ?? [];
  const count = (name: string) => listed.filter((entry) => entry === name).length;
  for (const name of ["From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type"])
    assert.equal(count(name), 2);
  for (const name of ["Cc", "Reply-To", "List-Unsubscribe", "List-Unsubscribe-Post"]) assert.equal(count(name), 1);
  assert.equal(count("Feedback-ID"), 1);
  assert.equal(count("References"), 0);
});

test("a protected field added after signing breaks both signatures", async () => {
  const added = [
    "Subject: other",
    "From: eve@example.org",
    "Cc: x@example.org",
    "Reply-To: eve@example.org",
    "List-Unsubscribe: <x:>",
  ];
  const messages: Buffer[] = [];
  for (const line of added) {
    const message = Buffer.concat([Buffer.from(`${line}\r\n`), await signed(Buffer.from(MESSAGE))]);
    assert.deepEqual(await verifiedByMailauth(message), ["fail", "fail"], line);
    messages.push(message);
  }
  if (!hasDkimpy) return;
  for (const results of verifiedByDkimpy(messages)) assert.ok(results.every((result) => result !== true));
});

test("a changed or lengthened body breaks the signature", async () => {
  const message = (await signed(Buffer.from(MESSAGE), [rsa])).toString("latin1");
  for (const changed of [message.replace("Bob", "Rob"), `${message}more\r\n`]) {
    assert.deepEqual(await verifiedByMailauth(Buffer.from(changed, "latin1")), ["fail"]);
  }
});

test("a message without its last CRLF is signed as it leaves, with one", async () => {
  for (const ending of ["no line end", "spaces at the end   ", "line\r\n   "]) {
    const message = await signed(Buffer.from(`${MESSAGE}${ending}`));
    const sent = Buffer.concat([message, Buffer.from("\r\n")]);
    assert.deepEqual(await verifiedByMailauth(sent), ["pass", "pass"], JSON.stringify(ending));
  }
});

test("a long domain and selector stay whole and verify", async () => {
  const domain = `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.example.com`;
  const key = { ...rsa, domain, selector: "s".repeat(63) };
  zone.set(`${key.selector}._domainkey.${domain}`, zone.get("postern1._domainkey.example.com") ?? "");
  assert.deepEqual(await verifiedByMailauth(await signed(Buffer.from(MESSAGE), [key])), ["pass"]);
});

test("a domain or selector that could break out of the header is an error", async () => {
  for (const bad of ["a;b", "a\r\nX: y", "", "-a", "a b"]) {
    await assert.rejects(signMessage(Buffer.from(MESSAGE), [{ ...rsa, domain: bad }], { now_s: NOW_S }), /malformed/);
    await assert.rejects(signMessage(Buffer.from(MESSAGE), [{ ...rsa, selector: bad }], { now_s: NOW_S }), /malformed/);
  }
});

test("no key gives no header", async () => {
  assert.equal((await signMessage(Buffer.from(MESSAGE), [], { now_s: NOW_S })).length, 0);
});

test("thousands of fields of one name give a bounded header", async () => {
  const message = Buffer.from("To: x@example.net\r\n".repeat(20_000) + MESSAGE);
  const header = await signMessage(message, [rsa], { now_s: NOW_S });
  assert.ok(header.length < 2000, String(header.length));
});

test("a message with more fields of one name than are listed still verifies", async () => {
  for (const count of [49, 50, 51, 60]) {
    const message = Buffer.from(`From: a@example.com\r\n${"To: b@example.net\r\n".repeat(count)}\r\nx\r\n`);
    assert.deepEqual(await verifiedByMailauth(await signed(message)), ["pass", "pass"], `${count} fields`);
  }
});

test("a body of several slices hashes as one", async () => {
  const line = "a line \t with some   space in it \r\n\r\n";
  const message = Buffer.from(MESSAGE + line.repeat(90_000) + "\r\n\r\n");
  assert.deepEqual(await verifiedByMailauth(await signed(message, [ed25519])), ["pass"]);
});

// Header and body bytes of every kind that may leave: folded, repeated, empty and 8-bit fields, blank lines anywhere.
const name = fc.constantFrom(
  "From",
  "to",
  "Subject",
  "X-Odd",
  "Received",
  "Content-Type",
  "LIST-UNSUBSCRIBE",
  "References",
  "Date",
);
const word = fc.stringMatching(/^[!-~]{0,12}$/);
const gap = fc.constantFrom(" ", "  ", "\t", "\r\n ", "\r\n\t", " \r\n   ");
const value = fc
  .array(fc.oneof(word, gap, fc.constant("gr\u00fc\u00df")), { maxLength: 8 })
  .map((parts) => ` a${parts.join("")}`);
const field = fc.tuple(name, value).map(([key, text]) => `${key}:${text.replace(/\s*$/, "")}\r\n`);
const bodyPiece = fc.oneof(word, fc.constantFrom(" ", "\t", "\r\n", "\r\n\r\n", " \r\n", ".", "\r\n.", "\u00e9"));
const randomMessage = fc.record({
  fields: fc.array(field, { maxLength: 8 }),
  body: fc.array(bodyPiece, { maxLength: 30 }),
});

test("signatures over random messages verify with both verifiers", async () => {
  const forDkimpy: Buffer[] = [];
  const keys = [{ ...ed25519 }, rsa];
  await fc.assert(
    fc.asyncProperty(randomMessage, async ({ fields, body }) => {
      const text = `From: anna@example.com\r\n${fields.join("")}\r\n${body.join("")}`;
      const complete = text.endsWith("\r\n") ? text : `${text}\r\n`;
      const message = await signed(Buffer.from(complete), keys);
      forDkimpy.push(message);
      assert.deepEqual(await verifiedByMailauth(message), ["pass", "pass"]);
    }),
    { numRuns: 400 },
  );
  if (!hasDkimpy) return;
  for (const [index, results] of verifiedByDkimpy(forDkimpy).entries()) {
    assert.deepEqual(results, [true, true], forDkimpy[index]?.toString("latin1"));
  }
});
