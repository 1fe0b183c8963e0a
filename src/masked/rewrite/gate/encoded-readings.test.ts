// The scanner of runs finds what the patterns say that it replaced: no run is lost, however long and whatever stands beside it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { diceOf } from "../random-tree.fixture.ts";
import { encodedReadings } from "./encoded-readings.ts";

const PIECES = ["a", "Z", "0", "+", "/", "_", "-", "f", "beef", "QUJD", "lena", "é", "\ue000", ".", "=", " ", "&", '"'];

/** By the patterns: base64 from each of four places, hexadecimal digits from each of two. */
function byPattern(text: string): string[] {
  const read = (pattern: RegExp, encoding: "base64" | "hex", starts: readonly number[]) => {
    const runs = text.match(pattern) ?? [];
    const decoded = (start: number) => runs.map((run) => Buffer.from(run.slice(start), encoding).toString("latin1"));
    return runs.length === 0 ? [] : starts.map((start) => decoded(start).join("\n"));
  };
  return [
    ...read(/[A-Za-z0-9+/_-]{20,40000}/g, "base64", [0, 1, 2, 3]),
    ...read(/[0-9A-Fa-f]{20,40000}/g, "hex", [0, 1]),
  ];
}

test("runs of base64 and of hexadecimal digits are found wherever a pattern finds them", () => {
  const found = { some: 0, none: 0 };
  for (let seed = 1; seed <= 2_000; seed += 1) {
    const dice = diceOf(seed);
    const pieces = Array.from({ length: dice(30) }, () => {
      const length = [1, 1, 2, 18, 19, 20, 21, 40][dice(8)] as number;
      return (PIECES[dice(PIECES.length)] as string).repeat(length);
    });
    const text = pieces.join("").replace(/=[0-9A-F]{2}/gi, "=");
    const runs = encodedReadings(text)
      .flatMap((reading) => (reading.chance ? [reading.text] : []))
      .slice(0, byPattern(text).length);
    assert.deepEqual(runs, byPattern(text), `seed ${seed}`);
    found[runs.length > 0 ? "some" : "none"] += 1;
  }
  assert.ok(found.some > 100 && found.none > 100, JSON.stringify(found));
  for (const length of [39_999, 40_000, 40_001, 40_019, 40_020, 80_019, 80_020, 120_000]) {
    const text = `. ${"e".repeat(length)}, g`;
    const runs = encodedReadings(text)
      .slice(0, byPattern(text).length)
      .map((reading) => reading.text);
    assert.deepEqual(runs, byPattern(text), `${length} letters`);
  }
});

test("a packed text is found behind many places that only look like one", () => {
  const packed = gzipSync('{"mail":"anna@home.example"}').toString("base64url");
  const lookalikes = `eJw${"A".repeat(24)} `.repeat(200);
  const found = encodedReadings(`${lookalikes}https://t.example/${packed}`);
  assert.ok(found.some(({ text }) => text.includes("anna@home.example")));
});
