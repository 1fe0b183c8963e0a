import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileWords } from "../process/file-words.ts";
import { makeFolders } from "./make-folders.ts";

const MODE_BITS = 0o777;
const NEVER_MS = 60_000;
let dir: string;

before(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-make-folders-"));
});

after(() => rmSync(dir, { recursive: true, force: true }));

describe("making a folder with what is missing above it", () => {
  it("makes each with its mode, and leaves those that are there", () => {
    const path = join(dir, "a", "b");
    makeFolders(path, 0o700);
    makeFolders(path, 0o711);
    assert.equal(statSync(path).mode & MODE_BITS, 0o700);
    assert.equal(statSync(join(dir, "a")).mode & MODE_BITS, 0o700);
  });

  it("follows a link to a folder, and refuses a file and a link that leads nowhere", () => {
    mkdirSync(join(dir, "real"));
    symlinkSync(join(dir, "real"), join(dir, "link"));
    makeFolders(join(dir, "link", "data"));
    assert.ok(existsSync(join(dir, "real", "data")));
    writeFileSync(join(dir, "file"), "");
    symlinkSync(join(dir, "none"), join(dir, "dangling"));
    assert.throws(() => makeFolders(join(dir, "file")), { code: "EEXIST" });
    assert.throws(() => makeFolders(join(dir, "file", "data")), { code: "ENOTDIR" });
    assert.throws(() => makeFolders(join(dir, "dangling")), { code: "EEXIST" });
  });

  const skip = process.platform !== "linux" && "only Linux has /proc";
  it("ends with a sentence where a file system takes no new folders", { skip }, () => {
    assert.throws(
      () => makeFolders("/proc/x/data"),
      (error) => fileWords(error)?.startsWith("/proc/x cannot be made: ") === true,
    );
  });

  it("so a start with such a data folder ends, by root or another user", { skip }, () => {
    const main = join(import.meta.dirname, "../../main.ts");
    const { POSTERN_MASTER_KEY: _, ...own } = process.env;
    const env = { ...own, POSTERN_DATA: "/proc/x/data", POSTERN_HTTP: "127.0.0.1:0", POSTERN_INTERNAL: "127.0.0.1:0" };
    const options = { env, encoding: "utf8", timeout: NEVER_MS } as const;
    for (const key of [{}, { POSTERN_MASTER_KEY: "ab".repeat(32) }]) {
      const words = ["start", "--roles", "api"];
      const { status, stderr } = spawnSync(process.execPath, [main, ...words], { ...options, env: { ...env, ...key } });
      assert.match(stderr, /^postern: .*\/proc\/x cannot be made: /);
      assert.deepEqual([status, stderr.trim().split("\n").length], [1, 1], stderr);
    }
  });
});
