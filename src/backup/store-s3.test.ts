import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { hasS3Server, type S3Server, startS3Server } from "../../test/support/s3-server.ts";
import { s3Target } from "./store-s3.ts";

/** The least that S3 takes of a part that is not the last. */
const PART_BYTES = 5 * 1024 * 1024;
const BYTES = randomBytes(2 * PART_BYTES + 1_000_000);

async function all(stream: Readable): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(stream as AsyncIterable<Buffer>));
}

async function* inChunks(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 700_001) yield bytes.subarray(at, at + 700_001);
}

const streamOf = (source: AsyncIterable<Buffer>) => Readable.from(source, { objectMode: false });

it("an address without an object, and one without a store, are refused with words", () => {
  const outside = ["s3://my bucket/key", "s3://bucket/../other/key", "s3://bucket/..", "s3://bucket/a/./b"];
  for (const address of ["s3://", "s3://bucket", "s3://bucket/", "s3://bucket/folder/", ...outside]) {
    assert.throws(() => s3Target(address, null), /names no object: write s3:\/\/bucket\/key/, address);
  }
  assert.throws(() => s3Target("s3://bucket/key", null), /set POSTERN_BACKUP_S3_ENDPOINT/i);
});

describe("a backup in an S3-compatible store", { skip: hasS3Server() ? false : "versitygw is not installed" }, () => {
  let server: S3Server;
  before(async () => {
    server = await startS3Server();
  });
  after(() => server.stop());

  const target = (key: string) => s3Target(`s3://${server.bucket}/${key}`, server.access, PART_BYTES);
  const isThere = (key: string) => server.client.objectExists(key);
  const once = (wanted: RegExp, fault: "busy" | "cut") => {
    let left = 1;
    return (seen: string) => (wanted.test(seen) && left-- > 0 ? fault : null);
  };

  it("comes back as it was written, in parts and in pieces, although the store is busy and a connection breaks", async () => {
    const { store, read, refuseTaken } = target("2026/mail backup.postern");
    await refuseTaken();
    server.fault = once(/partNumber=2/, "busy");
    const hash = createHash("sha256");
    assert.equal(await store(streamOf(inChunks(BYTES)), hash), BYTES.length);
    assert.equal(hash.digest("hex"), createHash("sha256").update(BYTES).digest("hex"));
    assert.equal(
      server.seen.filter((seen) => /^PUT .*partNumber/.test(seen)).length,
      4,
      "three parts, one of them twice",
    );
    server.fault = once(/^GET/, "cut");
    server.seen.length = 0;
    assert.ok((await all(read())).equals(BYTES));
    assert.equal(server.seen.length, 4, "three pieces, one of them twice");
    await assert.rejects(refuseTaken(), /is there already/);
  });

  it("is not there when what it is made of fails, and leaves no parts behind", async () => {
    async function* failing(): AsyncGenerator<Buffer> {
      yield BYTES;
      throw new Error("the database went away");
    }
    await assert.rejects(target("failed").store(streamOf(failing()), createHash("sha256")), /the database went away/);
    assert.equal(await isThere("failed"), false);
    const left = await server.client.listMultipartUploads();
    assert.doesNotMatch(JSON.stringify(left), /failed/);
  });

  it("is not written over one that came meanwhile", async () => {
    const { store } = target("raced");
    async function* racing(): AsyncGenerator<Buffer> {
      yield BYTES.subarray(0, 1_000);
      await server.client.putObject("raced", "of another");
    }
    await assert.rejects(store(streamOf(racing()), createHash("sha256")), /is there already/);
    assert.equal(await server.client.getObject("raced"), "of another");
  });

  it("says what the store says: an object that is not there, a wrong key, a store that does not answer", async () => {
    await assert.rejects(all(target("nothing").read()), /s3:\/\/kept\/nothing: it answered 404/);
    const stranger = { ...server.access, secret_key: "wrong" };
    const refused = s3Target("s3://kept/key", stranger, PART_BYTES);
    await assert.rejects(all(refused.read()), /s3:\/\/kept\/key: it answered 403/);
    await assert.rejects(refused.refuseTaken(), /s3:\/\/kept\/key: it answered 403 SignatureDoesNotMatch/);
    server.fault = () => "busy";
    await assert.rejects(target("busy").refuseTaken(), /s3:\/\/kept\/busy: it answered 503/);
    server.fault = () => null;
  });

  it("that is replaced while it is read is not taken for one", async () => {
    await server.client.putObject("replaced", BYTES);
    const read = target("replaced").read();
    const taken: Buffer[] = [];
    const reading = async () => {
      for await (const piece of read as AsyncIterable<Buffer>) {
        taken.push(piece);
        if (taken.length === 1) await server.client.putObject("replaced", Buffer.concat([BYTES, BYTES]));
      }
    };
    await assert.rejects(reading(), /was replaced while it was read/);
  });
});
