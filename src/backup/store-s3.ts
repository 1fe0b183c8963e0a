// A backup as one object of an S3-compatible store. It is sent in parts as it is made, so that it needs no room here, and the
// store shows it once all parts are there. It is read in pieces, so that a connection that breaks costs one piece.
import { createHash, type Hash } from "node:crypto";
import { Readable } from "node:stream";
import type { S3mini, UploadPart } from "s3mini";
import { UsageError } from "../platform/process/usage-error.ts";
import { isBucketName, objectSize, openS3, repeated, type S3Access } from "../platform/storage/s3.ts";
import { describeTrouble } from "../platform/storage/s3-trouble.ts";
import { StoreFailed, type Target, taken } from "./store.ts";

/** A store takes 10,000 parts at most, and some want all but the last of one size: 335 GB are the most that fit. */
const PART_BYTES = 32 * 1024 * 1024;
const PARTS_MAX = 10_000;
/** A part over 2 Mbit/s. */
const LIMITS = { answer_ms: 30_000, request_ms: 150_000 };
const ADDRESS = /^s3:\/\/([^/]+)\/(.*[^/])$/;

export function isS3Address(name: string): boolean {
  return /^s3:/i.test(name);
}

/** `s3://bucket/key` in the store of `access`. Throws a UsageError where it is no such address, or no store is set. */
export function s3Target(name: string, access: S3Access | null, partBytes = PART_BYTES): Target {
  const [, bucket, key] = ADDRESS.exec(name) ?? [];
  // A URL takes dots for a way up, out of the bucket.
  if (!bucket || !isBucketName(bucket) || !key || /(^|\/)\.\.?(\/|$)/.test(key)) {
    throw new UsageError(`${name} names no object: write s3://bucket/key.`);
  }
  if (!access) {
    throw new UsageError(
      `${name}: no store is set. Set POSTERN_BACKUP_S3_ENDPOINT, POSTERN_BACKUP_S3_ACCESS_KEY and POSTERN_BACKUP_S3_SECRET_KEY.`,
    );
  }
  const s3 = openS3({ ...access, bucket }, LIMITS);
  const refuseTaken = async (): Promise<void> => {
    if ((await explained(name, () => objectSize(s3, key))) !== null) throw taken(name);
  };
  return {
    name,
    refuseTaken,
    async store(bytes, hash) {
      const upload = await explained(name, () => s3.getMultipartUploadId(key)).catch((error) => {
        bytes.destroy();
        throw error;
      });
      try {
        const { parts, written } = await sendParts({ s3, key, upload, name, partBytes }, bytes, hash);
        await refuseTaken();
        await explained(name, () => complete(s3, key, upload, parts));
        return written;
      } catch (error) {
        await s3.abortMultipartUpload(key, upload).catch(() => undefined);
        throw error;
      }
    },
    read: () => Readable.from(pieces(s3, key, name, partBytes), { objectMode: false }),
  };
}

type Upload = { s3: S3mini; key: string; upload: string; name: string; partBytes: number };

async function sendParts(to: Upload, bytes: Readable, hash: Hash): Promise<{ parts: UploadPart[]; written: number }> {
  const parts: UploadPart[] = [];
  let written = 0;
  let held: Buffer[] = [];
  let heldBytes = 0;
  const send = async (part: Buffer): Promise<void> => {
    if (parts.length === PARTS_MAX) {
      throw new Error(
        `${to.name} would be larger than ${Math.floor((PARTS_MAX * to.partBytes) / 1e9)} GB, the most that fits`,
      );
    }
    parts.push(await sendPart(to, part, parts.length + 1));
    written += part.length;
  };
  for await (const chunk of bytes as AsyncIterable<Buffer>) {
    hash.update(chunk);
    held.push(chunk);
    heldBytes += chunk.length;
    if (heldBytes < to.partBytes) continue;
    let rest = Buffer.concat(held);
    for (; rest.length >= to.partBytes; rest = rest.subarray(to.partBytes)) await send(rest.subarray(0, to.partBytes));
    held = [rest];
    heldBytes = rest.length;
  }
  if (heldBytes > 0 || parts.length === 0) await send(Buffer.concat(held));
  return { parts, written };
}

/** s3mini signs no payload: with the digest the store refuses bytes that changed on the way. */
async function sendPart({ s3, key, upload, name }: Upload, part: Buffer, number: number): Promise<UploadPart> {
  const digest = { "content-md5": createHash("md5").update(part).digest("base64") };
  return await explained(name, () => repeated(() => s3.uploadPart(key, upload, part, number, {}, undefined, digest)));
}

/** A store may answer 200 and then say that it failed. */
async function complete(s3: S3mini, key: string, upload: string, parts: UploadPart[]): Promise<void> {
  const result = await s3.completeMultipartUpload(key, upload, parts);
  if (!result.etag) throw new Error(`it did not put the parts together: ${JSON.stringify(result).slice(0, 200)}`);
}

async function* pieces(s3: S3mini, key: string, name: string, pieceBytes: number): AsyncGenerator<Buffer> {
  let etag: string | null = null;
  let size = Number.POSITIVE_INFINITY;
  for (let at = 0; at < size; at += pieceBytes) {
    const got = await explained(name, () => repeated(() => readPiece(s3, key, at, at + pieceBytes)));
    if (etag !== null && got.etag !== etag) throw new StoreFailed(`${name} was replaced while it was read`);
    etag = got.etag;
    size = got.size;
    yield got.bytes;
  }
}

async function readPiece(s3: S3mini, key: string, from: number, to: number) {
  const answer = await s3.getObjectRaw(key, false, from, to);
  const bytes = Buffer.from(await answer.arrayBuffer());
  const total = /\/(\d+)$/.exec(answer.headers.get("content-range") ?? "")?.[1];
  if (answer.status !== 206 || total === undefined) {
    throw new Error(`it answered ${answer.status} to a request for a part of the object`);
  }
  if (bytes.length !== Math.min(to, Number(total)) - from) throw new Error("its answer was cut short");
  return { bytes, size: Number(total), etag: answer.headers.get("etag") };
}

/** What the store did wrong, in one sentence that names the object. */
async function explained<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new StoreFailed(`${name}: ${describeTrouble(cause).message}`, { cause });
  }
}
