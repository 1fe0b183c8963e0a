import assert from "node:assert/strict";
import { createHash, sign } from "node:crypto";
import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { type Canonicalization, canonicalizeHeader, canonicalSlices, splitFields } from "../dkim/canonicalize.ts";
import { vouchedDomain } from "./arc.ts";
import { dataFolder, fixedResolver, type NodeResolver, readJson, withCrlf } from "./look-ups.fixture.ts";
import { dnsOfExample, judge, plainMail, rsaKey } from "./signed-mail.fixture.ts";
import { dnsError } from "./spf-suite.fixture.ts";

const file = `${dataFolder}arc-valimail/validation.json`;
const missing = existsSync(file) ? false : "third-party cases are not here (../shared/data/arc-valimail)";

type Scenario = {
  description: string;
  "txt-records": Record<string, string>;
  tests: Record<string, { message: string; cv: string }>;
};
type Difference = { case: string; want: string; got: string; reason: string };

const scenarios = missing ? [] : (readJson(file) as Scenario[]);
const differences = readJson(fileURLToPath(new URL("./arc.differences.json", import.meta.url))) as Difference[];

function resolverOf({ "txt-records": records }: Scenario): NodeResolver {
  const answers = Object.entries(records).map(([name, text]) => [`TXT ${name.toLowerCase()}`, [text]]);
  return fixedResolver(Object.fromEntries(answers));
}

async function resultOf(scenario: Scenario, message: string): Promise<string> {
  const { arc } = await judge(withCrlf(message), {}, { resolver: resolverOf(scenario) });
  return arc.result;
}

describe("the published ARC suite", { skip: missing }, () => {
  for (const scenario of scenarios) {
    for (const [name, { message, cv }] of Object.entries(scenario.tests)) {
      const difference = differences.find((one) => one.case === name);
      it(`${scenario.description}: ${name} is ${difference?.got ?? (cv.toLowerCase() || "anything")}`, async () => {
        const result = await resultOf(scenario, message);
        if (difference)
          assert.deepEqual([cv.toLowerCase(), result], [difference.want, difference.got], "the difference is stale");
        else if (cv !== "") assert.equal(result, cv.toLowerCase());
      });
    }
  }
});

describe("ARC chains", { skip: missing }, () => {
  const scenario = scenarios.find(({ tests }) => "cv_pass_i3_1" in tests)!;
  const passing = scenario?.tests.cv_pass_i3_1?.message ?? "";

  it("tell their sealers, the oldest first", async () => {
    const { arc } = await judge(withCrlf(passing), {}, { resolver: resolverOf(scenario) });
    assert.deepEqual([arc.result, arc.instances, arc.sealers.length], ["pass", 3, 3]);
  });

  it("change nothing about DMARC", async () => {
    const { arc, dmarc } = await judge(withCrlf(passing), {}, { resolver: resolverOf(scenario) });
    assert.deepEqual([arc.result, dmarc.dkim_aligned, dmarc.spf_aligned], ["pass", false, false]);
  });

  it("are a temporary error when a key cannot be asked for", async () => {
    const resolver: NodeResolver = async () => {
      throw dnsError("ETIMEOUT");
    };
    assert.equal((await judge(withCrlf(passing), {}, { resolver })).arc.result, "temperror");
  });

  it("fail with more than fifty instances, at once", async () => {
    const sets = Array.from(
      { length: 51 },
      (_, index) => `ARC-Seal: i=${index + 1}; cv=pass; a=rsa-sha256; d=a.example; s=s; b=YQ==`,
    );
    const { arc } = await judge(Buffer.from(`${sets.join("\r\n")}\r\nFrom: a@example.com\r\n\r\n`));
    assert.equal(arc.result, "fail");
  });
});

/** One set over one field, made in a mode that its message signature tells with `c`, or does not. */
function sealed(mode: Canonicalization, c: string, field = "From"): Buffer {
  const { fields, body } = splitFields(plainMail);
  const bh = createHash("sha256")
    .update(Buffer.concat(Array.from(canonicalSlices(body, mode), (slice) => Buffer.from(slice))))
    .digest("base64");
  const signedBy = (parts: string[], how: Canonicalization): string => {
    const input = Buffer.concat(parts.map((part) => canonicalizeHeader(Buffer.from(part), how))).subarray(0, -2);
    return parts.at(-1)! + sign("sha256", input, rsaKey().key).toString("base64");
  };
  const signedField = fields.find(({ name }) => name === field)!.bytes.toString();
  const results = "ARC-Authentication-Results: i=1; mx.example.net;\r\n spf=pass";
  const common = "i=1; a=rsa-sha256; d=example.com; s=s1;";
  const message = signedBy([signedField, `ARC-Message-Signature: ${common}${c}\r\n h=${field}; bh=${bh}; b=`], mode);
  const seal = signedBy([results, message, `ARC-Seal: ${common} cv=none; b=`], "relaxed");
  return Buffer.concat([Buffer.from(`${seal}\r\n${message}\r\n${results}\r\n`), plainMail]);
}

describe("what the oldest set says of DMARC", () => {
  const cases: [string, string | null][] = [
    ["i=1; mx.example; dmarc=pass (p=REJECT sp=REJECT) header.from=Author.example", "author.example"],
    ["i=1; mx.example; spf=pass; dmarc=pass policy.dmarc=none header.from=a.example; dkim=none", "a.example"],
    ["i=1; mx.example; dmarc=fail header.from=a.example", null],
    ["i=1; mx.example; dmarc=pass", null],
    ["i=1; mx.example; xdmarc=pass header.from=a.example", null],
    ['i=1; mx.example; dkim=fail reason="; dmarc=pass header.from=a.example"', null],
    ["i=1; mx.example; dkim=fail (; dmarc=pass header.from=a.example; (", null],
    ["i=1; mx.example; dmarc=pass header.from=a.example; dmarc=pass header.from=b.example", null],
    ["i=1; mx.example; dmarc=pass header.from=a.example header.from=b.example", null],
  ];
  for (const [text, want] of cases) it(text, () => assert.equal(vouchedDomain(text), want));
});

describe("an ARC-Message-Signature", () => {
  const resultOf = async (mail: Buffer, dns: Record<string, unknown[] | string> = dnsOfExample) =>
    (await judge(mail, dns)).arc.result;

  it("without c= is simple, as the standard has it, or relaxed, as the drafts had it", async () => {
    assert.equal(await resultOf(sealed("simple", "")), "pass");
    assert.equal(await resultOf(sealed("relaxed", "")), "pass");
    const changed = Buffer.from(sealed("relaxed", "").toString("latin1").replace("world", "w0rld"), "latin1");
    assert.equal(await resultOf(changed), "fail");
    const silent = { ...dnsOfExample, "TXT s1._domainkey.example.com": "ETIMEOUT" };
    assert.equal(await resultOf(sealed("relaxed", ""), silent), "temperror");
  });

  it("signs From, or is none (RFC 6376 §6.1.1)", async () => {
    const { arc } = await judge(sealed("relaxed", " c=relaxed/relaxed;", "Subject"));
    assert.deepEqual([arc.result, arc.reason], ["fail", "message signature 1: From is not signed"]);
  });

  it("with c= is canonical as it says", async () => {
    assert.equal(await resultOf(sealed("relaxed", " c=relaxed/relaxed;")), "pass");
    assert.equal(await resultOf(sealed("relaxed", " c=simple/simple;")), "fail");
  });
});
