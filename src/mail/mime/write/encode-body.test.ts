import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { rounds } from "../../../../test/support/rounds.ts";
import { encodeBase64, encodePlainOctets, encodeText } from "./encode-body.ts";

const pieces = fc.constantFrom("a", " ", "\t", "\n", "\r", ".", "F", "From ", "=", "é", "日", "😀", "x".repeat(30));
const anyText = fc.string({
  unit: fc.oneof(pieces, fc.string({ unit: "binary", minLength: 1, maxLength: 1 })),
  maxLength: 400,
  size: "max",
});

describe("encodeText", () => {
  it("keeps every character, with CRLF as the only line end, whatever the encoding", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        assert.equal(decode(encodeText(text)), text.toWellFormed().replace(/\r\n?|\n/g, "\r\n"));
      }),
      { numRuns: rounds(300, 3_000) },
    );
  });

  it("writes quoted-printable within 76 columns that gateways leave alone", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const { encoding, body } = encodeText(text);
        if (encoding !== "quoted-printable") return;
        for (const line of body.toString("latin1").split("\r\n")) {
          assert.match(line, /^[\x20-\x7e\t]{0,76}$/);
          assert.doesNotMatch(line, /[ \t]$|^\.|^From /);
        }
      }),
      { numRuns: rounds(300, 3_000) },
    );
  });

  it("escapes what stands at the edges of lines", () => {
    const cases: [string, string][] = [
      ["é.", "=C3=A9."],
      [".é", "=2E=C3=A9"],
      ["a \né", "a=20\r\n=C3=A9"],
      ["é \t", "=C3=A9 =09"],
      ["From é", "=46rom =C3=A9"],
      ["Fromé", "From=C3=A9"],
      ["é From", "=C3=A9 From"],
    ];
    const rest = "\nwith enough plain text behind it";
    for (const [text, encoded] of cases) {
      const { encoding, body } = encodeText(text + rest);
      assert.equal(encoding, "quoted-printable");
      const expected = encoded === "=C3=A9 =09" ? "=C3=A9 =09\r\n" : `${encoded}\r\n`;
      assert.ok(body.toString("latin1").startsWith(expected), `${JSON.stringify(text)} became ${body}`);
    }
  });

  it("escapes a dot that a soft line break moves to the start of a line", () => {
    const { body } = encodeText(`${"é".repeat(12)}${"x".repeat(3)}.${"y".repeat(200)}`);
    assert.match(body.toString("latin1"), /=\r\n=2Ey/);
  });
});

describe("encodeBase64", () => {
  it("is what a decoder reads, in lines of 76", () => {
    for (const size of [0, 1, 2, 3, 56, 57, 58, 113, 114, 115, 10_000]) {
      const content = Buffer.alloc(size, "\x00\xffabc", "latin1");
      const text = encodeBase64(content).toString("latin1");
      assert.ok(Buffer.from(text, "base64").equals(content));
      const lines = text.split("\r\n");
      for (const [i, line] of lines.entries())
        assert.ok(i === lines.length - 1 ? line.length <= 76 : line.length === 76);
    }
  });
});

describe("encodePlainOctets", () => {
  it("takes mail text only", () => {
    assert.deepEqual(encodePlainOctets(Buffer.from("a\nb\r\nc\rd")), { encoding: "7bit", body: "a\r\nb\r\nc\r\nd" });
    for (const bad of ["ü", "a\0", "x".repeat(1_000)]) assert.equal(encodePlainOctets(Buffer.from(bad)), null);
  });
});

// Our own reading of RFC 2045 §6.7: soft line breaks away, then the escapes.
function decode({ encoding, body }: { encoding: string; body: string | Buffer }): string {
  const text = typeof body === "string" ? body : body.toString("latin1");
  if (encoding === "7bit") return text;
  if (encoding === "base64") return Buffer.from(text, "base64").toString();
  const octets = text
    .replace(/=\r\n/g, "")
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(octets, "latin1").toString();
}
