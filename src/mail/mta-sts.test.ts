// The texts of MTA-STS: the RFC's own examples, what real hosts write, and what must not be taken for a policy.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { readStsPolicy, readStsRecord, STS_POLICY_BYTES_MAX, stsNamesMx } from "./mta-sts.ts";

const lines = (...text: string[]) => `${text.join("\r\n")}\r\n`;
const GOOD = ["version: STSv1", "mode: enforce", "mx: mail.example.com", "mx: *.example.net", "max_age: 604800"];

describe("the DNS record", () => {
  it("gives its id (RFC 8461 §3.1)", () => {
    for (const text of [
      "v=STSv1; id=20160831085700Z;",
      "v=STSv1;id=20160831085700Z",
      "v=STSv1 ; id = 20160831085700Z ; ext=1",
    ]) {
      assert.deepEqual(readStsRecord([text]), { kind: "found", id: "20160831085700Z" }, text);
    }
  });

  it("is looked for among other records, and there must be one", () => {
    const other = ["v=spf1 -all", "v=STSv2; id=1;", "v=STSv1x; id=1", "id=1; v=STSv1"];
    assert.deepEqual(readStsRecord(other), { kind: "none" });
    assert.deepEqual(readStsRecord([]), { kind: "none" });
    assert.deepEqual(readStsRecord([...other, "v=STSv1; id=7"]), { kind: "found", id: "7" });
    assert.equal(readStsRecord(["v=STSv1; id=1", "v=STSv1; id=1"]).kind, "invalid");
  });

  it("without a proper id announces nothing", () => {
    for (const field of ["", "id=", "id=a-b", `id=${"a".repeat(33)}`, "identity=1", "id 1"]) {
      assert.equal(readStsRecord([`v=STSv1; ${field}`]).kind, "invalid", field);
    }
  });
});

describe("the policy", () => {
  it("is read with either line end, its first value of each key, and all of its mail servers", () => {
    const policy = { mode: "enforce", mx: ["mail.example.com", "*.example.net"], max_age_s: 604_800 };
    assert.deepEqual(readStsPolicy(lines(...GOOD)), { policy });
    assert.deepEqual(readStsPolicy(GOOD.join("\n")), { policy });
    assert.deepEqual(readStsPolicy(lines(...GOOD, "mode: none", "max_age: 1", "colour: blue", "nonsense")), { policy });
    assert.deepEqual(readStsPolicy(lines("version:STSv1", "mode:\ttesting  ", "mx:MAIL.Example.com.", "max_age:0")), {
      policy: { mode: "testing", mx: ["mail.example.com"], max_age_s: 0 },
    });
  });

  it("of mode none needs no mail servers", () => {
    assert.deepEqual(readStsPolicy(lines("version: STSv1", "mode: none", "max_age: 86400")), {
      policy: { mode: "none", mx: [], max_age_s: 86_400 },
    });
  });

  it("counts a longer time than a year as a year", () => {
    const read = readStsPolicy(lines(...GOOD.slice(0, 3), "max_age: 9999999999"));
    assert.deepEqual(read, { policy: { mode: "enforce", mx: ["mail.example.com"], max_age_s: 31_557_600 } });
  });

  const without = (key: string) => GOOD.filter((line) => !line.startsWith(key));
  const broken: [string, string[], RegExp][] = [
    ["no version", without("version"), /version/],
    ["another version", ["version: STSv2", ...without("version")], /version/],
    ["no mode", without("mode"), /mode/],
    ["a mode in capitals", ["mode: Enforce", ...without("mode")], /mode/],
    ["no max_age", without("max_age"), /max_age/],
    ["a negative max_age", ["max_age: -1", ...without("max_age")], /max_age/],
    ["a max_age of eleven digits", ["max_age: 10000000000", ...without("max_age")], /max_age/],
    ["no mail server", without("mx"), /no mail server/],
    ["a star inside", ["mx: mail.*.example.com", ...GOOD], /number 1 is not a host name/],
    ["a bare star", ["mx: *", ...GOOD], /not a host name/],
    ["an empty mail server", ["mx:", ...GOOD], /not a host name/],
    ["too many mail servers", [...GOOD, ...Array.from({ length: 1_000 }, (_, n) => `mx: m${n}.example.com`)], /1000/],
    ["HTML", ["<!doctype html>", "<p>not found</p>"], /version/],
  ];
  for (const [what, text, defect] of broken) {
    it(`with ${what} is none`, () => {
      const read = readStsPolicy(lines(...text));
      assert.match("defect" in read ? read.defect : "a policy", defect);
    });
  }

  it("one byte beyond the limit is none", () => {
    const body = lines(...GOOD);
    assert.ok("policy" in readStsPolicy(body.padEnd(STS_POLICY_BYTES_MAX, "\n")));
    assert.deepEqual(readStsPolicy(body.padEnd(STS_POLICY_BYTES_MAX + 1, "\n")), { defect: "the policy is too long" });
  });

  it("is a value whatever the bytes are", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const text = Buffer.from(bytes).toString("latin1");
        const read = readStsPolicy(text);
        assert.ok("policy" in read || read.defect.length > 0);
        assert.ok(readStsRecord([text]).kind);
      }),
      { numRuns: 500 },
    );
  });
});

describe("a mail server", () => {
  const policy = { mx: ["mail.example.com", "*.example.net"] };

  it("is named by its own name, whatever the case", () => {
    assert.ok(stsNamesMx(policy, "mail.example.com"));
    assert.ok(stsNamesMx(policy, "MAIL.example.com."));
    assert.ok(!stsNamesMx(policy, "mail2.example.com"));
    assert.ok(!stsNamesMx(policy, "x.mail.example.com"));
  });

  it("is named by a star for exactly its first label (RFC 8461 §4.1)", () => {
    assert.ok(stsNamesMx(policy, "mx7.example.net"));
    assert.ok(!stsNamesMx(policy, "example.net"));
    assert.ok(!stsNamesMx(policy, "a.b.example.net"));
    assert.ok(!stsNamesMx(policy, "evilexample.net"));
    assert.ok(!stsNamesMx({ mx: ["*.net"] }, "net"));
  });
});
