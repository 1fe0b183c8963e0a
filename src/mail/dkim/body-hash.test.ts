import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import fc from "fast-check";
import { hashBody } from "./body-hash.ts";
import type { Canonicalization } from "./canonicalize.ts";

/** RFC 6376 §3.4.3 and §3.4.4, line by line over the whole body at once. */
function canonicalBody(body: string, mode: Canonicalization): Buffer {
  const relaxed = (line: string) => line.replace(/[ \t]+/g, " ").replace(/ $/, "");
  const lines = body.split("\r\n").map((line) => (mode === "relaxed" ? relaxed(line) : line));
  while (lines.at(-1) === "") lines.pop();
  if (lines.length === 0 && mode === "simple") lines.push("");
  return Buffer.from(lines.map((line) => `${line}\r\n`).join(""));
}

describe("body hashes", () => {
  it("of any part are those of the canonical body's start, over slices of any size", async () => {
    const line = fc.constantFrom("", " ", "a", "a  b ", "\t", "x".repeat(70_000));
    const given = fc.tuple(
      fc.array(line, { maxLength: 40 }),
      fc.constantFrom("", "\r\n"),
      fc.array(fc.nat(200_000), { maxLength: 3 }),
    );
    await fc.assert(
      fc.asyncProperty(
        given,
        fc.constantFrom("simple" as const, "relaxed" as const),
        async ([lines, end, lengths], mode) => {
          const body = lines.join("\r\n") + end;
          const canonical = canonicalBody(body, mode);
          const hashes = await hashBody(Buffer.from(body), mode, [...lengths, null]);
          assert.equal(hashes.length, canonical.length);
          for (const length of [...lengths, null]) {
            const part = length === null ? canonical : canonical.subarray(0, length);
            const wanted =
              length !== null && length > canonical.length
                ? undefined
                : createHash("sha256").update(part).digest("base64");
            assert.equal(hashes.by_length.get(length), wanted);
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
