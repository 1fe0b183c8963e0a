// What parseSpfRecord makes of the ends of terms, and that a hostile record costs no more than its length.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startProcessorTime } from "../../../test/support/processor-time.ts";
import { parseSpfRecord } from "./spf-record.ts";

const lengths = (term: string) => {
  const directive = parseSpfRecord(`v=spf1 ${term}`)?.directives[0];
  return directive && "bits4" in directive ? [directive.bits4, directive.bits6] : null;
};

test("prefix lengths stand at the end of a and mx, with and without a domain", () => {
  assert.deepEqual(lengths("a"), [32, 128]);
  assert.deepEqual(lengths("a/24"), [24, 128]);
  assert.deepEqual(lengths("a//64"), [32, 64]);
  assert.deepEqual(lengths("mx:b.example/24//64"), [24, 64]);
  assert.deepEqual(lengths("mx:b/c.example/24"), [24, 128]);
  for (const bad of [
    "a:",
    "a:/24",
    "a/33",
    "a//129",
    "a/024",
    "a/",
    "a/24/24",
    "ax/24",
    "a:b.example/",
    "a:b.example//",
  ]) {
    assert.equal(lengths(bad), null, bad);
  }
});

test("a record of 64 KiB is read in a moment, whatever it repeats", () => {
  const pieces = ["a:/1", "a:", "d", "d-", "1", "/1", "//1", "%{i}", "%{", "%", "x=", "ip6:", ".", "a ", "mx:a.b/2 "];
  for (const piece of pieces) {
    for (const start of ["include:a.", "a:x.com", "a:x.com/", "mx", "ip4:", "redirect=a.", "foo="]) {
      const used = startProcessorTime();
      parseSpfRecord(`v=spf1 ${start}${piece.repeat(65_000 / piece.length)}!`);
      assert.ok(used() < 300, `${start}${piece}: ${used()} ms`);
    }
  }
});
