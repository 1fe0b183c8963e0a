import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, mock, test } from "node:test";
import {
  BlobDamaged,
  BlobsUnavailable,
  createS3Blobs,
  FsyncFailure,
  isStoreTrouble,
  createFolderBlobs as openFolderBlobs,
} from "./blobs.ts";

const root = mkdtempSync(join(tmpdir(), "blobs-"));
after(() => rmSync(root, { recursive: true }));
const newFolder = () => mkdtempSync(join(root, "f-"));
/** What ended the process, had it been one. */
const ended: Error[] = [];
const createFolderBlobs = (dir: string) => openFolderBlobs(dir, (failure) => ended.push(failure));
const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const files = (dir: string) =>
  readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());

async function readAll(stream: AsyncIterable<Buffer> | null): Promise<Buffer | null> {
  if (stream === null) return null;
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test("folder: bytes come back under the SHA-256 of their content, whole and as a stream", async () => {
  const blobs = createFolderBlobs(join(newFolder(), "not", "yet", "there"));
  for (const bytes of [Buffer.alloc(0), Buffer.from("hello"), randomBytes(3_000_000)]) {
    const key = await blobs.put(bytes);
    assert.equal(key, digest(bytes));
    assert.deepEqual(await blobs.get(key), bytes);
    assert.deepEqual(await readAll(await blobs.stream(key)), bytes);
    assert.equal(await blobs.exists(key), true);
  }
});

test("folder: what is not there is null, and deleting it is fine", async () => {
  const blobs = createFolderBlobs(newFolder());
  const key = digest(Buffer.from("nothing"));
  assert.equal(await blobs.get(key), null);
  assert.equal(await blobs.stream(key), null);
  assert.equal(await blobs.exists(key), false);
  await blobs.delete(key);
  await blobs.put(Buffer.from("nothing"));
  await blobs.delete(key);
  assert.equal(await blobs.exists(key), false);
});

test("folder: existing content is not written again, and only its owner may read it", async () => {
  const dir = newFolder();
  const blobs = createFolderBlobs(dir);
  const key = await blobs.put(Buffer.from("same"));
  const path = join(dir, key.slice(0, 2), key.slice(2, 4), key);
  const first = statSync(path);
  await Promise.all([blobs.put(Buffer.from("same")), createFolderBlobs(dir).put(Buffer.from("same"))]);
  assert.equal(statSync(path).ino, first.ino);
  assert.equal(first.mode & 0o777, 0o600);
  assert.equal(files(dir).length, 1);
});

test("folder: a hundred writers of the same and of other content leave each blob whole and nothing else", async () => {
  const dir = newFolder();
  const blobs = createFolderBlobs(dir);
  await Promise.all(Array.from({ length: 100 }, (_, index) => blobs.put(Buffer.alloc(10_000, index % 10))));
  const found = files(dir);
  assert.equal(found.length, 10);
  for (const entry of found) assert.equal((await blobs.get(entry.name))?.length, 10_000);
});

test("folder: a key that is not one never becomes a path", async () => {
  const blobs = createFolderBlobs(newFolder());
  for (const key of ["", "../../etc/passwd", "A".repeat(64), `${"a".repeat(63)}/`, `${"a".repeat(64)}\n`]) {
    await assert.rejects(async () => blobs.get(key), TypeError);
    await assert.rejects(async () => blobs.delete(key), TypeError);
    await assert.rejects(async () => blobs.stream(key), TypeError);
  }
});

test("folder: bytes that no longer match their key are reported, not returned; a shortened file is written again", async () => {
  const dir = newFolder();
  const blobs = createFolderBlobs(dir);
  const bytes = Buffer.from("precious");
  const key = await blobs.put(bytes);
  const path = join(dir, key.slice(0, 2), key.slice(2, 4), key);
  writeFileSync(path, "tampered");
  await assert.rejects(blobs.get(key), BlobDamaged);
  writeFileSync(path, "cut");
  await blobs.put(bytes);
  assert.deepEqual(await blobs.get(key), bytes);
});

test("folder: a process killed between write and rename leaves no visible blob, and the rest is swept a day later", async () => {
  const dir = newFolder();
  const bytes = Buffer.from("half way");
  const script = `
    import { promises } from "node:fs";
    import { syncBuiltinESMExports } from "node:module";
    promises.rename = async () => process.kill(process.pid, "SIGKILL");
    syncBuiltinESMExports();
    const { createFolderBlobs } = await import(${JSON.stringify(new URL("./blobs.ts", import.meta.url).href)});
    await createFolderBlobs(process.argv[1], () => {}).put(Buffer.from("half way"));
    process.exit(3);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script, dir], { stdio: "inherit" });
  const [, signal] = await once(child, "exit");
  assert.equal(signal, "SIGKILL");
  const [left] = files(dir);
  assert.equal(left?.parentPath, join(dir, "tmp"));
  const blobs = createFolderBlobs(dir);
  assert.equal(await blobs.exists(digest(bytes)), false);
  assert.equal(await blobs.get(digest(bytes)), null);
  utimesSync(join(dir, "tmp", left.name), new Date(), new Date(Date.now() - 25 * 3_600_000));
  await blobs.put(bytes);
  assert.deepEqual(
    files(dir).map((entry) => entry.name),
    [digest(bytes)],
  );
});

/** Runs with every fsync replaced. */
async function withFsync(fsync: () => Promise<void>, run: () => Promise<void>): Promise<void> {
  const handle = await open(root);
  const replaced = mock.method(Object.getPrototypeOf(handle) as FileHandle, "sync", fsync);
  await handle.close();
  try {
    await run();
  } finally {
    replaced.mock.restore();
  }
}

const failing = (code: string) => async () => {
  throw Object.assign(new Error(code), { code });
};

test("folder: of a large body no more than 1 MiB waits for the disk at once", async () => {
  const dir = newFolder();
  const blobs = createFolderBlobs(dir);
  const bytes = Buffer.alloc(5.5 * 1024 * 1024, "of a large body");
  const atSync: number[] = [];
  const noteSize = async () => {
    const [temporary] = files(dir);
    if (temporary) atSync.push(statSync(join(temporary.parentPath, temporary.name)).size);
  };
  await withFsync(noteSize, async () => {
    await blobs.put(bytes);
  });
  const waited = atSync.map((size, n) => size - (atSync[n - 1] ?? 0));
  assert.ok(Math.max(...waited) <= 1024 * 1024, waited.join(", "));
  assert.equal(atSync.at(-1), bytes.length);
  assert.deepEqual(await blobs.get(digest(bytes)), bytes);
});

test("folder: a failed fsync ends the process, and nothing is kept after it", async () => {
  const dir = newFolder();
  const first = createFolderBlobs(dir);
  await first.put(Buffer.from("makes the folders"));
  ended.length = 0;
  await withFsync(failing("EIO"), () => assert.rejects(first.put(Buffer.from("lost")), FsyncFailure));
  assert.equal(await first.exists(digest(Buffer.from("lost"))), false);
  assert.equal(ended.length, 1);
  assert.ok(ended[0] instanceof FsyncFailure);
  // The folder's fsync may fail after the file has its name: a second request finds it, and must not learn that it is kept.
  const second = createFolderBlobs(dir);
  await withFsync(failing("EIO"), () => assert.rejects(second.put(Buffer.from("makes the folders")), FsyncFailure));
  assert.equal(ended.length, 2);
  await assert.rejects(second.put(Buffer.from("makes the folders")), FsyncFailure);
  await assert.rejects(second.put(Buffer.from("something else")), FsyncFailure);
  assert.equal(ended.length, 2);
});

test("folder: what fails for the folder is trouble of the store, a wrong key is not", async () => {
  const dir = newFolder();
  const blobs = createFolderBlobs(dir);
  const key = await blobs.put(Buffer.from("x"));
  rmSync(join(dir, key.slice(0, 2)), { recursive: true });
  writeFileSync(join(dir, key.slice(0, 2)), "a file where a folder was");
  for (const work of [() => blobs.put(Buffer.from("x")), () => blobs.get(key), () => blobs.stream(key)]) {
    const failure = await work().then(
      () => null,
      (error: unknown) => error,
    );
    assert.ok(failure instanceof BlobsUnavailable && isStoreTrouble(failure), String(failure));
    assert.equal(failure.code, "ENOTDIR");
  }
  await assert.rejects(blobs.get("../../etc/passwd"), TypeError);
});

test("folder: a full disk is refused and leaves nothing, and the next write goes through", async () => {
  const dir = newFolder();
  const blobs = createFolderBlobs(dir);
  const bytes = Buffer.from("does not fit");
  await blobs.put(Buffer.from("x"));
  await blobs.put(bytes).then((key) => blobs.delete(key));
  await withFsync(failing("ENOSPC"), () => assert.rejects(blobs.put(bytes), { code: "ENOSPC" }));
  assert.equal(files(dir).length, 1);
  await blobs.put(bytes);
  assert.deepEqual(await blobs.get(digest(bytes)), bytes);
});

test("folder: the file is synced before it gets its name, and its folders after", async () => {
  const dir = newFolder();
  const bytes = Buffer.from("in order");
  const visible: boolean[] = [];
  const fsync = async () => void visible.push(files(dir).some((entry) => entry.name === digest(bytes)));
  await withFsync(fsync, async () => void (await createFolderBlobs(dir).put(bytes)));
  // The root, two levels, tmp; then the file itself; then the folder that names it.
  assert.deepEqual(visible, [false, false, false, false, false, true]);
});

// --- S3 --------------------------------------------------------------------------------------------------------------

type FakeS3 = {
  endpoint: string;
  objects: Map<string, Buffer>;
  log: string[];
  fail: number[];
  /** Bodies of the failures that have one, in turn. */
  reasons: string[];
  /** Before the end of an answer with a body; before any answer, when it never comes. */
  pause: { end: Promise<void>; answer: Promise<void> };
  stop(): Promise<void>;
};

/** As much of S3 as we use; `fail` holds status codes to answer with first. It checks the checksum as S3 does. */
async function startFakeS3(): Promise<FakeS3> {
  const state = {
    ...{ objects: new Map<string, Buffer>(), log: [] as string[], fail: [] as number[], reasons: [] as string[] },
    pause: { end: Promise.resolve(), answer: Promise.resolve() },
  };
  const server = createServer(async (request, response) => {
    const body = (await readAll(request)) ?? Buffer.alloc(0);
    state.log.push(`${request.method} ${request.url}`);
    await state.pause.answer;
    const planned = state.fail.shift();
    const status = planned ?? serve(state.objects, request, body);
    const kept = state.objects.get(request.url ?? "");
    const length = request.method === "HEAD" && kept ? { "content-length": kept.length } : {};
    const found = { etag: '"a"', ...length };
    response.writeHead(status, status >= 300 && status < 400 ? { location: "http://127.0.0.1:1/" } : found);
    if (planned !== undefined && request.method !== "HEAD") return response.end(state.reasons.shift() ?? "");
    const bytes = status === 200 && request.method === "GET" ? state.objects.get(request.url ?? "") : undefined;
    if (bytes && bytes.length > 1) {
      response.write(bytes.subarray(0, 1));
      await state.pause.end;
    }
    response.end(bytes?.subarray(bytes.length > 1 ? 1 : 0) ?? "");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { ...state, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}

function serve(objects: Map<string, Buffer>, request: IncomingMessage, body: Buffer): number {
  const signed = /^AWS4-HMAC-SHA256 Credential=id\/\d{8}\/eu-1\/s3\/aws4_request/.test(
    request.headers.authorization ?? "",
  );
  if (!signed) return 403;
  const path = request.url ?? "";
  if (request.method === "DELETE") return objects.delete(path) ? 204 : 404;
  if (request.method !== "PUT") return objects.has(path) ? 200 : 404;
  const sum = createHash("sha256").update(body).digest("base64");
  if (request.headers["x-amz-checksum-sha256"] !== sum) return 400;
  objects.set(path, body);
  return 200;
}

function s3Blobs(s3: Pick<FakeS3, "endpoint">, limits?: Parameters<typeof createS3Blobs>[1]) {
  const options = { endpoint: s3.endpoint, region: "eu-1", bucket: "mail", access_key: "id", secret_key: "s" };
  return createS3Blobs(options, limits);
}

test("S3: bytes are put once under their digest and come back, whole and as a stream; absence is null", async () => {
  const s3 = await startFakeS3();
  const blobs = s3Blobs(s3);
  const bytes = randomBytes(100_000);
  const key = await blobs.put(bytes);
  assert.equal(key, digest(bytes));
  await blobs.put(bytes);
  assert.deepEqual(s3.log, [`HEAD /mail/${key}`, `PUT /mail/${key}`, `HEAD /mail/${key}`]);
  assert.deepEqual(await blobs.get(key), bytes);
  assert.deepEqual(await readAll(await blobs.stream(key)), bytes);
  assert.equal(await blobs.exists(key), true);
  await blobs.delete(key);
  await blobs.delete(key);
  assert.equal(await blobs.exists(key), false);
  assert.equal(await blobs.get(key), null);
  assert.equal(await blobs.stream(key), null);
  const empty = await blobs.put(Buffer.alloc(0));
  assert.deepEqual(await blobs.get(empty), Buffer.alloc(0));
  await s3.stop();
});

test("S3: a store that is busy is asked again, twice; one that refuses is not", async () => {
  const s3 = await startFakeS3();
  const blobs = s3Blobs(s3);
  s3.fail.push(503, 500);
  await blobs.put(Buffer.from("x"));
  assert.equal(s3.log.length, 4);
  s3.fail.push(503, 503, 503);
  await assert.rejects(blobs.put(Buffer.from("y")), BlobsUnavailable);
  s3.log.length = 0;
  s3.fail.push(403, 403);
  await assert.rejects(blobs.put(Buffer.from("z")), BlobsUnavailable);
  assert.deepEqual(
    s3.log.map((line) => line.split(" ")[0]),
    ["HEAD", "GET"],
    "once, and once for its reason, which an answer to HEAD cannot hold",
  );
  await s3.stop();
});

test("S3: a failure keeps the code that the store or the system gave", async () => {
  const s3 = await startFakeS3();
  const blobs = s3Blobs(s3);
  const codeOf = (work: Promise<unknown>) =>
    work.then(
      () => assert.fail("it worked"),
      (error) => {
        assert.ok(error instanceof BlobsUnavailable);
        return [error.code, error.message.replace(/^the store of large bodies fails: /, "")];
      },
    );
  const xml = (code: string, says: string) =>
    `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${says}</Message></Error>`;
  s3.reasons.push(xml("InvalidAccessKeyId", "no such key"));
  s3.fail.push(403, 403);
  assert.deepEqual(await codeOf(blobs.put(Buffer.from("a"))), [
    "InvalidAccessKeyId",
    "it answered 403 InvalidAccessKeyId: no such key",
  ]);
  s3.reasons.push(xml("Malformed", "the region &#34;a&quot; &amp; more"));
  s3.fail.push(400);
  assert.equal((await codeOf(blobs.get("a".repeat(64))))[1], 'it answered 400 Malformed: the region "a" & more');
  s3.reasons.push(xml("NoSuchBucket", "there is none"));
  s3.fail.push(404, 404);
  assert.equal((await codeOf(blobs.put(Buffer.from("b"))))[0], "NoSuchBucket");
  s3.reasons.push(xml("SlowDown", "x"), xml("SlowDown", "x"), xml("SlowDown", "x"));
  s3.fail.push(503, 503, 503);
  assert.equal((await codeOf(blobs.get("a".repeat(64))))[0], "SlowDown");
  s3.fail.push(403);
  assert.deepEqual(await codeOf(blobs.delete("a".repeat(64))), [undefined, "it answered 403"]);
  await s3.stop();
  const [code, says] = await codeOf(s3Blobs(s3).put(Buffer.from("c")));
  assert.equal(code, "ECONNREFUSED");
  assert.match(String(says), /ECONNREFUSED/);
});

test("S3: a 404 that is not the object's is trouble: a body is neither gone nor deleted for it", async () => {
  const s3 = await startFakeS3();
  const blobs = s3Blobs(s3);
  const key = await blobs.put(Buffer.from("x"));
  for (const reason of ["<Error><Code>NoSuchBucket</Code></Error>", "<html>Not found</html>"]) {
    for (const ask of [blobs.get, blobs.stream, blobs.delete]) {
      s3.reasons.push(reason);
      s3.fail.push(404);
      await assert.rejects(ask(key), BlobsUnavailable, `${ask} ${reason}`);
    }
  }
  s3.reasons.push("<Error><Code>NoSuchKey</Code></Error>", "<Error><Code>NoSuchKey</Code></Error>");
  s3.fail.push(404, 404);
  assert.equal(await blobs.get(key), null);
  await blobs.delete(key);
  await s3.stop();
});

test("S3: a web server that answers everything with a page keeps nothing and is no store", async () => {
  for (const headers of [{}, { etag: '"page"' }]) {
    const server = createServer((request, response) => {
      const more = request.method === "PUT" ? {} : headers; // a page may have one, a PUT to it has none
      response.writeHead(200, { "content-type": "text/html", ...more }).end("<html>Sign in</html>");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const blobs = s3Blobs({ endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    await assert.rejects(blobs.put(Buffer.from("x")), BlobsUnavailable);
    await assert.rejects(blobs.delete("a".repeat(64)), BlobsUnavailable);
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
});

test("S3: an object of another length, as of an upload that was cut, is written again", async () => {
  const s3 = await startFakeS3();
  const blobs = s3Blobs(s3);
  const bytes = Buffer.from("whole");
  const key = await blobs.put(bytes);
  s3.objects.set(`/mail/${key}`, bytes.subarray(1));
  await blobs.put(bytes);
  assert.deepEqual(await blobs.get(key), bytes);
  await s3.stop();
});

test("S3: what is passed on takes as long as its reader; whoever needs all of it waits no longer than a request may take", async () => {
  const s3 = await startFakeS3();
  const bytes = randomBytes(1_000);
  const key = await s3Blobs(s3).put(bytes);
  const slow = Promise.withResolvers<void>();
  s3.pause.end = slow.promise;
  const blobs = s3Blobs(s3, { answer_ms: 20_000, request_ms: 100 });
  const stream = await blobs.stream(key);
  await assert.rejects(blobs.get(key), BlobsUnavailable);
  slow.resolve();
  assert.deepEqual(await readAll(stream), bytes);
  await s3.stop();
});

test("S3: a store that does not answer is asked once, and is in trouble", async () => {
  const s3 = await startFakeS3();
  s3.pause.answer = new Promise(() => undefined);
  const blobs = s3Blobs(s3, { answer_ms: 50, request_ms: 60_000 });
  await assert.rejects(blobs.put(Buffer.from("x")), BlobsUnavailable);
  await assert.rejects(blobs.stream(digest(Buffer.from("x"))), BlobsUnavailable);
  assert.equal(s3.log.length, 2);
  await s3.stop();
});

test("S3: damaged bytes are reported, and a redirect is not followed", async () => {
  const s3 = await startFakeS3();
  const blobs = s3Blobs(s3);
  const key = await blobs.put(Buffer.from("x"));
  s3.objects.set(`/mail/${key}`, Buffer.from("y"));
  await assert.rejects(blobs.get(key), BlobDamaged);
  s3.fail.push(302, 302, 302);
  await assert.rejects(blobs.get(key), /fetch failed: unexpected redirect/);
  await s3.stop();
});
