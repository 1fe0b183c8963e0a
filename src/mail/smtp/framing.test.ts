// Dot-stuffing, and the refusal of everything that could end DATA early.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { rounds } from "../../../test/support/rounds.ts";
import { frameMessage } from "./framing.ts";

async function framed(...parts: string[]): Promise<string> {
  const result = await frameMessage(parts.map((part) => Buffer.from(part, "latin1")));
  return "defect" in result
    ? `refused: ${result.defect}`
    : Buffer.concat([...result.chunks, result.end]).toString("latin1");
}

/** What a receiver by the letter of RFC 5321 §4.5.2 takes out of the bytes after DATA. */
function received(wire: string): { message: string; rest: string } {
  const end = wire.startsWith(".\r\n") ? 0 : wire.indexOf("\r\n.\r\n") + 2;
  return { message: wire.slice(0, end).replace(/(^|\r\n)\./g, "$1"), rest: wire.slice(end + 3) };
}

const exact: [string, string[], string][] = [
  ["an empty message", [""], ".\r\n"],
  ["no parts", [], ".\r\n"],
  ["one line", ["a\r\n"], "a\r\n.\r\n"],
  ["a missing last CRLF", ["a"], "a\r\n.\r\n"],
  ["a leading dot", [".a\r\n"], "..a\r\n.\r\n"],
  ["a dot alone", [".\r\n"], "..\r\n.\r\n"],
  ["dots inside a line", ["a.b.\r\n"], "a.b.\r\n.\r\n"],
  ["two dots", ["\r\n..\r\n"], "\r\n...\r\n.\r\n"],
  ["a dot at the start of a part", ["a\r\n", ".b\r\n"], "a\r\n..b\r\n.\r\n"],
  ["a dot at the start of a part in mid line", ["a", ".b\r\n"], "a.b\r\n.\r\n"],
  ["CRLF cut in two", ["a\r", "\n.b\r\n"], "a\r\n..b\r\n.\r\n"],
];
for (const [what, parts, wire] of exact) {
  test(`framing of ${what} is exact`, async () => assert.equal(await framed(...parts), wire));
}

const refused = [
  "a\nb\r\n",
  "a\rb\r\n",
  "\n",
  "\r",
  "a\r",
  "a\r\r\n",
  "a\n\r\n",
  "a\0b\r\n",
  "\r\n\0.\r\n",
  "a\r\n\n.\r\n",
];
test("a CR or LF alone and NUL are refused, wherever the parts are cut", async () => {
  for (const body of refused) {
    for (let cut = 0; cut <= body.length; cut++) {
      assert.match(await framed(body.slice(0, cut), body.slice(cut)), /^refused: /, JSON.stringify(body));
    }
  }
});

test("any message is either refused or received as it was, once, with nothing after it", async () => {
  const piece = fc.constantFrom(".", "\r\n", "\r", "\n", "\0", "a", "MAIL FROM:<x@y>", "\r\n.", "\r\n.\r\n", "..");
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(piece, { maxLength: 6 }), { maxLength: 4 }), async (parts) => {
      const texts = parts.map((part) => part.join(""));
      const message = texts.join("");
      const isClean = !/\r(?!\n)|(?<!\r)\n|\0/.test(message);
      const wire = await framed(...texts);
      assert.equal(wire.startsWith("refused: "), !isClean);
      if (!isClean) return;
      const complete = message === "" || message.endsWith("\r\n") ? message : `${message}\r\n`;
      assert.deepEqual(received(wire), { message: complete, rest: "" });
    }),
    { numRuns: rounds(500, 5_000) },
  );
});

test("a large message is framed as a small one, and others have a turn meanwhile", async () => {
  const lines = 50_000;
  const message = Buffer.from(`..${"x".repeat(30)}\r\n`.repeat(lines));
  let turns = 0;
  const others = setInterval(() => {
    turns += 1;
  });
  const result = await frameMessage([message]);
  clearInterval(others);
  assert.ok(!("defect" in result));
  assert.equal(Buffer.concat(result.chunks).length, message.length + lines);
  assert.ok(turns > 1, `${turns} turns`);
});
