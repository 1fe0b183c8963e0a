// The Ruby library's signatures (clients/ruby/sig): RBS reads them, and compares them with what the library does while it plays
// the requests of the conformance set.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { readCases, startConformanceServer } from "../../clients/conformance/server.ts";

const CLIENTS = resolve(import.meta.dirname, "../../clients");
const run = promisify(execFile);
const missing =
  spawnSync("ruby", ["-e", 'gem "rbs"']).status === 0 ? false : "there is no Ruby with RBS: apt-get install ruby";

describe("the signatures of the Ruby library", { skip: missing }, () => {
  let server: Awaited<ReturnType<typeof startConformanceServer>>;
  let folder: string;

  before(async () => {
    server = await startConformanceServer(readCases());
    folder = mkdtempSync(join(tmpdir(), "postern-signatures-"));
    for (const name of ["ruby", "conformance/operations.json"]) {
      cpSync(join(CLIENTS, name), join(folder, name), { recursive: true });
    }
  });

  after(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const play = () => {
    const env = { ...process.env, CONFORMANCE_URL: server.url };
    return run("ruby", [join(folder, "ruby/test/signatures.rb")], { env });
  };

  it("are whole: every name that one uses is there", async () => {
    const validate =
      'gem "rbs"; ARGV.replace(["-I", ARGV[0], "validate", "--silent"]); load Gem.bin_path("rbs", "rbs")';
    await run("ruby", ["-e", validate, join(CLIENTS, "ruby/sig")]);
  });

  it("say what every operation takes and answers", async () => {
    const { stdout } = await play();
    const { cases, failed } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
    assert.ok(cases > 100, `${cases} cases`);
    assert.equal(failed, 0, stdout);
  });

  it("are compared: one that is wrong is found", async () => {
    const file = join(folder, "ruby/sig/generated/resources.rbs");
    writeFileSync(file, readFileSync(file, "utf8").replace("def cancel: (String id", "def cancel: (Integer id"));
    await assert.rejects(play, /Postern::Generated::Emails#cancel/);
  });
});
