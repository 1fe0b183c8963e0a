import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { showFirstKeys } from "./show-first-keys.ts";

const KEYS = { live_key: "svc_live_aaaaaaaaaaaaaaaaaaaa", test_key: "svc_test_bbbbbbbbbbbbbbbbbbbb" };

function setUp(t: { after(work: () => void): void }, given: { live?: string; test?: string } = {}) {
  const data_dir = mkdtempSync(join(tmpdir(), "postern-keys-"));
  t.after(() => rmSync(data_dir, { recursive: true }));
  const { live = null, test = null } = given;
  const config = { data_dir, base_url: "https://p.example", bootstrap_live_key: live, bootstrap_test_key: test };
  return { config, file: join(data_dir, "first-keys.env") };
}

test("a terminal is shown the keys, and nothing is written", (t) => {
  const { config, file } = setUp(t);
  const text = showFirstKeys(config, KEYS, true);
  assert.ok(text.includes(KEYS.live_key) && text.includes(KEYS.test_key));
  assert.equal(existsSync(file), false);
});

test("elsewhere they are in a file that its owner alone can read, and the text says where", (t) => {
  const { config, file } = setUp(t);
  // What an earlier database of this folder left, or somebody laid there, is not written into.
  const other = join(config.data_dir, "other");
  writeFileSync(other, "mine", { mode: 0o644 });
  symlinkSync(other, file);
  const text = showFirstKeys(config, KEYS, false);
  assert.ok(text.includes(file) && !text.includes("svc_"), text);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.match(
    readFileSync(file, "utf8"),
    /^#.*\nPOSTERN_BASE_URL=https:\/\/p\.example\nPOSTERN_LIVE_KEY=svc_live_a{20}\nPOSTERN_TEST_KEY=svc_test_b{20}\n$/,
  );
  assert.equal(readFileSync(other, "utf8"), "mine");
});

test("keys that the operator gave are repeated nowhere", (t) => {
  const both = setUp(t, { live: KEYS.live_key, test: KEYS.test_key });
  for (const isTerminal of [true, false]) {
    assert.doesNotMatch(showFirstKeys(both.config, KEYS, isTerminal), /svc_/);
    assert.equal(existsSync(both.file), false);
  }
  const one = setUp(t, { live: KEYS.live_key });
  assert.match(showFirstKeys(one.config, KEYS, false), /live key {2}as given in POSTERN_BOOTSTRAP_LIVE_KEY/);
  assert.doesNotMatch(readFileSync(one.file, "utf8"), /svc_live/);
  assert.match(readFileSync(one.file, "utf8"), /^POSTERN_TEST_KEY=svc_test_b/m);
});
