import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ConfigProblems, findConfig, readConfig } from "./config.ts";

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

describe("looking at the settings", () => {
  it("makes no folder and no key, and reads the key that is there", () => {
    const data = join(dir, "looked-at");
    assert.equal(findConfig({ POSTERN_DATA: data }).master_key, null);
    assert.equal(existsSync(data), false);
    const { master_key } = readConfig({ POSTERN_DATA: data });
    assert.deepEqual(findConfig({ POSTERN_DATA: data }).master_key, master_key);
  });
});

describe("settings that belong together", () => {
  const problemsOf = (change: Record<string, string>): string[] => {
    try {
      readConfig({ POSTERN_DATA: join(dir, "fresh"), ...change });
      return [];
    } catch (error) {
      assert.ok(error instanceof ConfigProblems);
      return error.problems;
    }
  };

  it("are both files of the certificate: one alone is a problem that names the other", () => {
    const file = join(dir, "file.pem");
    writeFileSync(file, "");
    assert.deepEqual(problemsOf({ POSTERN_TLS_CERT: file, POSTERN_TLS_KEY: file }), []);
    assert.match(problemsOf({ POSTERN_TLS_CERT: file }).join(), /^POSTERN_TLS_CERT is set without POSTERN_TLS_KEY;/);
    assert.match(problemsOf({ POSTERN_TLS_KEY: file }).join(), /^POSTERN_TLS_KEY is set without POSTERN_TLS_CERT;/);
    assert.match(
      problemsOf({ POSTERN_TLS_CERT: join(dir, "absent"), POSTERN_TLS_KEY: file }).join(),
      /^POSTERN_TLS_CERT names .*, which does not exist\.$/,
    );
  });

  it("are the first keys and their variables, and a wrong key is not repeated", () => {
    const [live, probe] = [`svc_live_${"a".repeat(16)}`, `svc_test_${"a".repeat(16)}`];
    assert.deepEqual(problemsOf({ POSTERN_BOOTSTRAP_LIVE_KEY: live, POSTERN_BOOTSTRAP_TEST_KEY: probe }), []);
    const swapped = problemsOf({ POSTERN_BOOTSTRAP_LIVE_KEY: probe, POSTERN_BOOTSTRAP_TEST_KEY: live });
    assert.match(swapped[0] ?? "", /^POSTERN_BOOTSTRAP_LIVE_KEY must begin with svc_live_ /);
    assert.match(swapped[1] ?? "", /^POSTERN_BOOTSTRAP_TEST_KEY must begin with svc_test_ /);
    for (const key of [live, live.slice(0, -1), `${live}!`, "secret"]) {
      const found = problemsOf({ POSTERN_BOOTSTRAP_TEST_KEY: key });
      assert.equal(found.length, 1, key);
      assert.ok(!found.join().includes(key), "a secret is not printed");
    }
  });
});
