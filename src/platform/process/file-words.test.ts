import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { makeMasterKey } from "../../settings/master-key-file.ts";
import { mergeEnvFile } from "../../setup/env-file.ts";
import { fileWords, nearestFolder } from "./file-words.ts";

let dir: string;

before(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-file-words-"));
});

after(() => rmSync(dir, { recursive: true, force: true }));

function failureOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

describe("a failure of the file system in words", () => {
  const skip = process.getuid?.() !== 0 && "a file system is mounted by root only";
  it("says that a folder cannot be made because its file system is read-only", { skip }, (t) => {
    const mounted = join(dir, "read-only");
    mkdirSync(mounted);
    assert.equal(spawnSync("mount", ["-t", "tmpfs", "-o", "ro", "none", mounted]).status, 0);
    t.after(() => spawnSync("umount", [mounted]));
    const path = join(mounted, "a", "data");
    const error = failureOf(() => mkdirSync(path, { recursive: true }));
    assert.equal(fileWords(error), `${path} cannot be made: ${mounted} is on a file system that is read-only`);
  });

  it("says that a disk is full, and leaves nothing of what did not fit on it", { skip }, (t) => {
    const mounted = join(dir, "full");
    mkdirSync(mounted);
    assert.equal(spawnSync("mount", ["-t", "tmpfs", "-o", "size=4k", "none", mounted]).status, 0);
    t.after(() => spawnSync("umount", [mounted]));
    writeFileSync(join(mounted, "filling"), Buffer.alloc(4096));
    assert.equal(
      fileWords(failureOf(() => makeMasterKey(join(mounted, "master.key")))),
      "the disk is full: make room on it",
    );
    const settings = join(mounted, "postern.env");
    assert.throws(() => mergeEnvFile(settings, { POSTERN_HOSTNAME: "mail.example.eu" }), {
      message: `${settings} is on a disk that is full.`,
    });
    assert.deepEqual(readdirSync(mounted), ["filling"]);
  });

  it("says of a folder that cannot be made which folder above it keeps it out, or that a file stands there", () => {
    const error = (code: string, path: string) => Object.assign(new Error(), { code, syscall: "mkdir", path });
    const path = join(dir, "b", "data");
    assert.match(String(fileWords(error("EACCES", path))), /data cannot be made: /);
    assert.equal(fileWords(error("EEXIST", path)), `${path} is a file, where a folder should be`);
  });

  it("names no reason for a folder that cannot be made where it sees none", () => {
    const path = join(dir, "a", "data");
    const error = Object.assign(new Error(), { code: "ENOENT", syscall: "mkdir", path });
    assert.equal(fileWords(error), `${path} cannot be made: its file system takes no new folders`);
  });

  it("says nothing about a failure that is not about a file", () => {
    assert.equal(fileWords(Object.assign(new Error(), { code: "ECONNREFUSED" })), null);
    assert.equal(fileWords(Object.assign(new Error(), { code: "ECONNREFUSED" }), dir), null);
  });

  it("finds the folder above that exists, and takes no file for one", () => {
    writeFileSync(join(dir, "file"), "");
    assert.equal(nearestFolder(join(dir, "file", "a", "b")), dir);
    assert.equal(nearestFolder(join(dir, "absent")), dir);
  });
});
