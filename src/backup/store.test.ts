// A backup in a file: nothing has its name before it is whole.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { fileTarget } from "./store.ts";

const dir = mkdtempSync(join(tmpdir(), "postern-store-"));
after(() => rmSync(dir, { recursive: true, force: true }));

test("of two at once under one name one is whole, and the other is refused", async () => {
  const path = join(dir, "nightly");
  const isSlow = Promise.withResolvers<void>();
  async function* slow() {
    yield Buffer.from("the first ");
    await isSlow.promise;
    yield Buffer.from("one");
  }
  const first = fileTarget(path).store(Readable.from(slow()), createHash("sha256"));
  const second = await fileTarget(path).store(Readable.from([Buffer.from("the second one")]), createHash("sha256"));
  isSlow.resolve();
  await assert.rejects(first, /nightly is there already\.$/);
  assert.equal(second, readFileSync(path).length);
  assert.equal(readFileSync(path, "utf8"), "the second one");
  assert.deepEqual(readdirSync(dir), ["nightly"]);
});

test("a folder is no backup, and reading it fails in words", async () => {
  const path = join(dir, "folder");
  mkdirSync(path);
  await assert.rejects(async () => {
    for await (const _ of fileTarget(path).read()) break;
  }, /^StoreFailed: \S+folder is a folder\.$/);
  await assert.rejects(async () => {
    for await (const _ of fileTarget(join(dir, "none")).read()) break;
  }, /none does not exist\.$/);
});
