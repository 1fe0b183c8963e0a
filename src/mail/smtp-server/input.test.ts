// Lines, dots and smuggling, at every place where the network may cut the bytes.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { rounds } from "../../../test/support/rounds.ts";
import { createInput, type InputFault, LINE_OCTETS_MAX, type LineEnds } from "./input.ts";

const SEQUENCES = join(import.meta.dirname, "../../../../shared/data/smtp-dialogues/end-of-data-sequences.json");

type Read = { message: string; rest: string; progress: string };

/** Reads one message from bytes that come in these chunks. */
function readMessage(chunks: Buffer[], lineEnds: LineEnds = "strict"): Read {
  const input = createInput();
  const pieces: Buffer[] = [];
  input.startData(lineEnds);
  for (const [index, chunk] of chunks.entries()) {
    input.push(chunk);
    const progress = input.takeData((piece) => pieces.push(piece));
    if (progress === "more") continue;
    const left: Buffer[] = [];
    if (progress === "end") {
      for (const later of chunks.slice(index + 1)) input.push(later);
      for (let line = input.takeLine(); line; line = input.takeLine()) {
        if (line.kind === "fault") break;
        left.push(line.bytes);
      }
    }
    return {
      message: Buffer.concat(pieces).toString("latin1"),
      rest: left.map(String).join("|"),
      progress: progress === "end" ? "end" : progress.fault,
    };
  }
  return { message: Buffer.concat(pieces).toString("latin1"), rest: "", progress: "more" };
}

const splits = (bytes: Buffer) =>
  Array.from({ length: bytes.length - 1 }, (_, at) => [bytes.subarray(0, at + 1), bytes.subarray(at + 1)]);
const single = (bytes: Buffer) => Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));

for (const [sent, message] of [
  ["Hello\r\n.\r\n", "Hello\r\n"],
  [".\r\n", ""],
  ["..\r\n.\r\n", ".\r\n"],
  [".Hidden\r\n...\r\n.\r\n", "Hidden\r\n..\r\n"],
  ["a\r\n\r\n..x\r\n\r\n.\r\n", "a\r\n\r\n.x\r\n\r\n"],
  ["a.\r\nb .\r\n.\r\n", "a.\r\nb .\r\n"],
  ["8-bit \xff\x80\r\n.\r\n", "8-bit \xff\x80\r\n"],
] as const) {
  test(`${JSON.stringify(sent)} is the message ${JSON.stringify(message)} wherever it is cut`, () => {
    const bytes = Buffer.from(`${sent}QUIT\r\nNOOP\r\n`, "latin1");
    for (const chunks of [[bytes], single(bytes), ...splits(bytes)]) {
      assert.deepEqual(readMessage(chunks), { message, rest: "QUIT|NOOP", progress: "end" });
    }
  });
}

const SMUGGLED: [string, InputFault][] = [
  ["\n.\n", "bare_lf"],
  ["\n.\r", "bare_lf"],
  ["\r.\n", "bare_cr"],
  ["\r.\r", "bare_cr"],
  ["\n.\r\n", "bare_lf"],
  ["\r.\r\n", "bare_cr"],
  ["\r\n.\n", "bare_lf"],
  ["\r\n.\r", "bare_cr"],
  ["\r\n.\r\r\n", "bare_cr"],
  ["\r\r\n.\r\n", "bare_cr"],
  ["\r\r\n.\r\r\n", "bare_cr"],
  ["\r\n\0.\r\n", "nul"],
  ["\r\n.\0\r\n", "nul"],
  ["\n\n.\n\n", "bare_lf"],
];
for (const [sequence, fault] of SMUGGLED) {
  test(`${JSON.stringify(sequence)} is a fault at every place where it is cut`, () => {
    const bytes = Buffer.from(`Hello${sequence}MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nx\r\n.\r\n`, "latin1");
    for (const chunks of [[bytes], single(bytes), ...splits(bytes)]) {
      const { progress, message } = readMessage(chunks);
      assert.equal(progress, fault);
      assert.ok(!message.includes("MAIL FROM"), message);
    }
  });
}

test("the published sequences are faults too", (t) => {
  if (!existsSync(SEQUENCES)) return t.skip("the shared data folder is missing");
  const { inbound, outbound } = JSON.parse(readFileSync(SEQUENCES, "utf8"));
  for (const sequence of [...inbound, ...outbound]) {
    const bytes = Buffer.from(`Hello${sequence}MAIL FROM:<a@b>\r\n`, "latin1");
    for (const chunks of [[bytes], ...splits(bytes)]) {
      assert.notEqual(readMessage(chunks).progress, "end", JSON.stringify(sequence));
      assert.notEqual(readMessage(chunks).progress, "more", JSON.stringify(sequence));
    }
  }
});

test("any content survives dot-stuffing and any chunking", () => {
  const lines = fc.array(fc.oneof(fc.constant("."), fc.constant(".."), fc.constant(""), fc.string({ maxLength: 9 })));
  fc.assert(
    fc.property(lines, fc.array(fc.nat(40)), (given, cuts) => {
      const content = given.map((line) => line.replace(/[\r\n\0]/g, "x"));
      const stuffed = content.map((line) => (line.startsWith(".") ? `.${line}` : line));
      const bytes = Buffer.from(`${stuffed.map((line) => `${line}\r\n`).join("")}.\r\nEND\r\n`);
      const places = [...new Set(cuts.map((cut) => cut % bytes.length))].sort((a, b) => a - b);
      const chunks = [...places, bytes.length].map((end, i) => bytes.subarray(i === 0 ? 0 : places[i - 1], end));
      const read = readMessage(chunks.filter((chunk) => chunk.length > 0));
      const wanted = Buffer.from(content.map((line) => `${line}\r\n`).join("")).toString("latin1");
      assert.deepEqual(read, { message: wanted, rest: "END", progress: "end" });
    }),
    { numRuns: rounds(200, 2_000) },
  );
});

test("content of nothing but stuffed dots is one piece: a piece for each line would cost fifty times its bytes", () => {
  const input = createInput();
  const pieces: Buffer[] = [];
  input.startData();
  input.push(Buffer.from("..\r\n".repeat(16_384)));
  assert.equal(
    input.takeData((piece) => pieces.push(piece)),
    "more",
  );
  assert.equal(pieces.length, 1);
  assert.equal(String(pieces[0]), ".\r\n".repeat(16_384));
});

for (const [sent, message] of [
  ["a\nb\n\r\n.\r\n", "a\r\nb\r\n\r\n"],
  ["\n\na\r\nb\n\n.c\r\n.\r\n", "\r\n\r\na\r\nb\r\n\r\n.c\r\n"],
  ["a\n..b\n...\n.c\n.\nd\r\n.\r\n", "a\r\n.b\r\n..\r\n.c\r\n.\r\nd\r\n"],
  ["a\n.\r\nMAIL FROM:<x@y>\r\n.\r\n", "a\r\n.\r\nMAIL FROM:<x@y>\r\n"],
  ["a\r\n.\nMAIL FROM:<x@y>\r\n.\r\n", "a\r\n.\r\nMAIL FROM:<x@y>\r\n"],
  ["a\n.\n.\r\n\n.\r\n\r\n.\r\n", "a\r\n.\r\n.\r\n\r\n.\r\n\r\n"],
] as const) {
  test(`with its line ends mended, ${JSON.stringify(sent)} is one message wherever it is cut`, () => {
    const bytes = Buffer.from(`${sent}QUIT\r\n`, "latin1");
    for (const chunks of [[bytes], single(bytes), ...splits(bytes)]) {
      assert.deepEqual(readMessage(chunks, "mended"), { message, rest: "QUIT", progress: "end" });
    }
  });
}

test("a CR alone and NUL stay faults where line ends are mended", () => {
  for (const [sequence, fault] of SMUGGLED.filter(([, known]) => known !== "bare_lf")) {
    const bytes = Buffer.from(`a\nb${sequence}MAIL FROM:<a@b>\r\n.\r\n`, "latin1");
    for (const chunks of [[bytes], single(bytes), ...splits(bytes)]) {
      const { progress, message } = readMessage(chunks, "mended");
      assert.equal(progress, fault, JSON.stringify(sequence));
      assert.ok(!message.includes("MAIL FROM"), message);
    }
  }
});

test("any lines arrive whole from a program that doubles dots and ends its lines with LF, however they are cut", () => {
  const lines = fc.array(fc.oneof(fc.constant("."), fc.constant(".."), fc.constant(""), fc.string({ maxLength: 9 })));
  fc.assert(
    fc.property(lines, fc.array(fc.nat(40)), fc.array(fc.boolean(), { minLength: 1 }), (given, cuts, isLf) => {
      const content = given.map((line) => line.replace(/[\r\n\0]/g, "x"));
      const sent = content.map((line, n) => `${line.replace(/^\./, "..")}${isLf[n % isLf.length] ? "\n" : "\r\n"}`);
      const bytes = Buffer.from(`${sent.join("")}\r\n.\r\nEND\r\n`);
      const places = [...new Set(cuts.map((cut) => cut % bytes.length))].sort((a, b) => a - b);
      const chunks = [...places, bytes.length].map((end, i) => bytes.subarray(i === 0 ? 0 : places[i - 1], end));
      const read = readMessage(
        chunks.filter((chunk) => chunk.length > 0),
        "mended",
      );
      const wanted = Buffer.from([...content, ""].map((line) => `${line}\r\n`).join("")).toString("latin1");
      assert.deepEqual(read, { message: wanted, rest: "END", progress: "end" });
    }),
    { numRuns: rounds(200, 2_000) },
  );
});

test("command lines end in CRLF and nothing else", () => {
  const read = (text: string) => {
    const input = createInput();
    input.push(Buffer.from(text, "latin1"));
    const line = input.takeLine();
    return line === null ? null : line.kind === "line" ? line.bytes.toString("latin1") : { fault: line.fault };
  };
  assert.equal(read("NOOP\r\nQUIT\r\n"), "NOOP");
  assert.equal(read("\r\n"), "");
  assert.equal(read("NOOP\r"), null);
  assert.equal(read("NOO"), null);
  assert.deepEqual(read("NOOP\nQUIT\r\n"), { fault: "bare_lf" });
  assert.deepEqual(read("\n"), { fault: "bare_lf" });
  assert.deepEqual(read("NO\rOP\r\n"), { fault: "bare_cr" });
  assert.deepEqual(read("NOOP\r\r\n"), { fault: "bare_cr" });
  assert.deepEqual(read("NO\rOP"), { fault: "bare_cr" });
  assert.deepEqual(read("NO\0OP\r\n"), { fault: "nul" });
  assert.equal(read(`${"x".repeat(LINE_OCTETS_MAX - 2)}\r\n`)?.toString().length, LINE_OCTETS_MAX - 2);
  assert.deepEqual(read(`${"x".repeat(LINE_OCTETS_MAX - 1)}\r\n`), { fault: "line_too_long" });
  assert.deepEqual(read("x".repeat(LINE_OCTETS_MAX + 1)), { fault: "line_too_long" });
});

test("what was cleared is never read", () => {
  const input = createInput();
  input.push(Buffer.from("STARTTLS\r\nMAIL FROM:<x@y>\r\n"));
  assert.equal(input.takeLine()?.kind, "line");
  input.clear();
  assert.equal(input.takeLine(), null);
  assert.equal(input.waiting(), 0);
});
