import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ConfigProblems, readConfig } from "./config.ts";

let dir: string;

before(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-config-"));
});

after(() => {
  rmSync(dir, { recursive: true, force: true });
});

describe("the master key file", () => {
  it("is made once, readable by its owner only, and nothing is left beside it", () => {
    const data = join(dir, "fresh");
    const first = readConfig({ POSTERN_DATA: data });
    assert.equal(first.master_key.length, 32);
    assert.deepEqual(readConfig({ POSTERN_DATA: data }).master_key, first.master_key);
    assert.equal(statSync(join(data, "master.key")).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(data), ["master.key"]);
    assert.equal(readFileSync(join(data, "master.key"), "utf8"), `${first.master_key.toString("hex")}\n`);
  });

  it("that a crash has cut short is a problem, never a shorter key or a new one", () => {
    for (const text of ["", "ab".repeat(31), "\0".repeat(64), "not a key"]) {
      const data = mkdtempSync(join(dir, "cut-"));
      writeFileSync(join(data, "master.key"), text);
      assert.throws(
        () => readConfig({ POSTERN_DATA: data }),
        (error) => error instanceof ConfigProblems && /master\.key is damaged/.test(error.message),
        JSON.stringify(text),
      );
      assert.equal(readFileSync(join(data, "master.key"), "utf8"), text);
    }
  });
});
