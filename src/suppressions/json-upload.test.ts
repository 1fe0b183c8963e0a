import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Refusal } from "../platform/refusal.ts";
import type { TempFile } from "../platform/storage/temp-file.ts";
import { readJsonBody, unescaped } from "./json-upload.ts";

/** A file in memory. */
function memoryFile(): TempFile {
  let all = Buffer.alloc(0);
  return {
    size: () => all.length,
    write: async (bytes) => {
      all = Buffer.concat([all, bytes]);
    },
    async *read(pieceBytes) {
      for (let at = 0; at < all.length; at += pieceBytes) yield all.subarray(at, at + pieceBytes);
    },
    discard: async () => undefined,
  };
}

async function* inPieces(text: string | Buffer, bytes: number): AsyncGenerator<Buffer> {
  const all = Buffer.from(text as string);
  for (let at = 0; at < all.length; at += bytes) yield all.subarray(at, at + bytes);
}

/** What comes out for a body that comes in, and is read again, in pieces of that size. */
async function read(body: string | Buffer, bytes: number) {
  const file = memoryFile();
  const { fields, inFile } = await readJsonBody(inPieces(body, bytes), file);
  const parts: Buffer[] = [];
  for await (const part of unescaped(file.read(bytes))) parts.push(part);
  return { ...fields, ...(inFile ? { csv: Buffer.concat(parts).toString("utf8") } : {}), inFile };
}

const SIZES = [1, 2, 3, 5, 7, 16, 17, 40, 1_000];
const HARD = 'a,"b"\r\n\\ \\\\ \t \u0000 \u00fc\u20ac\ud83d\ude00 / {}[]:,"csv":"x" \u2028';
const asEscapes = (text: string) =>
  text.replace(/[\u0080-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

describe("the JSON body of an import", () => {
  it("is what JSON.parse makes of it, however it is cut", async () => {
    const bodies = [
      { csv: HARD.repeat(3), provider: "ses", filename: "x.csv" },
      { provider: "csv", filename: "\\", csv: "" },
      { csv: "\\".repeat(33) },
      { filename: 'say "csv": "no"', csv: '"' },
    ];
    for (const body of bodies) {
      for (const text of [JSON.stringify(body), asEscapes(JSON.stringify(body)), JSON.stringify(body, null, 2)]) {
        for (const bytes of SIZES) assert.deepEqual(await read(text, bytes), { ...body, inFile: true }, text);
      }
    }
  });

  it("may have a byte order mark before it", async () => {
    for (const bytes of SIZES) {
      assert.deepEqual(await read('\ufeff{"csv":"a"}', bytes), { csv: "a", inFile: true });
    }
  });

  it("takes only the outermost member for the list, by whatever spelling of its name", async () => {
    const nested = { provider: { csv: "inner" }, filename: ["csv", { csv: "x" }] };
    assert.deepEqual(await read(JSON.stringify(nested), 3), { ...nested, inFile: false });
    assert.deepEqual(await read('{"\\u0063sv":"a"}', 3), { csv: "a", inFile: false });
    assert.deepEqual(await read('{"csv":5}', 3), { csv: 5, inFile: false });
    assert.deepEqual(await read('{"csv" \n : \t "a", "x": 1}', 1), { csv: "a", x: 1, inFile: true });
  });

  it("is refused when it is no JSON, wherever it breaks", async () => {
    const broken = ["", '{"csv":"a', '{"csv":"a"', '{"csv":"a\\"}', '{"csv" "a"}', '{"csv":"a" "b"}', "{"];
    for (const text of [
      ...broken,
      '{"csv":"\\x"}',
      '{"csv":"a\nb"}',
      '{"csv":"\\u12"}',
      `{"a":"${"x".repeat(70_000)}"}`,
    ]) {
      for (const bytes of [1, 4, 100_000]) {
        await assert.rejects(
          read(text, bytes),
          (error) => error instanceof Refusal && error.kind === "invalid_json",
          text.slice(0, 40),
        );
      }
    }
  });

  it("is refused when it is not UTF-8, in the list and beside it", async () => {
    for (const text of ['{"csv":"m\u00fcller@recipient.example"}', '{"csv":"a","filename":"\u00fc.csv"}']) {
      const notUtf8 = (error: unknown) => error instanceof Refusal && /UTF-8/.test(error.message);
      for (const bytes of [1, 16, 1_000]) await assert.rejects(read(Buffer.from(text, "latin1"), bytes), notUtf8);
      await read(text, 1);
    }
  });

  it("is refused when it is no object, or over 40 MiB", async () => {
    for (const text of ["[]", "5", '"csv"', "null"]) {
      await assert.rejects(
        read(text, 2),
        (error) => error instanceof Refusal && error.kind === "validation_error",
        text,
      );
    }
    async function* endless() {
      for (;;) yield Buffer.alloc(1024 * 1024, " ");
    }
    await assert.rejects(readJsonBody(endless(), memoryFile()), (error) => error instanceof Refusal);
  });
});
