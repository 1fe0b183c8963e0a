// The file of settings: what an operator wrote stays, and what is written can be read again.
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { gatherSettings } from "../settings/gather.ts";
import { mergeEnvFile } from "./env-file.ts";

const dir = mkdtempSync(join(tmpdir(), "postern-env-"));
after(() => rmSync(dir, { recursive: true, force: true }));

describe("the file of settings", () => {
  it("is for its owner alone when it is new, and says the same when it is read", () => {
    const path = join(dir, "new.env");
    const url = "postgresql://postern:a%23b c$d@db.example/postern?sslmode=verify-full";
    assert.equal(mergeEnvFile(path, { POSTERN_HOSTNAME: "mail.example.eu", DATABASE_URL: url }), true);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const { env, problems } = gatherSettings({ POSTERN_ENV_FILE: path });
    assert.deepEqual([problems, env], [[], { POSTERN_HOSTNAME: "mail.example.eu", DATABASE_URL: url }]);
  });

  it("keeps comments, order, other settings and its mode; only what is given is changed", () => {
    const path = join(dir, "own.env");
    writeFileSync(path, "# ours\nPOSTERN_GREYLISTING=1\nexport POSTERN_HOSTNAME=old.example # once\n\n#POSTERN_MX=1\n");
    chmodSync(path, 0o640);
    assert.equal(mergeEnvFile(path, { POSTERN_HOSTNAME: "mail.example.eu", POSTERN_MX: "[::]:25" }), true);
    assert.equal(
      readFileSync(path, "utf8"),
      "# ours\nPOSTERN_GREYLISTING=1\nPOSTERN_HOSTNAME=mail.example.eu\n\n#POSTERN_MX=1\nPOSTERN_MX=[::]:25\n",
    );
    assert.equal(statSync(path).mode & 0o777, 0o640);
    assert.equal(mergeEnvFile(path, { POSTERN_HOSTNAME: "mail.example.eu" }), false);
    assert.equal(mergeEnvFile(path, {}), false);
  });

  it("takes no value that it could not hold", () => {
    assert.throws(() => mergeEnvFile(join(dir, "bad.env"), { DATABASE_URL: "it's\none" }), /quote or a line break/);
  });
});
