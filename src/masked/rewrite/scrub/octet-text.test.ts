// Any octets as text, and back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { diceOf } from "../random-tree.fixture.ts";
import { readOctets, writeOctets } from "./octet-text.ts";

test("octets come back as they were, and what is UTF-8 in them reads as that", () => {
  const pieces = ["Grüße", "\u200b", "漢字", "\u{1f600}", "\uf7ff", "\ue000", "a", "\0"].map((text) =>
    Buffer.from(text),
  );
  for (let seed = 1; seed <= 2_000; seed += 1) {
    const dice = diceOf(seed);
    const octets = Buffer.concat(
      Array.from({ length: dice(12) }, () => {
        const piece = pieces[dice(pieces.length)] as Buffer;
        return dice(2) === 0 ? piece : dice(2) === 0 ? piece.subarray(0, dice(4)) : Buffer.from([dice(256), dice(256)]);
      }),
    );
    assert.deepEqual(writeOctets(readOctets(octets)), octets, octets.toString("hex"));
  }
  assert.equal(readOctets(Buffer.from("Grüße 漢字 \u{1f600}")), "Grüße 漢字 \u{1f600}");
  assert.equal(readOctets(Buffer.from([0x61, 0xff, 0xc3, 0x62])), "a\uf7ff\uf7c3b");
});
