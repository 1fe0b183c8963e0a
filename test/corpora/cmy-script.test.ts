// How scripts of another server's tests are read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { evaluate, readScript } from "./cmy-script.ts";

test("each line is a step of its client", () => {
  const script =
    "# why\n\nc tcp_connect localhost:1025\n\nc <~ 220\nd tls_connect :465\nc -> MAIL FROM:<>\nc ->\nc close\n";
  assert.deepEqual(readScript(script), [
    { kind: "connect", client: "c", tls: false, port: 1025 },
    { kind: "expect", client: "c", classes: ["2"], line: "c <~ 220" },
    { kind: "connect", client: "d", tls: true, port: 465 },
    { kind: "send", client: "c", bytes: Buffer.from("MAIL FROM:<>\r\n") },
    { kind: "send", client: "c", bytes: Buffer.from("\r\n") },
    { kind: "close", client: "c" },
  ]);
  assert.match(String(readScript("c wonders why")), /not understood/);
});

test("an expectation is the classes of its alternatives", () => {
  const cases: [string, string[]][] = [
    ["<- 521 5.5.2 Error reading DATA: 4 things", ["5"]],
    ["<... 250 HELP", ["2"]],
    ["<~ (451|5..) x", ["4", "5"]],
    ["<~ ^[45].. x", ["4", "5"]],
    ["<~ 501 5.5.2 Error decoding AUTH response", ["5"]],
  ];
  for (const [line, classes] of cases) {
    const steps = readScript(`c ${line}`);
    assert.deepEqual(typeof steps === "string" ? steps : steps[0], {
      kind: "expect",
      client: "c",
      classes,
      line: `c ${line}`,
    });
  }
});

test("bytes are expressions of literals", () => {
  const cases: [string, string][] = [
    ["'.\\n'", ".\n"],
    ["'xxx\\r\\n.\\r\\n'", "xxx\r\n.\r\n"],
    ['b"\\x00\\\\" * 2', "\0\\\0\\"],
    ["('ab' * 2 + 'c') * 2", "ababcababc"],
    ["2 * 'a' + 'b'", "aab"],
  ];
  for (const [expression, text] of cases) assert.equal(evaluate(expression).toString("latin1"), text);
  for (const odd of ["open('x')", "'a' +", "7", "'a' * 'b'"]) assert.throws(() => evaluate(odd));
});
