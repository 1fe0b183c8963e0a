import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { type Config, readConfig } from "../../config.ts";
import { explainStart } from "./start-problem.ts";

let dir: string;

before(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-start-"));
});

after(() => {
  rmSync(dir, { recursive: true, force: true });
});

function configOf(env: Record<string, string>): Config {
  return readConfig({ POSTERN_DATA: dir, ...env });
}

function failureToListen(host: string, port: number): Promise<Error> {
  return new Promise((resolve) => {
    createServer().once("error", resolve).listen(port, host);
  });
}

describe("a start that fails", () => {
  it("names the setting of an address that is taken, that is not this machine's, or that nobody has", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const places = {
      POSTERN_MX: `127.0.0.1:${port}`,
      POSTERN_HTTP: "203.0.113.5:80",
      POSTERN_SUBMISSION: "a.invalid:1",
    };
    const config = configOf(places);
    const explained = async (host: string, at: number) => String(explainStart(config, await failureToListen(host, at)));
    assert.match(await explained("127.0.0.1", port), /:\d+ \(POSTERN_MX\) is in use by another program\. Stop /);
    const default_mx = { ...config, http: config.mx };
    const twice = String(explainStart(default_mx, await failureToListen("127.0.0.1", port)));
    assert.match(twice, /POSTERN_HTTP \(127\.0\.0\.1:\d+\) and POSTERN_MX \(.*\) are one address; give each its own/);
    assert.match(
      await explained("203.0.113.5", 80),
      /203\.0\.113\.5:80 \(POSTERN_HTTP\) cannot be listened on: EADDRNOT/,
    );
    const unknown = Object.assign(new Error("getaddrinfo"), {
      syscall: "getaddrinfo",
      code: "ENOTFOUND",
      hostname: "a.invalid",
    });
    assert.match(
      String(explainStart(config, unknown)),
      /a\.invalid:1 \(POSTERN_SUBMISSION\) cannot be listened on: ENOTFOUND/,
    );
    await new Promise((resolve) => server.close(resolve));
  });

  it("names DATABASE_URL where the database cannot be used, and no password", async () => {
    const url = "postgresql://postern:secret@127.0.0.1:1/postern";
    const failure = await new pg.Client(url).connect().catch((error) => error);
    const says = String(explainStart(configOf({ DATABASE_URL: url }), failure));
    assert.match(
      says,
      /the database at 127\.0\.0\.1:1 \(DATABASE_URL\) cannot be used: .*ECONNREFUSED \S+\. Start PostgreSQL there/,
    );
    assert.ok(!says.includes("secret"));
    const pooled = { DATABASE_URL: url, POSTERN_DATABASE_POOLER: "postgresql://postern:secret@127.0.0.1:2/postern" };
    assert.match(
      String(explainStart(configOf(pooled), failure)),
      /\(POSTERN_DATABASE_POOLER\).*\. Check both addresses/,
    );
  });

  it("says what a role lacks that may make no tables", async () => {
    const refused = Object.assign(new Error("permission denied for schema public"), { code: "42501" });
    const says = String(explainStart(configOf({ DATABASE_URL: "postgresql://h/db" }), refused));
    assert.match(
      says,
      /\(DATABASE_URL\).*permission denied for schema public\. The role must own the database: alter /,
    );
  });

  it("says what to do about a wrong password, a database that is not there or not reached, and too many connections", () => {
    const config = configOf({ DATABASE_URL: "postgresql://h/db" });
    for (const [code, remedy] of [
      ["28P01", /refused\. Write the role's password into DATABASE_URL, or /],
      ["28000", /refused\. Let this role log in from here: .*pg_hba\.conf/],
      ["3D000", /refused\. Make it, as a superuser: create database <name> owner <role>\. Or correct /],
      ["57P03", /refused\. Wait until it takes connections/],
      ["ENOTFOUND", /refused\. Correct the host in DATABASE_URL/],
      ["ETIMEDOUT", /refused\. Look for a firewall .* correct the host in DATABASE_URL/],
      ["53300", /refused\. Raise max_connections, or lower POSTERN_DATABASE_CONNECTIONS/],
    ] as const) {
      const failure = Object.assign(new Error("refused"), {
        code,
        syscall: code.startsWith("E") ? "connect" : undefined,
      });
      assert.match(String(explainStart(config, failure)), remedy);
    }
  });

  it("names DATABASE_URL where it names a file that is not there", async () => {
    const url = `postgresql://127.0.0.1:1/postern?sslrootcert=${dir}/nope`;
    const failure = await Promise.try(() => new pg.Client(url).connect()).catch((error) => error);
    assert.match(
      String(explainStart(configOf({ DATABASE_URL: url }), failure)),
      /\(DATABASE_URL\).*nope does not exist/,
    );
  });

  it("names the data folder where a write to an open file finds the disk full", () => {
    for (const code of ["ENOSPC", "EDQUOT"]) {
      const failure = Object.assign(new Error(`${code}: no room, write`), { code, syscall: "write" });
      assert.match(
        String(explainStart(configOf({ DATABASE_URL: "postgresql://h/db" }), failure)),
        /^Error: \/\S+ cannot be written: the .*disk is .*: make room on it\.$/,
      );
    }
  });

  it("for another reason says what it said", () => {
    const bug = new Error("a bug");
    assert.equal(explainStart(configOf({ DATABASE_URL: "postgresql://h/db" }), bug), bug);
  });
});
