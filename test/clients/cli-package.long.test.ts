// The package of the client commands, as it is released. Not here: sending with it (`npm run release`).
import assert from "node:assert/strict";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { buildCli } from "../../release/cli.ts";

const folder = mkdtempSync(join(tmpdir(), "postern-cli-package-"));
after(() => rmSync(folder, { recursive: true, force: true }));

test("holds no syntax that Node 22 cannot read", () => {
  buildCli(folder, folder);
  const files = globSync("cli/clients/**/*.js", { cwd: folder });
  assert.ok(files.includes("cli/clients/cli/commands/listen.js"), files.join());
  const newer = files.filter((file) => /^\s*(await )?using \w+ =/m.test(readFileSync(join(folder, file), "utf8")));
  assert.deepEqual(newer, []);
});
