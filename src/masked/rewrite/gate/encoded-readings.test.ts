// The scanner of runs finds what the patterns say that it replaced: no run is lost, however long and whatever stands beside it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync, gzipSync } from "node:zlib";
import { diceOf } from "../random-tree.fixture.ts";
import { encodedReadings } from "./encoded-readings.ts";

const PIECES = ["a", "Z", "0", "+", "/", "_", "-", "f", "beef", "QUJD", "lena", "é", "\ue000", ".", "=", " ", "&", '"'];

/** By the patterns: base64 from each of four places, hexadecimal digits from each of two. */
function byPattern(text: string): string[] {
  const read = (pattern: RegExp, encoding: "base64" | "hex", starts: readonly number[]) => {
    const runs = (text.match(pattern) ?? []).flatMap(inPieces);
    const decoded = (start: number) => runs.map((run) => Buffer.from(run.slice(start), encoding).toString("latin1"));
    return runs.length === 0 ? [] : starts.map((start) => decoded(start).join("\n"));
  };
  return [...read(/[A-Za-z0-9+/_-]{20,}/g, "base64", [0, 1, 2, 3]), ...read(/[0-9A-Fa-f]{20,}/g, "hex", [0, 1])];
}

/** Each but the first begins with the end of the one before. */
function inPieces(run: string): string[] {
  return run.length <= 40_000 ? [run] : [run.slice(0, 40_000), ...inPieces(run.slice(39_000))];
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
      .texts.flatMap((reading) => (reading.chance ? [reading.text] : []))
      .slice(0, byPattern(text).length);
    assert.deepEqual(runs, byPattern(text), `seed ${seed}`);
    found[runs.length > 0 ? "some" : "none"] += 1;
  }
  assert.ok(found.some > 100 && found.none > 100, JSON.stringify(found));
  for (const length of [39_999, 40_000, 40_001, 40_019, 40_020, 80_019, 80_020, 120_000]) {
    const text = `. ${"e".repeat(length)}, g`;
    const runs = encodedReadings(text)
      .texts.slice(0, byPattern(text).length)
      .map((reading) => reading.text);
    assert.deepEqual(runs, byPattern(text), `${length} letters`);
  }
});

test("a packed text is found behind many places that only look like one", () => {
  const packed = gzipSync('{"mail":"anna@home.example"}').toString("base64url");
  const lookalikes = `eJw${"A".repeat(24)} `.repeat(200);
  const { texts, isCut } = encodedReadings(`${lookalikes}https://t.example/${packed}`);
  assert.ok(texts.some(({ text }) => text.includes("anna@home.example")));
  assert.equal(isCut, false);
});

test("what stands where a long run is cut into pieces is read", () => {
  for (let before = 29_970; before <= 30_000; before += 1) {
    const run = Buffer.from(`${"a".repeat(before)}anna@home.example${"b".repeat(20_000)}`).toString("base64");
    assert.ok(
      encodedReadings(run).texts.some(({ text }) => text.includes("anna@home.example")),
      `${before}`,
    );
  }
});

test("of a packed text that is too long the beginning is read, and it is said that there is more", () => {
  const dice = diceOf(7);
  const noise = (length: number) => Array.from({ length }, () => String.fromCharCode(33 + dice(90))).join("");
  const mail = "anna@home.example";
  const cases: [string, string, { isCut: boolean; isRead: boolean }][] = [
    ["short", `${mail}${"x".repeat(150_000)}`, { isCut: false, isRead: true }],
    ["a bomb, the address first", `${mail}${"x".repeat(30_000_000)}`, { isCut: true, isRead: true }],
    ["a bomb, the address last", `${"x".repeat(30_000_000)}${mail}`, { isCut: true, isRead: false }],
    ["long, the address last", `${noise(250_000)}${mail}`, { isCut: true, isRead: false }],
    ["longer than a piece", `${noise(600_000)}${mail}`, { isCut: true, isRead: false }],
  ];
  for (const [name, text, wanted] of cases) {
    for (const packed of [gzipSync(text), deflateSync(text)]) {
      const { texts, isCut } = encodedReadings(`see https://t.example/${packed.toString("base64")} there`);
      assert.deepEqual({ isCut, isRead: texts.some((one) => one.text.includes(mail)) }, wanted, name);
    }
  }
});

test("letters at random, as pictures in base64 are, are no packed text that is too long", () => {
  const dice = diceOf(11);
  for (let n = 0; n < 40; n += 1) {
    const octets = Buffer.from(Array.from({ length: 50_000 }, () => dice(256)));
    assert.equal(encodedReadings(octets.toString("base64")).isCut, false, `${n}`);
  }
});

test("uuencode is read wherever its first line begins: a program that quotes may put it behind other words, or before a line", () => {
  const encoded = `M;6%I;"!L96YA+G%U;VMK84!P<FEV870N97AA;7!L92\`@("\`@("\`@("\`@("\`@`;
  for (const begin of ["begin 644 a.txt", "> begin 644 a.txt", "first@x.example begin 644 a.txt"]) {
    const { texts } = encodedReadings(`${begin}\r\n> ${encoded}\r\n> \`\r\n> end`);
    assert.ok(
      texts.some(({ text }) => text.includes("mail lena.quokka@privat.example")),
      begin,
    );
  }
});

test("uuencode is read in the lines of a quote and of HTML, its short lines, too", () => {
  const line = '4:&ES.B!L96YA0\'!R:79A="YE>"``';
  const escaped = line.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  for (const text of [
    `> begin 644 a.txt\n> ${line}\n> \`\n> end`,
    `>> begin 644 a.txt\r\n>> ${line}\r\n>> \`\r\n>> end`,
    `<pre>begin 644 a.txt<br>${escaped}<br>\`<br>end</pre>`,
    `<div>begin 644 a.txt</div><div>${escaped}</div><div>\`</div>`,
  ]) {
    const read = encodedReadings(text).texts.map((one) => one.text);
    assert.ok(
      read.some((one) => one.includes("lena@privat.ex")),
      text,
    );
  }
});
