import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import { generateX25519Identity, identityToRecipient } from "age-encryption";
import { seal } from "./envelope.ts";
import { BackupBroken, frame, readFrames } from "./frames.ts";
import { createRowChecksum } from "./row-checksum.ts";
import { all, chunks } from "./streams.fixture.ts";

describe("the envelope of a backup", () => {
  it("passes a failure of what is backed up on to whoever writes it", async () => {
    async function* failing(): AsyncGenerator<Buffer> {
      yield randomBytes(200_000);
      throw new Error("the database went away");
    }
    const recipient = await identityToRecipient(await generateX25519Identity());
    const sealed = await seal(failing(), { passphrase: null, recipients: [recipient] });
    await assert.rejects(all(sealed), /the database went away/);
  });
});

describe("frames", () => {
  const written = [frame("H", { a: 1 }), frame("D", Buffer.alloc(0)), frame("D", randomBytes(5_000)), frame("Z", {})];

  it("are read as they were written, however they are cut", async () => {
    for (const size of [1, 3, 4, 5, 6, 1_000, 100_000]) {
      const found = await Array.fromAsync(readFrames(chunks(Buffer.concat(written), size)));
      assert.deepEqual(
        found.map(({ type, bytes }) => frame(type, bytes)),
        written,
        `${size}`,
      );
    }
  });

  it("that are cut short, or of another kind, are refused", async () => {
    const bytes = Buffer.concat(written);
    for (const wrong of [
      bytes.subarray(0, -1),
      Buffer.from("PGDMP and so on"),
      Buffer.from([0x44, 255, 255, 255, 255]),
    ]) {
      await assert.rejects(Array.fromAsync(readFrames(chunks(wrong, 100))), BackupBroken);
    }
  });
});

describe("the checksum of rows", () => {
  const of = (text: string, size: number) => {
    const sum = createRowChecksum();
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) sum.add(bytes.subarray(at, at + size));
    return sum.end();
  };

  it("is the same for the same rows in another order and in other pieces, and for no others", () => {
    const { checksum, rows } = of("a\t1\nb\t2\nc\t\\N\n", 4);
    assert.equal(rows, 3);
    assert.equal(of("c\t\\N\na\t1\nb\t2\n", 1).checksum, checksum);
    for (const other of [
      "a\t1\nb\t2\n",
      "a\t1\nb\t2\nc\t3\n",
      "a\t1\nb\t2\nc\t\\N\nc\t\\N\n",
      "a\t2\nb\t1\nc\t\\N\n",
    ]) {
      assert.notEqual(of(other, 5).checksum, checksum, other);
    }
  });
});
