import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { processorMs } from "../../../test/support/processor-time.ts";
import { withoutComments } from "./comments.ts";
import { decodeTransfer } from "./decode-transfer.ts";
import { parseMessage } from "./parse-message.ts";
import { parseParameters } from "./parse-parameters.ts";

const parametersOf = (text: string) => Object.fromEntries(parseParameters(text).parameters);

describe("comments in fields of MIME", () => {
  it("are taken off values, wherever they stand, nested and with quoted pairs (RFC 2045 §5.1)", () => {
    assert.deepEqual(parametersOf("text/plain; charset=us-ascii (Plain text)"), { charset: "us-ascii" });
    assert.deepEqual(parametersOf('text/plain; charset="us-ascii" (Plain; x=y)'), { charset: "us-ascii" });
    assert.deepEqual(parametersOf("text/plain (a; charset=x (b\\) c) d); (e) charset (f) = (g) utf-8(h)"), {
      charset: "utf-8",
    });
    assert.deepEqual(parametersOf("multipart/mixed; boundary=abc (x); charset=utf-8"), {
      boundary: "abc",
      charset: "utf-8",
    });
    assert.equal(parseParameters("(a) text/html(b); charset=utf-8").value, "text/html");
    assert.equal(parseParameters("attachment (it is)").value, "attachment");
  });

  it("are none within quotes, in the names of files, in the middle of a boundary, and when they do not end", () => {
    assert.deepEqual(parametersOf('a/b; boundary="a (b)"; name="x (1).pdf"'), { boundary: "a (b)", name: "x (1).pdf" });
    assert.deepEqual(parametersOf("a/b; name=report (1).pdf; charset=utf-8 (x)"), {
      name: "report (1).pdf",
      charset: "utf-8",
    });
    assert.deepEqual(parametersOf("attachment; filename=a (2).txt"), { filename: "a (2).txt" });
    assert.deepEqual(parametersOf("attachment; filename*0=a (2; filename*1=).txt"), { filename: "a (2).txt" });
    assert.deepEqual(parametersOf("a/b; boundary=----_Part(1)_x"), { boundary: "----_Part(1)_x" });
    assert.deepEqual(parametersOf("a/b; boundary=abc (x"), { boundary: "abc (x" });
  });

  it("are taken off the transfer encoding, so that the body is read", () => {
    assert.deepEqual(decodeTransfer(Buffer.from("aGVsbG8="), "base64 (x)"), {
      bytes: Buffer.from("hello"),
      defect: null,
    });
    assert.equal(decodeTransfer(Buffer.from("=41"), "(a) Quoted-Printable (b)").bytes.toString(), "A");
    const mail = parseMessage(
      Buffer.from(
        "Content-Type: multipart/mixed; boundary=abc (x)\r\n\r\n--abc\r\nContent-Type: text/plain; charset=utf-8 (y)\r\n" +
          "Content-Transfer-Encoding: base64 (z)\r\n\r\nw6k=\r\n--abc--\r\n",
      ),
    );
    assert.deepEqual([mail.text, mail.attachments.length], ["é", 0]);
  });

  it("take linear time, however they are made", () => {
    for (const piece of ["(", "()", '"(', "=(", "name=(", "\\(", '("\\', "a("]) {
      assert.ok(processorMs(() => withoutComments(piece.repeat(64 * 1_024))) < 1_000, piece);
    }
  });
});
