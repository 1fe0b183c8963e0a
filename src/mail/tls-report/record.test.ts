// Where reports on TLS go (RFC 8460 §3): records as domains publish them, good and bad.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readReportRecord } from "./record.ts";

test("a record names mail addresses and web addresses, in any order and with spaces", () => {
  assert.deepEqual(readReportRecord(["v=TLSRPTv1; rua=mailto:tls@Example.com"]), {
    addresses: ["tls@example.com"],
    urls: [],
  });
  assert.deepEqual(
    readReportRecord(["v=TLSRPTv1;x=1; rua=https://collect.example/v1?a=%2C , mailto:a%2Bb@example.com?subject=x;"]),
    { addresses: ["a+b@example.com"], urls: ["https://collect.example/v1?a=%2C"] },
  );
});

test("records of something else do not count, and two count as none", () => {
  const good = "v=TLSRPTv1; rua=mailto:tls@example.com";
  assert.deepEqual(readReportRecord(["v=spf1 -all", good])?.addresses, ["tls@example.com"]);
  assert.equal(readReportRecord([good, "v=TLSRPTv1; rua=mailto:other@example.com"]), null);
  assert.equal(readReportRecord([]), null);
});

test("what cannot be written to is passed over", () => {
  const bad = [
    "v=TLSRPTv1; rua=http://collect.example/",
    "v=TLSRPTv1; rua=https://user:password@collect.example/",
    "v=TLSRPTv1; rua=mailto:%zz@example.com",
    "v=TLSRPTv1; rua=mailto:a@example.com%0d%0aBcc:b@example.com",
    "v=TLSRPTv1; rua=mailto:",
    "v=TLSRPTv1; rua=",
    "v=TLSRPTv1",
    "v=TLSRPTv2; rua=mailto:a@example.com",
    "v=TLSRPTv1; rua=mailto:a@example.com; rua=mailto:b@example.com",
    `v=TLSRPTv1; rua=https://collect.example/${"a".repeat(3_000)}`,
  ];
  for (const record of bad) assert.equal(readReportRecord([record]), null, record);
});

test("a domain cannot have its report sent to many", () => {
  const many = Array.from({ length: 50 }, (_none, n) => `mailto:a${n}@victim.example,https://victim.example/${n}`);
  const read = readReportRecord([`v=TLSRPTv1; rua=${many.join(",")}`]);
  assert.deepEqual([read?.addresses.length, read?.urls.length], [3, 3]);
});
