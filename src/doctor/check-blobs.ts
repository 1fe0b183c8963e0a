// The store of large bodies as `postern doctor` sees it, where it is a bucket: an object can be written, read and removed
// with these keys. A folder is judged with the data folder it is in.
import { createClock, within } from "../platform/clock.ts";
import { createRandom } from "../platform/random.ts";
import { createS3Blobs } from "../platform/storage/blobs.ts";
import type { S3Options } from "../platform/storage/s3.ts";
import { type Check, ok, problem } from "./check.ts";

const NAME = "large bodies";
const ANSWER_MS = 15_000;

/** Puts an object of its own, reads it and removes it; nothing where no bucket is set. */
export async function checkBlobs(s3: S3Options | null): Promise<Check[]> {
  if (s3 === null) return [];
  const where = `The bucket ${s3.bucket} at ${s3.endpoint}`;
  const why = await within(probe(s3), ANSWER_MS, `no answer within ${ANSWER_MS / 1_000} s`);
  if (why === null) return [ok(NAME, `${where} keeps, gives and removes objects.`)];
  return [
    problem(
      NAME,
      `${where} cannot be used: ${why}.`,
      "Check the POSTERN_S3_ settings, that the bucket is there, and that these keys may write, read and delete in it.",
    ),
  ];
}

async function probe(s3: S3Options): Promise<string | null> {
  try {
    const blobs = createS3Blobs(s3);
    const bytes = Buffer.from(`postern doctor ${createRandom(createClock({})).bytes(16).toString("hex")}`);
    const key = await blobs.put(bytes);
    const found = await blobs.get(key);
    await blobs.delete(key);
    return found?.equals(bytes) ? null : "what was just written is not there";
  } catch (error) {
    return (error as Error).message.replace(/\.$/, "");
  }
}
