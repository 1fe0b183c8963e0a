// DKIM and ARC: signatures, keys, canonical forms, signing and verifying; mailauth is the second opinion.
import assert from "node:assert/strict";
import { createHash, createPublicKey, generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { authenticate as authenticateTheirs } from "mailauth";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import { authenticate } from "../../../src/mail/auth/authenticate.ts";
import { asAnswers, fixedResolver } from "../../../src/mail/auth/look-ups.fixture.ts";
import { parseDkimSignature, signedNamesMax } from "../../../src/mail/auth/signature.ts";
import { readKeyRecord } from "../../../src/mail/auth/signing-key.ts";
import { stripForged } from "../../../src/mail/auth/strip-forged.ts";
import { hashBody } from "../../../src/mail/dkim/body-hash.ts";
import {
  type Canonicalization,
  canonicalizeHeader,
  canonicalSlices,
  splitFields,
} from "../../../src/mail/dkim/canonicalize.ts";
import { compareDkimRecord, dkimRecord } from "../../../src/mail/dkim/key.ts";
import { type SigningKey, signMessage } from "../../../src/mail/dkim/sign.ts";
import { splitMessage } from "../../../src/mail/mime/parse-head.ts";
import { assertSameBytes } from "../invariants.ts";
import type { Target } from "../target.ts";

const DNS = JSON.parse(readFileSync(new URL("../corpus/signed-dns.json", import.meta.url), "utf8"));
const NOW_S = 1_790_000_100;
const TAGS = [
  ...[
    "v=1;",
    "a=rsa-sha256;",
    "a=ed25519-sha256;",
    "c=simple/simple;",
    "c=relaxed;",
    "d=example.com;",
    "i=@example.com;",
    "l=5;",
  ],
  ...[
    "x=1;",
    "t=9999999999;",
    "h=from:to;",
    "bh=",
    "b=",
    "q=dns/txt;",
    "s=s1;",
    "z=",
    "\r\n\t",
    " ",
    "h=from",
    ":",
    "i=@sub.example.com;",
  ],
  ...[
    "DKIM-Signature: ",
    "\r\nFrom: evil@example.com\r\n",
    "From:",
    "ARC-Seal: i=1;",
    "cv=pass;",
    "cv=none;",
    "i=2;",
    "\r\n\r\n",
  ],
];
const SHARED = ["dkim-messages/*.eml", "dkim-canonicalization/*.eml"];
const CLEAN = /^(?:[^\r\n\0]|\r\n)*$/;

const dkimSignature: Target = {
  name: "dkim-signature",
  holds: "a signature field is refused or gives names, times and algorithms within their bounds",
  seeds: { lines: "dkim-signature.jsonl", files: ["signed"], shared: SHARED },
  words: TAGS,
  bytes_max: 32_768,
  check(input) {
    const parsed = parseDkimSignature(input);
    if ("defect" in parsed) return parsed.defect;
    const { domain, selector } = parsed;
    assert.match(domain, /^[a-z0-9_.-]{1,253}$/);
    assert.match(selector, /^[a-z0-9_.-]{1,253}$/i);
    assert.ok(parsed.signed_names.length <= signedNamesMax && parsed.signed_names.includes("from"));
    return `${parsed.key_type}`;
  },
};

type Passed = { ours: string[]; theirs: string[] };

async function verifyBoth(input: Buffer): Promise<Passed> {
  const resolver = fixedResolver(DNS);
  const given = {
    remote_ip: "192.0.2.1",
    helo: "mx.example.com",
    mail_from: "alice@example.com",
    host: "mx.fuzz.example",
  };
  const { dkim } = await authenticate({ bytes: input, ...given, resolver: asAnswers(resolver), now_ms: NOW_S * 1_000 });
  const ours = dkim.signatures.filter(({ result }) => result === "pass").map((one) => `${one.domain} ${one.selector}`);
  const theirGiven = { resolver: resolver as never, curTime: new Date(NOW_S * 1_000) } as never;
  // It throws at a `c=` that it does not know: then nothing passes there.
  const verified = await dkimVerify(input, theirGiven).catch(() => ({ results: [] }));
  const results = (verified as { results: { status: { result: string }; signingDomain: string; selector: string }[] })
    .results;
  const theirs = results
    .filter(({ status }) => status.result === "pass")
    .map((one) => `${one.signingDomain} ${one.selector}`.toLowerCase());
  return { ours: ours.map((text) => text.toLowerCase()).sort(), theirs: theirs.sort() };
}

/** What mailauth takes and we do not, each for its reason; never the other way. */
const STRICTER = [
  [/^[^:]*[\x00-\x20\x7f-\xff]/m, "a name of a field with blanks or octets beyond ASCII"],
  [/\bl=/i, "l= beyond what we take"],
] as const;

const dkimVerified: Target = {
  name: "dkim-verify",
  holds: "what we say passes, mailauth says passes, and what we refuse that it takes we refuse for a known reason",
  seeds: { files: ["signed"] },
  words: TAGS,
  bytes_max: 16_384,
  async check(input) {
    if (!CLEAN.test(input.toString("latin1"))) return "refused at the door";
    // mailauth hashes a head with lines that are no fields otherwise; we sign and skip them like fields without a name.
    if (splitMessage(input).defects.length > 0) return "odd head";
    const { ours, theirs } = await verifyBoth(input);
    const tooMany = ours.filter((one) => !theirs.includes(one));
    assert.deepEqual(tooMany, [], "we pass what mailauth does not");
    const missing = theirs.filter((one) => !ours.includes(one));
    const isKnown = STRICTER.some(([pattern]) => pattern.test(input.toString("latin1")));
    if (!isKnown) assert.deepEqual(missing, [], "we refuse what mailauth passes");
    return `${ours.length} ${missing.length}`;
  },
};

const arc: Target = {
  name: "arc",
  holds: "an ARC chain that we pass, mailauth passes, and damage to any of it never makes a pass",
  seeds: { files: ["signed"] },
  words: TAGS,
  bytes_max: 16_384,
  async check(input) {
    if (!CLEAN.test(input.toString("latin1"))) return "refused at the door";
    const resolver = fixedResolver(DNS);
    const given = {
      remote_ip: "192.0.2.1",
      helo: "mx.example.com",
      mail_from: "alice@example.com",
      host: "mx.fuzz.example",
    };
    const verdicts = await authenticate({
      bytes: input,
      ...given,
      resolver: asAnswers(resolver),
      now_ms: NOW_S * 1_000,
    });
    assert.match(verdicts.header, /^Authentication-Results: [\x20-\x7e]+(?:\r\n[ \t][\x20-\x7e]+)*\r\n$/);
    if (verdicts.arc.result !== "pass") return verdicts.arc.reason.slice(0, 60);
    if (splitMessage(input).defects.length > 0) return "odd head";
    const theirs = await authenticateTheirs(input, {
      ...{
        ip: given.remote_ip,
        helo: given.helo,
        sender: given.mail_from,
        mta: given.host,
        resolver: resolver as never,
      },
      ...{ disableBimi: true, curTime: new Date(NOW_S * 1_000) },
    } as never);
    const arc = (theirs as unknown as { arc?: { status: { result: string } } }).arc;
    assert.equal(arc?.status.result, "pass", "mailauth does not pass this chain");
    return "pass";
  },
};

const dkimKey: Target = {
  name: "dkim-key",
  holds: "a key record is refused or gives a key of 1,024 to 4,096 bits, and our own record matches only itself",
  seeds: { lines: "dkim-key.jsonl", shared: ["dkim-messages/*.json"] },
  words: [
    "v=DKIM1;",
    "k=rsa;",
    "k=ed25519;",
    "p=",
    "t=y;",
    "t=s;",
    "h=sha256;",
    "h=sha1;",
    "s=email;",
    "s=*;",
    "n=x;",
    '"',
    "\\;",
    " ",
  ],
  bytes_max: 8_192,
  check(input) {
    const text = input.toString("utf8");
    for (const wanted of ["rsa", "ed25519"] as const) {
      const read = readKeyRecord(text, wanted);
      if ("problem" in read) continue;
      assert.ok(wanted === "ed25519" || (read.bits >= 1_024 && read.bits <= 4_096));
      assert.equal(read.key.asymmetricKeyType, wanted);
    }
    const expected = dkimRecord(readFileSync(KEY_FILE, "utf8").trim(), "rsa");
    const compared = compareDkimRecord([text], expected);
    if (compared.status !== "match") return compared.hint?.slice(0, 30) ?? "";
    const ours = readKeyRecord(text, "rsa");
    assert.ok("key" in ours, "called a match, and receivers cannot use it");
    const wanted = createPublicKey({
      key: Buffer.from(readFileSync(KEY_FILE, "utf8").trim(), "base64"),
      format: "der",
      type: "spki",
    });
    assert.ok(ours.key.equals(wanted), "called a match with another key");
    return "match";
  },
};
const KEY_FILE = new URL("../corpus/public-key.txt", import.meta.url);

const dkimCanonical: Target = {
  name: "dkim-canonical",
  holds:
    "canonical forms are fixed points, hash the same in slices, and equal RFC 6376's definition written as expressions",
  seeds: { files: ["signed"], shared: SHARED },
  words: ["\r\n", " \r\n", "\t", "  ", "\r\n\r\n", ":", " : ", "\r\n ", "\r", "\n"],
  async check(input) {
    const { fields, body } = splitFields(input);
    const joined = Buffer.concat(fields.map(({ bytes }) => bytes));
    assertSameBytes("fields", joined, input.subarray(0, joined.length));
    assert.ok(joined.length + body.length >= input.length - 2);
    const canonical = (bytes: Buffer, mode: Canonicalization) => Buffer.concat([...canonicalSlices(bytes, mode)]);
    for (const mode of ["simple", "relaxed"] as const) {
      const once = canonical(body, mode);
      assertSameBytes(`${mode} body`, canonical(once, mode), once);
      const { by_length } = await hashBody(body, mode, [null, 0, Math.min(5, once.length)]);
      assert.equal(by_length.get(null), createHash("sha256").update(once).digest("base64"));
      for (const { bytes } of fields) {
        const field = canonicalizeHeader(bytes, mode);
        assertSameBytes(`${mode} field`, canonicalizeHeader(field, mode), field);
      }
    }
    const text = body.toString("latin1");
    const lines = text.split("\r\n").map((line) => withoutBlanksAtEnd(line).replace(/[ \t]+/g, " "));
    while (lines.at(-1) === "") lines.pop();
    const defined = lines.map((line) => `${line}\r\n`).join("");
    assert.equal(canonical(body, "relaxed").toString("latin1"), defined);
    return `${fields.length > 0} ${body.length > 0}`;
  },
};

/** Not by an expression: with `[ \\t]+$` a long run of spaces takes quadratic time. */
function withoutBlanksAtEnd(line: string): string {
  let end = line.length;
  while (end > 0 && (line[end - 1] === " " || line[end - 1] === "\t")) end -= 1;
  return line.slice(0, end);
}

const KEYS: SigningKey[] = [
  { domain: "example.com", selector: "own", algorithm: "ed25519", key: generateKeyPairSync("ed25519").privateKey },
];
const OWN_DNS = {
  "TXT own._domainkey.example.com": [
    `v=DKIM1; k=ed25519; p=${createPublicKey(KEYS[0]!.key).export({ type: "spki", format: "der" }).subarray(-32).toString("base64")}`,
  ],
};

const dkimSign: Target = {
  name: "dkim-sign",
  holds: "whatever clean message we sign, we and mailauth find the signature good, and a second From breaks it",
  seeds: { files: ["mail", "signed"], shared: ["mime-misc/**/*.eml", "spam-and-ham/**/*.eml"] },
  words: ["\r\n", "Subject: x\r\n", "From: a@example.com\r\n", "\r\n\r\n", " ", "\t", "List-Id: <a>\r\n", ":"],
  bytes_max: 32_768,
  async check(input) {
    const text = input
      .toString("latin1")
      .replace(/\r\n|\r|\n/g, "\r\n")
      .replace(/\0/g, "");
    const whole = Buffer.from(
      `From: a@example.com\r\n${text.replace(/^[\s:]+/, "").replace(/^from/gim, "x-from")}\r\n`,
      "latin1",
    );
    const [head] = splitMessage(whole).headers;
    if (head?.name !== "From" || !whole.includes("\r\n\r\n")) return "no head";
    // A verifier does not look into heads of more than a thousand fields.
    if (splitMessage(whole).defects.includes("head_too_large") || splitFields(whole).fields.length > 900)
      return "large";
    const signed = Buffer.concat([await signMessage(whole, KEYS, { now_s: NOW_S })]);
    assert.match(signed.toString("latin1"), /^DKIM-Signature: (?:[\x20-\x7e]|\r\n[ \t])+\r\n$/);
    const resolver = fixedResolver(OWN_DNS);
    const client = { remote_ip: "192.0.2.1", helo: "mx.example.com", mail_from: "", host: "mx.fuzz.example" };
    const given = { ...client, resolver: asAnswers(resolver) };
    const bytes = Buffer.concat([signed, whole]);
    const result = (await authenticate({ bytes, ...given, now_ms: NOW_S * 1_000 })).dkim.result;
    assert.equal(result, "pass", "we refuse what we signed");
    const forged = Buffer.concat([signed, Buffer.from("From: evil@example.com\r\n"), whole]);
    assert.notEqual((await authenticate({ bytes: forged, ...given, now_ms: NOW_S * 1_000 })).dkim.result, "pass");
    // mailauth hashes a head with lines that are no fields otherwise.
    if (splitMessage(whole).defects.length > 0) return "odd head";
    // Its time grows with the square of a run of blanks: 16,000 take it a second.
    if (/[ \t\r\n]{4000}/.test(bytes.toString("latin1"))) return "many blanks";
    const theirs = await dkimVerify(bytes, { resolver: resolver as never } as never);
    const statuses = (theirs as { results: { status: { result: string } }[] }).results.map(
      ({ status }) => status.result,
    );
    assert.equal(statuses[0], "pass", "mailauth refuses what we signed");
    return "pass";
  },
};

/** `mx.fuzz.example1` is another host. */
const OUR_RESULTS = /^\s*"?mx\.fuzz\.example\.?(?:"|(?![^\s;]))\s*(?:1\s*)?(?:;|$)/i;

const forgedResults: Target = {
  name: "strip-forged",
  holds: "no field by which a mail could pretend to have been checked by us is left, all else stays byte for byte",
  seeds: { files: ["forged"], shared: ["mime-misc/**/*.eml"] },
  words: [
    "Authentication-Results: ",
    "mx.fuzz.example",
    "(c) ",
    '"mx.fuzz.example"',
    " 1;",
    "X-Service-Tag: ",
    "x-postern-id: ",
    "\r\n ",
    "\r\n",
  ],
  bytes_max: 32_768,
  check(input) {
    const host = "mx.fuzz.example";
    const stripped = stripForged(input, host);
    assert.ok(stripped.length <= input.length);
    assertSameBytes("twice", stripForged(stripped, host), stripped);
    for (const { name, value } of splitMessage(stripped).headers) {
      assert.doesNotMatch(name, /^x-(?:service|postern)-/i);
      if (name.toLowerCase() !== "authentication-results") continue;
      assert.doesNotMatch(value, OUR_RESULTS, "results in our name are left");
    }
    if (stripped.length === input.length) assertSameBytes("untouched", stripped, input);
    return `${stripped.length < input.length}`;
  },
};

export const DKIM_TARGETS: readonly Target[] = [
  ...[dkimSignature, dkimVerified, dkimKey, dkimCanonical, dkimSign, arc, forgedResults],
];
