import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decodeWords, headersMax, splitMessage } from "../mime/parse-head.ts";
import { fixedResolver, type NodeResolver } from "./look-ups.fixture.ts";
import { dnsOfExample, judge, plainMail, signed } from "./signed-mail.fixture.ts";
import { isForgedField, stripForged } from "./strip-forged.ts";

describe("authenticate", () => {
  it("gives the payload fields of the contract and the field for the stored copy", async () => {
    const verdicts = await judge(await signed(), dnsOfExample, { remote_ip: "192.0.2.1" });
    const { dkim, spf, dmarc, arc, from_domains } = verdicts;
    assert.deepEqual(
      [dkim.result, dkim.domain, dkim.selector, dkim.passed_domains, dkim.from_aligned],
      ["pass", "example.com", "s1", ["example.com"], true],
    );
    assert.deepEqual([spf.result, spf.domain, spf.from_aligned], ["pass", "example.com", true]);
    assert.deepEqual(
      [dmarc.result, dmarc.from_domain, dmarc.dkim_aligned, dmarc.spf_aligned],
      ["pass", "example.com", true, true],
    );
    assert.deepEqual([arc.result, from_domains], ["none", ["example.com"]]);
    const field = verdicts.header.replace(/\r\n +/g, " ").replace(/header\.b="?[^" ;]+"?/, "header.b=X");
    assert.equal(
      field,
      "Authentication-Results: mx.postern.test; dkim=pass header.d=example.com header.s=s1 header.a=rsa-sha256 header.b=X;" +
        " spf=pass smtp.mailfrom=example.com; arc=none; dmarc=pass policy.dmarc=none header.from=example.com\r\n",
    );
    assert.match(verdicts.header, /^(?:[^\r\n]{1,78}\r\n)+$/);
  });

  it("takes the signature that is aligned for the message's, wherever it stands", async () => {
    const twice = await signed(await signed(plainMail, "example.com"), "list.example.org");
    const dns = {
      ...dnsOfExample,
      "TXT s1._domainkey.list.example.org": dnsOfExample["TXT s1._domainkey.example.com"]!,
    };
    const { dkim } = await judge(twice, dns);
    assert.deepEqual([dkim.domain, dkim.passed_domains], ["example.com", ["list.example.org", "example.com"]]);
    assert.deepEqual(
      dkim.signatures.map((one) => one.from_aligned),
      [false, true],
    );
  });

  it("takes LF for line ends, as raw messages over HTTP have them", async () => {
    const bytes = Buffer.from((await signed()).toString("latin1").replaceAll("\r\n", "\n"), "latin1");
    assert.equal((await judge(bytes)).dkim.result, "pass");
  });

  it("gives others a turn for each MiB of a large message, also where it ends in nothing but empty lines", async () => {
    const large = Buffer.concat([await signed(), Buffer.alloc(8 * 1_024 * 1_024, "\r\n")]);
    for (const bytes of [large, Buffer.from(large.toString("latin1").replaceAll("\r\n", "\n"), "latin1")]) {
      let turns = 0;
      let isOver = false;
      const take = () => {
        turns += 1;
        if (!isOver) setImmediate(take);
      };
      setImmediate(take);
      assert.equal((await judge(bytes)).dkim.result, "pass");
      isOver = true;
      assert.ok(turns > 14, String(turns));
    }
  });

  it("looks into no head beyond the limits, and calls nothing in it proven", async () => {
    const many = Buffer.concat([Buffer.from("X: y\r\n".repeat(headersMax)), await signed()]);
    const long = Buffer.concat([Buffer.from(`X: ${"y".repeat(256 * 1_024)}\r\n`), await signed()]);
    for (const bytes of [many, long]) {
      const { dkim, dmarc, arc } = await judge(bytes);
      assert.deepEqual([dkim.result, dmarc.result, dmarc.from_domain, arc.result], ["permerror", "fail", null, "fail"]);
    }
    const just = Buffer.concat([Buffer.from("X: y\r\n".repeat(headersMax - 6)), await signed()]);
    assert.equal((await judge(just)).dkim.result, "pass");
  });

  it("ends in time when DNS does not answer, with temporary errors", async () => {
    const silent: NodeResolver = () => new Promise(() => {});
    const limits = { time_ms: 100, look_ups_max: 300 };
    const { spf, dkim, dmarc } = await judge(await signed(), {}, { resolver: silent, limits });
    assert.deepEqual([spf.result, dkim.result, dmarc.result], ["temperror", "temperror", "temperror"]);
  });

  it("asks each question once, and no more than it may", async () => {
    const asked: string[] = [];
    const known = fixedResolver(dnsOfExample);
    const resolver: NodeResolver = (name, type) => {
      asked.push(`${type} ${name}`);
      return known(name, type);
    };
    await judge(await signed(), {}, { resolver, remote_ip: "192.0.2.1" });
    assert.deepEqual(asked.toSorted(), [...new Set(asked)].toSorted());
    const { spf, dmarc } = await judge(await signed(), {}, { resolver, limits: { time_ms: 1_000, look_ups_max: 1 } });
    assert.ok([spf.result, dmarc.result].includes("temperror"));
  });

  it("does not hide a resolver's bugs", async () => {
    const broken: NodeResolver = async () => {
      throw new TypeError("a bug");
    };
    await assert.rejects(judge(plainMail, {}, { resolver: broken }), /a bug/);
  });

  it("answers for any bytes and envelope, with a field that is one field", async () => {
    const text = fc.string({ unit: "binary", maxLength: 60 });
    const field = fc.tuple(
      fc.constantFrom("From", "DKIM-Signature", "ARC-Seal", "ARC-Message-Signature", "ARC-Authentication-Results", "X"),
      text,
    );
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 300 }).map((octets) => Buffer.from(octets)),
      fc
        .array(field)
        .map((fields) => Buffer.from(`${fields.map(([name, value]) => `${name}: ${value}`).join("\r\n")}\r\n\r\nbody`)),
      fc
        .tuple(field, fc.nat(1_200))
        .map(([[, value], at]) => Buffer.concat([plainMail.subarray(0, at), Buffer.from(value), plainMail])),
    );
    await fc.assert(
      fc.asyncProperty(bytes, text, text, async (bytes, helo, mail_from) => {
        const { header } = await judge(bytes, dnsOfExample, { helo, mail_from });
        assert.match(header, /^Authentication-Results: mx\.postern\.test;\r\n(?: [\x20-\x7e]*\r\n)+$/);
        assert.ok(header.split("\r\n").every((line) => line.length <= 998));
      }),
      { numRuns: 300 },
    );
  });
});

describe("stripForged", () => {
  const host = "mx.postern.test";
  const forged = [
    "Authentication-Results: mx.postern.test; spf=pass\r\n",
    "authentication-results:\r\n mx.POSTERN.test;\r\n dkim=pass\r\n",
    "Authentication-Results : (a (nested) comment) mx.postern.test/1; dmarc=pass\r\n",
    'Authentication-Results: "mx.postern.test" 1; none\r\n',
    "Authentication-Results: mx.postern.test.; none\r\n",
    "Authentication-Results: mx.postern.test\r\n",
    "X-Service-Event: email.received\r\n",
    "x-service-spf : pass\r\n folded\r\n",
    "X-Postern-Spam: no\r\n",
    `X-Service-${"a".repeat(300)}: pass\r\n`,
    "Authentication-Results:\xa0mx.postern.test; spf=pass\r\n",
    'Authentication-Results: "mx.postern.test; spf=pass\r\n',
    'Authentication-Results: "mx.postern.test; spf=pass"\r\n',
    `Authentication-Results: ${"\r\n ".repeat(50_000)}mx.postern.test; spf=pass\r\n`,
    `Authentication-Results: (${"a".repeat(50_000)}) mx.postern.test; spf=pass\r\n`,
    `Authentication-Results${" ".repeat(300)}: mx.postern.test; spf=pass\r\n`,
  ];
  const honest = [
    "Authentication-Results: mx.example.org; spf=pass (mx.postern.test)\r\n",
    "ARC-Authentication-Results: i=1; mx.postern.test; spf=pass\r\n",
    "X-Serviced: yes\r\n",
    "X-Authentication-Results: mx.postern.test; spf=pass\r\n",
    "Subject: Authentication-Results: mx.postern.test\r\n",
    "no field at all\r\n",
    "From: \xff\x00 raw\r\n",
  ];
  const body = "\r\nX-Service-Event: in the body\r\nAuthentication-Results: mx.postern.test; x\r\n";

  for (const field of forged) {
    it(`takes out ${JSON.stringify(field.slice(0, 60))} and nothing else`, () => {
      const [first, second] = [honest.slice(0, 3).join(""), honest.slice(3).join("")];
      const bytes = Buffer.from(first + field + second + field + body, "latin1");
      assert.equal(stripForged(bytes, host).toString("latin1"), first + second + body);
    });
  }

  it("is of one mind with those who see fields and not bytes", () => {
    const { headers } = splitMessage(Buffer.from(forged.join("") + honest.join(""), "latin1"));
    const left = headers.filter(({ name, value }) => !isForgedField(name, value, host)).map(({ name }) => name);
    assert.deepEqual(
      left,
      honest.filter((field) => field.includes(":")).map((field) => field.split(":")[0]),
    );
    assert.ok(isForgedField("Authentication-Results", decodeWords("=?us-ascii?q?mx.postern.test?=; spf=pass"), host));
  });

  it("gives the very same bytes when there is nothing to take out", () => {
    const bytes = Buffer.from(honest.join("") + body, "latin1");
    assert.equal(stripForged(bytes, host), bytes);
    assert.equal(stripForged(Buffer.alloc(0), host).length, 0);
  });

  it("works with LF, without a body and beyond the limits of the parser", () => {
    assert.equal(
      stripForged(Buffer.from("A: 1\nX-Service-A: 2\n folded\nB: 3\n\nx"), host).toString(),
      "A: 1\nB: 3\n\nx",
    );
    assert.equal(stripForged(Buffer.from("X-Service-A: 2"), host).toString(), "");
    const many = Buffer.from(`${"A: 1\r\n".repeat(headersMax * 2)}X-Service-A: 2\r\n\r\n`);
    assert.ok(!stripForged(many, host).includes("X-Service"));
  });

  it("never leaves a field that it would take out, whatever surrounds it", () => {
    const piece = fc.constantFrom(...forged, ...honest, "\r\n", " ", "A: b\r\n", "x");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const once = stripForged(Buffer.from(pieces.join(""), "latin1"), host);
        assert.ok(stripForged(once, host).equals(once));
      }),
    );
  });
});
