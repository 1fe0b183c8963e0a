import assert from "node:assert/strict";
import { createHash, sign } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import { canonicalizeHeader, canonicalSlices, splitFields } from "../dkim/canonicalize.ts";
import {
  dataFolder,
  fixedResolver,
  listedResolver,
  type NodeResolver,
  readJson,
  withCrlf,
} from "./look-ups.fixture.ts";
import { dnsOfExample, judge, plainMail, rsaKey, signed } from "./signed-mail.fixture.ts";
import { dnsError } from "./spf-suite.fixture.ts";

const folder = `${dataFolder}dkim-messages/`;
const missing = existsSync(folder) ? false : "third-party cases are not here (../shared/data/dkim-messages)";

type Case = {
  file: string;
  dns?: string;
  dns_txt?: Record<string, string[]> | string;
  expect:
    | string[]
    | { last_signature?: string; signatures?: string[]; go_result?: { Results: { State: string }[] } | null };
  must_not_be?: string[];
  verify_at_unix?: number;
  rspamd_limit_specific?: boolean;
};

const states = new Map([
  ["SUCCESS", /^pass$/],
  ["TEMPFAIL", /^temperror$/],
  ["PERMFAIL", /^(?:permerror|fail)$/],
]);

describe("published DKIM messages", { skip: missing }, () => {
  const cases = missing ? [] : (readJson(`${folder}cases.json`) as Case[]);
  for (const one of cases) {
    it(`${one.file} verifies as its source says`, async () => {
      const bytes = readFileSync(folder + one.file);
      const now_ms = (one.verify_at_unix ?? 1_790_000_000) * 1_000;
      const { dkim } = await judge(
        one.file.startsWith("rspamd-") ? withCrlf(bytes) : bytes,
        {},
        { resolver: resolverOf(one, cases), now_ms },
      );
      checkExpectation(
        one,
        dkim.signatures.map(({ result }) => result),
      );
    });
  }
});

function resolverOf(one: Case, cases: Case[]): NodeResolver {
  if (one.dns) return listedResolver(folder + one.dns);
  const sameAs = typeof one.dns_txt === "string" ? /same as (.*)$/.exec(one.dns_txt)![1] : null;
  const txt = sameAs ? cases.find(({ file }) => file === `${sameAs}.eml`)!.dns_txt : one.dns_txt;
  const records = new Map(Object.entries((txt ?? {}) as Record<string, string[]>));
  return async (name, rrtype) => {
    const found = rrtype === "TXT" ? records.get(name) : undefined;
    if (found === undefined || found[0] === "NOTFOUND" || found[0] === "PERMERROR") throw dnsError("ENOTFOUND");
    if (found[0] === "TEMPERROR") throw dnsError("ESERVFAIL");
    return found.map((text) => [text]);
  };
}

function checkExpectation({ expect, must_not_be }: Case, results: string[]): void {
  for (const forbidden of must_not_be ?? []) assert.ok(!results.includes(forbidden), results.join());
  if (Array.isArray(expect)) {
    // "permerror (or neutral/fail; not pass)", "fail"
    for (const wanted of expect) assert.ok(wanted.includes(results[0]!) && results[0] !== "pass", results.join());
  } else if (expect.last_signature) assert.equal(results.at(-1), expect.last_signature);
  else if (expect.signatures)
    assert.deepEqual(
      results,
      expect.signatures.map((text) => text.split(" ")[0]),
    );
  else {
    // chasquid stops at five signatures, we at ten.
    const wanted = (expect.go_result?.Results ?? []).map(({ State }) => State);
    for (const [index, state] of wanted.entries()) assert.match(results[index] ?? "nothing", states.get(state)!);
    if (wanted.length === 0) assert.ok(!results.includes("pass"));
  }
}

const tagOrder = ["v", "a", "c", "d", "s", "t", "x", "l", "i", "h", "bh", "b"];

/** Signs by hand, so that every tag can be wrong. */
function signBy(tags: Record<string, string | null>, mail: Buffer = plainMail, size = 2_048): Buffer {
  const { fields, body } = splitFields(mail);
  const canonical = Buffer.concat(Array.from(canonicalSlices(body, "relaxed"), (slice) => Buffer.from(slice)));
  const bh = createHash("sha256")
    .update(canonical.subarray(0, tags.l ? Number(tags.l) : undefined))
    .digest("base64");
  const all: Record<string, string | null> = {
    v: "1",
    a: "rsa-sha256",
    c: "relaxed/relaxed",
    d: "example.com",
    s: "s1",
    h: "From:Subject",
    bh,
    ...tags,
    b: "",
  };
  const list = tagOrder.filter((tag) => all[tag] !== undefined && all[tag] !== null).map((tag) => `${tag}=${all[tag]}`);
  const field = Buffer.from(`DKIM-Signature: ${list.join("; ")}`);
  const left = [...fields];
  const chosen = String(all.h)
    .split(":")
    .map((name) => {
      const index = left.findLastIndex((one) => one.name.toLowerCase() === name.trim().toLowerCase());
      return index === -1 ? Buffer.alloc(0) : canonicalizeHeader(left.splice(index, 1)[0]!.bytes, "relaxed");
    });
  const input = Buffer.concat([...chosen, canonicalizeHeader(field, "relaxed").subarray(0, -2)]);
  const hash = all.a === "rsa-sha1" ? "sha1" : "sha256";
  const value = Buffer.from(sign(hash, input, rsaKey(size).key).toString("base64"));
  return Buffer.concat([field, value, Buffer.from("\r\n"), mail]);
}

describe("DKIM signatures", () => {
  const cases: [what: string, tags: Record<string, string | null>, result: string, reason: RegExp][] = [
    ["as it should be", {}, "pass", /^$/],
    ["without a version", { v: null }, "permerror", /v= is missing/],
    ["of version 2", { v: "2" }, "permerror", /version/],
    ["with rsa-sha1", { a: "rsa-sha1" }, "fail", /sha1/],
    ["of an unknown algorithm", { a: "rsa-sha512" }, "permerror", /algorithm/],
    ["that leaves From out", { h: "Subject:To" }, "permerror", /From is not signed/],
    ["with an empty h=", { h: "" }, "permerror", /h= is missing/],
    ["with 301 names", { h: `From${":X".repeat(300)}` }, "permerror", /too long/],
    ["with an identity elsewhere", { i: "@example.org" }, "permerror", /i=/],
    ["with an identity below", { i: "news@mail.example.com" }, "pass", /^$/],
    ["with an identity that only ends alike", { i: "@badexample.com" }, "permerror", /i=/],
    ["that has expired", { x: "1790000050" }, "fail", /expired/],
    ["that expires later", { x: "1790000200" }, "pass", /^$/],
    ["that expires before it was made", { t: "1790000500", x: "1790000400" }, "fail", /before/],
    ["with a time that is no number", { t: "soon" }, "permerror", /l=, t= or x=/],
    ["over part of the body", { l: "5" }, "pass", /unsigned/],
    ["over nothing of the body", { l: "0" }, "pass", /unsigned/],
    ["over more than the body", { l: "5000" }, "fail", /longer/],
    ["of unknown canonicalization", { c: "loose/relaxed" }, "permerror", /canonicalization/],
    ["with a wrong body hash", { bh: "aGVsbG8=" }, "fail", /body hash/],
    ["with a body hash that is no base64", { bh: "(-:" }, "permerror", /base64/],
    ["with a domain that is no name", { d: "exa mple.com" }, "permerror", /domain name/],
    ["of a selector without a key", { s: "other" }, "permerror", /no key/],
  ];
  for (const [what, tags, result, reason] of cases) {
    it(`${what}: ${result}`, async () => {
      const { dkim } = await judge(signBy(tags));
      assert.equal(dkim.result, result, dkim.reason);
      assert.match(dkim.reason, reason);
    });
  }

  const keys: [what: string, record: string[] | string, result: string][] = [
    ["revoked", ["v=DKIM1; p="], "permerror"],
    ["without p=", ["v=DKIM1; k=rsa"], "permerror"],
    ["of another version", [rsaKey().record.replace("DKIM1", "DKIM2")], "permerror"],
    ["whose version is not first", [rsaKey().record.replace("v=DKIM1; k=rsa;", "k=rsa; v=DKIM1;")], "permerror"],
    ["for sha1 only", [rsaKey().record.replace("p=", "h=sha1; p=")], "permerror"],
    ["for something else than e-mail", [rsaKey().record.replace("p=", "s=tlsrpt; p=")], "permerror"],
    ["of another type", [rsaKey().record.replace("rsa", "ed25519")], "permerror"],
    ["that is no key", ["v=DKIM1; p=YWJj"], "permerror"],
    ["with a tag twice", [`${rsaKey().record}; p=YWJj`], "permerror"],
    [
      "with spaces in it and an empty tag",
      [
        rsaKey()
          .record.replace(/(.{80})/g, "$1 ")
          .replace("; ", ";; "),
      ],
      "pass",
    ],
    ["behind another record", ["v=spf1 -all", rsaKey().record], "pass"],
    ["that nobody answers for", "ETIMEOUT", "temperror"],
    ["that the server refuses to tell", "ESERVFAIL", "temperror"],
  ];
  for (const [what, record, result] of keys) {
    it(`a key ${what}: ${result}`, async () => {
      const { dkim } = await judge(signBy({}), { ...dnsOfExample, "TXT s1._domainkey.example.com": record });
      assert.equal(dkim.result, result, dkim.reason);
    });
  }

  it("refuses keys of less than 1,024 and more than 4,096 bits", async () => {
    for (const [size, result] of [
      [512, "fail"],
      [1_024, "pass"],
      [4_608, "fail"],
    ] as const) {
      const { dkim } = await judge(signBy({}, plainMail, size), {
        "TXT s1._domainkey.example.com": [rsaKey(size).record],
      });
      assert.equal(dkim.result, result, `${size}: ${dkim.reason}`);
    }
  });

  it("with t=s takes the identity of the very domain only", async () => {
    const strict = { ...dnsOfExample, "TXT s1._domainkey.example.com": [rsaKey().record.replace("p=", "t=s; p=")] };
    assert.equal((await judge(signBy({}), strict)).dkim.result, "pass");
    assert.equal((await judge(signBy({ i: "@mail.example.com" }), strict)).dkim.result, "permerror");
  });

  it("tells keys in test mode and treats them no worse", async () => {
    const testing = { ...dnsOfExample, "TXT s1._domainkey.example.com": [rsaKey().record.replace("p=", "t=y; p=")] };
    const { dkim } = await judge(signBy({}), testing);
    assert.deepEqual([dkim.result, dkim.signatures[0]!.testing], ["pass", true]);
  });

  it("passes a signature that covers part of the body, says so, and lets it prove nothing", async () => {
    const { dkim, dmarc } = await judge(signBy({ l: "5" }));
    assert.deepEqual([dkim.result, dkim.passed_domains, dkim.from_aligned, dmarc.result], ["pass", [], false, "fail"]);
    const { partial_body, body_length_limited } = dkim.signatures[0]!;
    assert.deepEqual([partial_body, body_length_limited], [true, true]);
    const whole = Array.from(canonicalSlices(splitFields(plainMail).body, "relaxed"), ({ length }) => length).reduce(
      (a, b) => a + b,
    );
    assert.equal((await judge(signBy({ l: String(whole) }))).dmarc.result, "pass");
  });

  it("verifies ten signatures and counts the rest", async () => {
    const one = signBy({ s: "none" }).subarray(0, -plainMail.length);
    const { dkim } = await judge(Buffer.concat([...Array.from({ length: 10 }, () => one), signBy({})]));
    assert.deepEqual([dkim.result, dkim.signatures.length, dkim.ignored_signatures], ["permerror", 10, 1]);
    const nine = await judge(Buffer.concat([...Array.from({ length: 9 }, () => one), signBy({})]));
    assert.deepEqual([nine.dkim.result, nine.dkim.domain], ["pass", "example.com"]);
  });

  it("takes signatures in h= for those that were there before, and one more for none added since", async () => {
    const results = async (mail: Buffer) => (await judge(mail)).dkim.signatures.map(({ result }) => result);
    assert.deepEqual(await results(signBy({ h: "From:DKIM-Signature" })), ["pass"]);
    const twice = signBy({ h: "From:DKIM-Signature:DKIM-Signature" }, signBy({}));
    assert.deepEqual(await results(twice), ["pass", "pass"]);
    const inner = signBy({}).subarray(0, -plainMail.length);
    const outer = twice.subarray(0, -(inner.length + plainMail.length));
    assert.deepEqual(await results(Buffer.concat([inner, outer, plainMail])), ["pass", "pass"]);
    const added = Buffer.concat([Buffer.from("DKIM-Signature: v=1\r\n"), twice]);
    assert.deepEqual(await results(added), ["permerror", "fail", "pass"]);
  });

  it("refuses what passed when there is more than one From, and fails when one was added", async () => {
    const two = Buffer.concat([Buffer.from("From: Mallory <m@example.org>\r\n"), plainMail]);
    const { dkim, dmarc } = await judge(signBy({ h: "From:From:Subject" }, two));
    assert.deepEqual([dkim.result, dmarc.result, dmarc.from_domain], ["permerror", "fail", null]);
    const added = Buffer.concat([Buffer.from("From: Mallory <m@example.org>\r\n"), await signed()]);
    assert.equal((await judge(added)).dkim.result, "fail");
  });

  it("agrees with mailauth on changed messages", async () => {
    const original = await signed();
    // Behind the signature: within it, mailauth takes lines that are no fields for parts of it.
    const start = original.length - plainMail.length;
    const edit = fc.tuple(
      fc.integer({ min: start, max: original.length - 1 }),
      fc.constantFrom(0x20, 0x09, 0x41, 0x61, 0x3b, 0x3a),
    );
    const resolver = fixedResolver(dnsOfExample);
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 2 }), async (edits) => {
        const bytes = Buffer.from(original);
        for (const [at, byte] of edits) bytes[at] = byte;
        const ours = (await judge(bytes)).dkim.signatures.some(({ result }) => result === "pass");
        const theirs = await dkimVerify(bytes, {
          resolver: resolver as never,
          strict: true,
          curTime: new Date(1_790_000_100_000),
        } as never);
        const passed = theirs.results.some(({ status }) => status.result === "pass");
        // Two From fields are ours to refuse.
        if (ours !== passed)
          assert.ok(/^from/im.test(bytes.toString().replace(/^from:/im, "")), bytes.toString("latin1"));
      }),
      { numRuns: 300 },
    );
  });
});
