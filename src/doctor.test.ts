import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { type TestDatabase, testDatabase } from "../test/support/database.ts";
import { type DnsServer, startDnsServer } from "../test/support/dns-server.ts";
import { inheritedEnv } from "../test/support/inherited-env.ts";
import { makeCertificateAuthority } from "../test/support/tls.ts";
import { until } from "../test/support/until.ts";
import { findConfig } from "./config.ts";
import type { Check } from "./doctor/check.ts";
import { checkConnections } from "./doctor/check-database.ts";
import { checkNode, examine, printable } from "./doctor.ts";
import { openDb } from "./platform/database/db.ts";
import { acceptMasterKey } from "./platform/storage/master-key.ts";
import { createSeal } from "./platform/storage/seal.ts";

let dns: DnsServer;
let database: TestDatabase;
let dir: string;

before(async () => {
  dns = await startDnsServer();
  dns.set("mail.example.eu", "A", ["192.0.2.25"]);
  dns.set("mx.mail.example.eu", "A", ["192.0.2.25"]);
  dns.set("192.0.2.25", "PTR", ["mail.example.eu"]);
  dns.set("_spf.mail.example.eu", "TXT", ["v=spf1 ip4:192.0.2.25 -all"]);
  dns.set("bounces.mail.example.eu", "TXT", ["v=spf1 include:_spf.mail.example.eu -all"]);
  database = await testDatabase();
  dir = mkdtempSync(join(tmpdir(), "postern-doctor-"));
});

after(async () => {
  await database?.drop();
  await dns?.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** A good machine, with `change` over its settings. */
function environment(change: Record<string, string> = {}): Record<string, string> {
  return {
    POSTERN_DATA: mkdtempSync(join(dir, "data-")),
    POSTERN_HOSTNAME: "mail.example.eu",
    POSTERN_BASE_URL: "https://mail.example.eu",
    POSTERN_DNS: dns.address,
    DATABASE_URL: database.url,
    POSTERN_HTTP: "127.0.0.1:0",
    POSTERN_INTERNAL: "127.0.0.1:0",
    POSTERN_MX: "0.0.0.0:0",
    POSTERN_SUBMISSION: "127.0.0.1:0",
    ...change,
  };
}

async function look(change: Record<string, string> = {}, trySmtp: string | null = null): Promise<Check[]> {
  return examine({ try_smtp: trySmtp }, () => findConfig(environment(change)));
}

function named(checks: Check[], name: string): Check[] {
  return checks.filter((check) => check.name === name);
}

/** The one finding of that name. */
function only(checks: Check[], name: string): Check {
  const found = named(checks, name);
  assert.equal(found.length, 1, JSON.stringify(found));
  return found[0] as Check;
}

async function listening(server: Server | ReturnType<typeof createHttpServer>): Promise<string> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return `127.0.0.1:${(server.address() as { port: number }).port}`;
}

/** A file system that never has room. */
function noProc(): string | false {
  return process.platform === "linux" ? false : "/proc is Linux's";
}

describe("the doctor", () => {
  it("finds nothing wrong with a good machine but what the test server is", async () => {
    const checks = await look();
    const bad = checks.filter(({ status, name }) => status === "problem" && name !== "durability");
    assert.deepEqual(bad, []);
    for (const { says, remedy, status } of checks) {
      assert.match(says, /^\S.+\.$/, "a sentence");
      if (status === "problem" || status === "warning") assert.ok(remedy && remedy.length > 5, says);
    }
  });

  it("says which Node is too old", () => {
    assert.equal(checkNode("24.0.0").status, "ok");
    assert.deepEqual([checkNode("22.9.1").status, /22\.9\.1/.test(checkNode("22.9.1").says)], ["problem", true]);
  });

  it("tells every wrong setting and then stops", async () => {
    const checks = await look({ POSTERN_HTTP: "nowhere", POSTERN_BASE_URL: "mail" });
    const problems = named(checks, "settings");
    assert.equal(problems.length, 2);
    assert.match(
      problems.map(({ says }) => says).join(),
      /POSTERN_HTTP[\s\S]*POSTERN_BASE_URL|POSTERN_BASE_URL[\s\S]*POSTERN_HTTP/,
    );
    assert.deepEqual(named(checks, "database"), []);
  });

  it("tells of a variable that is no setting, and goes on", async () => {
    const checks = await look({ POSTERN_SUBMISION: "0.0.0.0:587" });
    const [fine, mistyped] = named(checks, "settings");
    assert.deepEqual([fine?.status, mistyped?.status], ["ok", "warning"]);
    assert.match(mistyped?.says ?? "", /^POSTERN_SUBMISION is an unknown setting, or has no effect\.$/);
    assert.ok(named(checks, "port").length > 0);
  });

  it("finds a passphrase that no backup would be made with, unless public keys go before it", async () => {
    const short = { POSTERN_BACKUP_PASSPHRASE: "elevenchars" };
    const [fine, found] = named(await look(short), "settings");
    assert.deepEqual([fine?.status, found?.status], ["ok", "problem"]);
    assert.match(found?.says ?? "", /^POSTERN_BACKUP_PASSPHRASE has fewer than 12 characters/);
    assert.doesNotMatch(JSON.stringify(found), /elevenchars/);
    for (const change of [
      { POSTERN_BACKUP_PASSPHRASE: "twelve chars" },
      { ...short, POSTERN_BACKUP_RECIPIENTS: `age1${"q".repeat(58)}` },
    ]) {
      assert.equal(only(await look(change), "settings").status, "ok");
    }
  });

  it("reports a data folder that is not there, or is none, and goes on", async () => {
    const file = join(dir, "no-folder");
    writeFileSync(file, "");
    const key = { POSTERN_MASTER_KEY: "ab".repeat(32) };
    for (const [POSTERN_DATA, status, says] of [
      [join(dir, "nowhere"), "warning", /nowhere does not exist\.$/],
      [file, "problem", /no-folder is not a folder\.$/],
      [join(file, "below"), "problem", /below does not exist: a part of its path is not a folder\.$/],
    ] as const) {
      const checks = await look({ ...key, POSTERN_DATA });
      const found = only(checks, "data folder");
      assert.equal(found.status, status);
      assert.match(found.says, says);
      assert.equal(only(checks, "DNS").status, "ok");
    }
  });

  it("sees before the first start that the disk of the data folder has no room", { skip: noProc() }, async () => {
    const found = named(
      await look({ POSTERN_MASTER_KEY: "ab".repeat(32), POSTERN_DATA: "/proc/none/data" }),
      "data folder",
    );
    assert.deepEqual(
      found.map(({ status, says }) => [status, says]),
      [
        ["warning", "/proc/none/data does not exist."],
        ["problem", "/proc/none/data has 0 MiB free."],
      ],
    );
  });

  it("sees a data folder that others may write and a master key that others may read", async () => {
    const data = mkdtempSync(join(dir, "open-"));
    chmodSync(data, 0o777);
    writeFileSync(join(data, "master.key"), `${"ab".repeat(32)}\n`, { mode: 0o644 });
    chmodSync(join(data, "master.key"), 0o644);
    const checks = await look({ POSTERN_DATA: data });
    assert.equal(only(checks, "data folder").status, "problem");
    assert.deepEqual(
      [only(checks, "master key").status, only(checks, "master key").remedy],
      ["problem", `chmod 600 ${data}/master.key`],
    );
  });

  it("tells a port of another program from one of a running Postern", async () => {
    const stranger = createServer();
    const place = await listening(stranger);
    const [finding] = named(await look({ POSTERN_MX: place }), "port").filter(({ status }) => status === "problem");
    assert.match(finding?.says ?? "", new RegExp(`^${place} \\(POSTERN_MX\\) is in use by another program`));
    const postern = createHttpServer((_request, response) => response.end('{"status":"ok"}'));
    const internal = await listening(postern);
    const checks = named(await look({ POSTERN_MX: place, POSTERN_INTERNAL: internal }), "port");
    assert.deepEqual([...new Set(checks.map(({ status }) => status))], ["ok"]);
    await Promise.all([new Promise((done) => stranger.close(done)), new Promise((done) => postern.close(done))]);
  });

  it("sees a port on an address that is not this machine's", async () => {
    const checks = named(await look({ POSTERN_MX: "192.0.2.1:2525" }), "port");
    assert.equal(checks.filter(({ status }) => status === "problem").length, 1);
  });

  it("judges the base URL", async () => {
    for (const [url, status] of [
      ["https://mail.example.eu", "ok"],
      ["http://127.0.0.1:8080", "warning"],
      ["http://mail.example.eu", "problem"],
    ] as const) {
      assert.equal(only(await look({ POSTERN_BASE_URL: url }), "base URL").status, status, url);
    }
  });
});

describe("the doctor and the database", () => {
  it("does not take settings for durable that are not (the test server's are not)", async (t) => {
    const checks = named(await look(), "durability");
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const { rows } = await client.query("select current_setting('fsync') as fsync");
    await client.end();
    if (rows[0].fsync === "on") return t.skip("this server is durable");
    assert.match(checks.map(({ says }) => says).join(), /fsync is off: accepted mail can be lost in a power cut/);
    assert.equal(checks[0]?.status, "problem");
  });

  it("sees a role that row-level security does not bind", async () => {
    assert.equal(only(await look(), "role").status, "ok");
    assert.equal(only(await look({ DATABASE_URL: database.admin_url }), "role").status, "problem");
  });

  it("sees a server that is away", async () => {
    const checks = await look({ DATABASE_URL: "postgresql://nobody@127.0.0.1:1/none" });
    assert.equal(only(checks, "database").status, "problem");
    assert.match(only(checks, "database").says, /does not answer/);
    const noFile = await look({ DATABASE_URL: `postgresql://nobody@127.0.0.1:1/none?sslrootcert=${dir}/nope` });
    assert.match(only(noFile, "database").says, /^The database cannot be used: \S+nope does not exist\.$/);
  });

  it("sees a server that answers and refuses: the password, the database, or a role that is not there", async () => {
    const refused = async (change: (url: URL) => void, key = "DATABASE_URL") => {
      const url = new URL(database.url);
      change(url);
      const found = named(await look({ [key]: url.href }), "database").find(({ status }) => status === "problem");
      assert.doesNotMatch(JSON.stringify(found), /wrong-word/);
      return `${found?.says} ${found?.remedy}`;
    };
    const password = await refused((url) => Object.assign(url, { password: "wrong-word" }));
    assert.match(
      password,
      /^The database cannot be used: password authentication failed for user .*\. Write the role's password into DATABASE_URL, or/,
    );
    const role = await refused((url) => Object.assign(url, { username: "nobody_here" }));
    assert.match(role, /^The database cannot be used: .*"nobody_here".*: create role <role> login/);
    const none = await refused((url) => Object.assign(url, { password: "" }));
    assert.match(
      none,
      /^The database cannot be used: the server asks for a password, and DATABASE_URL has none\. Write/,
    );
    // While a login is left half-way, for a minute, nobody can make or drop a database.
    const admin = new pg.Client({ connectionString: database.admin_url });
    await admin.connect();
    const halfWay = "select from pg_stat_activity where state = 'starting'";
    await until("no login is left half-way", async () => (await admin.query(halfWay)).rowCount === 0, 5_000);
    await admin.end();
    const absent = await refused((url) => Object.assign(url, { pathname: "/no_such_database" }));
    assert.match(
      absent,
      /cannot be used: database "no_such_database" does not exist\. Make it, as a superuser: create d/,
    );
    const pooler = await refused((url) => Object.assign(url, { password: "wrong-word" }), "POSTERN_DATABASE_POOLER");
    assert.match(pooler, /^The pooler of POSTERN_DATABASE_POOLER cannot be used: password authentication failed/);
  });

  it("sees a role that may not make the tables which are missing", async () => {
    const admin = new pg.Client({ connectionString: database.admin_url });
    await admin.connect();
    try {
      await admin.query("create table taken as select * from schema_migration where number = 1");
      await admin.query("delete from schema_migration where number = 1");
      assert.equal(only(await look(), "schema").status, "skipped");
      await admin.query("revoke create on schema public from pg_database_owner, public");
      const { status, says, remedy } = only(await look(), "schema");
      assert.deepEqual([status, says], ["problem", "The database role may make no tables."]);
      assert.match(String(remedy), /must own the database/);
    } finally {
      await admin.query("insert into schema_migration select * from taken; drop table taken");
      await admin.query("grant create on schema public to pg_database_owner");
      await admin.end();
    }
  });

  it("says that the embedded one is not running, without starting it", async () => {
    const checks = await look({ DATABASE_URL: "" });
    assert.equal(only(checks, "database").status, "skipped");
  });

  it("sees a schema that is newer, and one that is not there yet", async () => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    try {
      assert.equal(only(await look(), "schema").status, "ok");
      await client.query("insert into schema_migration (number, name, checksum) values (9999, 'later', 'x')");
      assert.deepEqual(only(await look(), "schema").status, "problem");
      await client.query("delete from schema_migration where number = 9999");
    } finally {
      await client.end();
    }
  });

  it("sees a master key that is not the one the database was sealed with, and none at all", async () => {
    const db = openDb(database.url, { onError: () => undefined });
    const KEY = Buffer.alloc(32, 0xab);
    const right = { POSTERN_MASTER_KEY: KEY.toString("hex") };
    try {
      assert.equal(named(await look(right), "master key").length, 1, "a database that has sealed nothing knows none");
      await acceptMasterKey({ db, seal: createSeal(KEY), config: { data_dir: "", master_key: KEY } });
      assert.deepEqual([...new Set(named(await look(right), "master key").map(({ status }) => status))], ["ok"]);
      for (const [change, says] of [
        [{ POSTERN_MASTER_KEY: "cd".repeat(32) }, /was sealed with another master key/],
        [{}, /There is no master key here, and the database was sealed with one/],
      ] as const) {
        const bad = named(await look(change), "master key").filter(({ status }) => status === "problem");
        assert.match(bad.map((check) => check.says).join(), says);
      }
    } finally {
      await db.execute("delete from master_key");
      await db.execute("delete from key_ring");
      await db.close();
    }
  });

  it("asks for as many connections as a process uses", () => {
    assert.deepEqual(checkConnections(64, 64), []);
    assert.match(checkConnections(63, 64)[0]?.says ?? "", /^The server takes 63 connections; .* up to 64\.$/);
  });

  it("tells where the embedded one lies, and that it is gone from there", async () => {
    const data = mkdtempSync(join(dir, "inside-"));
    mkdirSync(join(data, "postgres/cluster"), { recursive: true });
    const inside = named(await look({ DATABASE_URL: "", POSTERN_DATA: data }), "database");
    assert.deepEqual([inside[0]?.status, inside[0]?.says], ["ok", `Its files are in ${data}/postgres.`]);
    const gone = mkdtempSync(join(dir, "gone-"));
    writeFileSync(join(gone, "database-name"), `${"0".repeat(32)}\n`);
    const missing = only(await look({ DATABASE_URL: "", POSTERN_DATA: gone }), "database");
    assert.equal(missing.status, "problem");
    assert.match(missing.says, /which is not there: put it back/);
  });

  it("compares the clocks", async () => {
    assert.equal(only(await look(), "clock").status, "ok");
  });
});

describe("the doctor and the outside world", () => {
  it("asks whether name and address lead to each other", async () => {
    assert.equal(only(await look(), "PTR").status, "ok");
    dns.set("other.example.eu", "A", ["192.0.2.26"]);
    dns.set("mx.other.example.eu", "A", ["192.0.2.26"]);
    const none = only(await look({ POSTERN_HOSTNAME: "other.example.eu" }), "PTR");
    assert.deepEqual([none.status, /has no name in DNS/.test(none.says)], ["problem", true]);
    dns.set("192.0.2.26", "PTR", ["static-26.provider.example"]);
    const wrong = only(await look({ POSTERN_HOSTNAME: "other.example.eu" }), "PTR");
    assert.match(wrong.says, /is called static-26\.provider\.example in DNS, not other\.example\.eu/);
  });

  it("asks where bounces, reports and mail for masked addresses go", async () => {
    const none = await look();
    for (const name of ["bounces", "reports", "masked addresses"]) assert.equal(only(none, name).status, "warning");
    assert.equal(only(none, "bounces").remedy, "Publish the record: bounces.mail.example.eu MX 10 mx.mail.example.eu");
    dns.set("bounces.mail.example.eu", "MX", [{ exchange: "mx.mail.example.eu", preference: 10 }]);
    dns.set("reports.mail.example.eu", "A", ["192.0.2.25"]);
    dns.set("masked.mail.example.eu", "MX", [{ exchange: "elsewhere.example", preference: 10 }]);
    const some = await look();
    assert.deepEqual(
      ["bounces", "reports", "masked addresses"].map((name) => only(some, name).status),
      ["ok", "ok", "warning"],
    );
    assert.match(only(some, "masked addresses").says, /sends its mail to elsewhere\.example/);
  });

  it("tells a name without an address from name servers that do not answer", async () => {
    const absent = await look({ POSTERN_HOSTNAME: "absent.example.eu" });
    assert.equal(only(absent, "DNS").status, "ok");
    assert.equal(only(absent, "hostname").status, "problem");
    const silent = await look({ POSTERN_DNS: "127.0.0.1:9" });
    assert.equal(only(silent, "DNS").status, "problem");
    assert.deepEqual(named(silent, "PTR"), []);
  });

  it("calls nobody's mail server unless asked to", async () => {
    assert.equal(only(await look(), "port 25").status, "skipped");
    const server = createServer((socket) => socket.end("220 mx.example ESMTP\r\n"));
    const place = await listening(server);
    const port = { POSTERN_TESTING_OUTBOUND_PORT: place.split(":")[1] as string };
    assert.match(only(await look(port, "127.0.0.1"), "port 25").says, /answers on port \d+: 220 mx\.example ESMTP/);
    await new Promise((done) => server.close(done));
    assert.equal(only(await look(port, "127.0.0.1"), "port 25").status, "problem");
  });

  it("does not blame port 25 where the server's name has no address", async () => {
    const { status, says, remedy } = only(await look({}, "mx.no-such-host.invalid"), "port 25");
    assert.equal(status, "problem");
    // Without a name server on this machine nobody says that it has no address.
    assert.match(
      says,
      /there is no host mx\.no-such-host\.invalid, as its name has no address|no name server answers where/,
    );
    assert.doesNotMatch(remedy ?? "", /close port 25/);
  });

  it("writes, reads and removes an object in the bucket", async () => {
    const objects = new Map<string, Buffer>();
    let refuses = false;
    const server = createHttpServer((request, response) => {
      const [path, chunks] = [request.url ?? "", [] as Buffer[]];
      request.on("data", (chunk) => chunks.push(chunk));
      request.on("end", () => {
        if (refuses) return void response.writeHead(403).end("<Error><Code>AccessDenied</Code></Error>");
        if (request.method === "PUT") objects.set(path, Buffer.concat(chunks));
        const found = objects.get(path);
        if (request.method === "DELETE") objects.delete(path);
        response.writeHead(found ? (request.method === "DELETE" ? 204 : 200) : 404, { etag: '"kept"' });
        response.end(request.method === "GET" ? found : undefined);
      });
    });
    const endpoint = `http://${await listening(server)}`;
    const keys = { POSTERN_S3_ACCESS_KEY: "id", POSTERN_S3_SECRET_KEY: "secret" };
    const bucket = { POSTERN_S3_ENDPOINT: endpoint, POSTERN_S3_BUCKET: "mail", ...keys };
    const good = only(await look(bucket), "large bodies");
    assert.deepEqual([good.status, objects.size], ["ok", 0], good.says);
    refuses = true;
    const bad = only(await look(bucket), "large bodies");
    assert.equal(bad.status, "problem");
    assert.match(bad.says, /The bucket mail at .* cannot be used: .*403/);
    assert.deepEqual(named(await look(), "large bodies"), [], "nothing is asked where no bucket is set");
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });

  it("sees a key that does not belong to the certificate", async () => {
    const authority = makeCertificateAuthority(dir);
    const [first, second] = [authority.issue(["mail.example.eu"]), authority.issue(["mail.example.eu"])];
    const [cert, key] = [join(dir, "first.pem"), join(dir, "second-key.pem")];
    writeFileSync(cert, first.cert);
    writeFileSync(key, second.key);
    const found = only(await look({ POSTERN_TLS_CERT: cert, POSTERN_TLS_KEY: key }), "certificate");
    assert.equal(found.status, "problem");
    assert.match(
      found.says,
      /first\.pem with the key .*second-key\.pem cannot be used: the key does not belong to the certificate\.$/,
    );
  });

  it("reads the certificate's last day", async () => {
    const authority = makeCertificateAuthority(dir);
    const judge = async (days: number) => {
      const { cert, key } = authority.issue(["mail.example.eu", "mx.mail.example.eu"], {
        from_days: -100,
        until_days: days,
      });
      writeFileSync(join(dir, "cert.pem"), cert);
      writeFileSync(join(dir, "key.pem"), key);
      const files = { POSTERN_TLS_CERT: join(dir, "cert.pem"), POSTERN_TLS_KEY: join(dir, "key.pem") };
      return only(await look(files), "certificate").status;
    };
    assert.deepEqual([await judge(90), await judge(5), await judge(-1)], ["ok", "warning", "problem"]);
  });
});

describe("postern doctor", () => {
  const run = (args: string[], change: Record<string, string> = {}) => {
    const env = { ...inheritedEnv(), ...environment(change) };
    // Not spawnSync: the name server lives in this process.
    return new Promise<{ status: number; stdout: string; stderr: string }>((resolve) => {
      execFile(
        process.execPath,
        ["src/main.ts", "doctor", ...args],
        { env, timeout: 240_000 },
        (error, stdout, stderr) => resolve({ status: Number(error?.code ?? 0), stdout, stderr }),
      );
    });
  };

  it("prints sentences, or one JSON object, and ends with 1 when there is a problem", async () => {
    const text = await run([], { POSTERN_BASE_URL: "http://mail.example.eu" });
    assert.equal(text.status, 1, text.stderr);
    assert.match(text.stdout, /^problem {2}base URL {9}http:\/\/mail\.example\.eu is not encrypted/m);
    assert.match(text.stdout, /\d+ problems?, \d+ warnings?, \d+ skipped\n$/);
    const json = await run(["--json"], { DATABASE_URL: "" });
    assert.equal(json.status, 0, json.stdout + json.stderr);
    assert.deepEqual([JSON.parse(json.stdout).ok, JSON.parse(json.stdout).checks.length > 8], [true, true]);
  });

  it("makes nothing where nothing is yet", async () => {
    const data = join(dir, "not-yet");
    const { stdout } = await run([], { POSTERN_DATA: data, DATABASE_URL: "" });
    assert.match(stdout, /skipped {2}master key {7}There is none yet; the first start makes it\./);
    assert.match(stdout, /skipped {2}database {9}There is no embedded database yet/);
    assert.equal(existsSync(data), false);
  });

  it("says the remedy below what is wrong", () => {
    const line = printable([{ name: "x", status: "problem", says: "It is broken.", remedy: "Mend it." }]);
    assert.match(line, /It is broken\.\n +→ Mend it\./);
  });
});
