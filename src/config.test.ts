import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ConfigProblems, findConfig, printableConfig, readConfig } from "./config.ts";

let dir: string;

before(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-config-"));
});

after(() => {
  rmSync(dir, { recursive: true, force: true });
});

describe("the master key file", () => {
  it("is made once, readable by its owner only, beside an empty list of databases", () => {
    const data = join(dir, "fresh");
    const first = readConfig({ POSTERN_DATA: data });
    assert.equal(first.master_key.length, 32);
    assert.deepEqual(readConfig({ POSTERN_DATA: data }).master_key, first.master_key);
    assert.equal(statSync(join(data, "master.key")).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(data).toSorted(), ["database-ids", "master.key"]);
    assert.equal(statSync(join(data, "database-ids")).size, 0);
    assert.equal(readFileSync(join(data, "master.key"), "utf8"), `${first.master_key.toString("hex")}\n`);
  });

  it("holds a key in any form that POSTERN_MASTER_KEY may have", () => {
    const key = Buffer.alloc(32, 0xfb);
    for (const text of [key.toString("hex").toUpperCase(), key.toString("base64"), key.toString("base64url")]) {
      const data = mkdtempSync(join(dir, "copy-"));
      writeFileSync(join(data, "master.key"), `${text}\n`);
      assert.deepEqual(readConfig({ POSTERN_DATA: data }).master_key, key, text);
      assert.deepEqual(readConfig({ POSTERN_DATA: data, POSTERN_MASTER_KEY: text }).master_key, key, text);
    }
  });

  it("that a crash has cut short is a problem, never a shorter key or a new one", () => {
    for (const text of ["", "ab".repeat(31), "ab".repeat(22), `${"ab".repeat(21)}c`, "\0".repeat(64), "not a key"]) {
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

function problemsOf(change: Record<string, string>): string[] {
  try {
    readConfig({ POSTERN_DATA: join(dir, "fresh"), ...change });
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigProblems);
    return error.problems;
  }
}

function s3Settings(prefix: "POSTERN_S3" | "POSTERN_BACKUP_S3"): Record<string, string> {
  const bucket: Record<string, string> = prefix === "POSTERN_S3" ? { POSTERN_S3_BUCKET: "Old_bucket.name-1" } : {};
  const login = { [`${prefix}_ACCESS_KEY`]: "a/b+c=", [`${prefix}_SECRET_KEY`]: "s" };
  return { [`${prefix}_ENDPOINT`]: "https://s3.example.eu/store", [`${prefix}_REGION`]: "eu-1", ...bucket, ...login };
}

describe("a setting that is wrong", () => {
  const WRONG: [variable: string, values: string[]][] = [
    ["POSTERN_LOG_LEVEL", ["bogus", "0"]],
    ["POSTERN_DNS", ["999.1.1.1", "1.1", "1.1.1.1:99999", "1.1.1.1:0", "dns.example", "[::1"]],
    ["POSTERN_PROXY_PROTOCOL_FROM", ["foo", "10.0.0.0/33", "10.0.0.0/", "::1/129", "10.0.0/8", "10.0.0.7:25"]],
    ["POSTERN_CELLS_DOOR", ["10.0.0.7", "10.0.0.7:99999"]],
    ["POSTERN_TRUSTED_PROXIES", ["proxy.example", "10.0.0.0/33"]],
    ["POSTERN_ALLOWED_NETWORKS", ["*", "10.0.0.0/"]],
    ["POSTERN_PUBLIC_ADDRESSES", ["foo", "10.0.0.0/8", "192.0.2.1:25", "1.2.3"]],
    ["POSTERN_BASE_URL", ["mail.example.eu", "ftp://mail.example.eu", "https://mail.example.eu/?a", "https://a.eu/#x"]],
    ["POSTERN_BASE_URL", ["https://a.eu/mail", "https://a.eu/mail/", "https://a.eu//x", "https://a.eu\\mail"]],
    ["POSTERN_S3_ENDPOINT", ["s3.example.eu", "ftp://s3.example.eu", "https://a:b@s3.example.eu", "https://s3.eu/?a"]],
    [
      "POSTERN_S3_BUCKET",
      ["B//", "mail/bodies", "/bodies", "mail bodies", "s3://bodies", "..", "bodies?a", "corps-été"],
    ],
    ["POSTERN_S3_REGION", ["a b", "eu/central", "https://s3.example.eu"]],
    ["POSTERN_S3_ACCESS_KEY", ["a b", "clé", "a,b"]],
    ["POSTERN_BACKUP_S3_ENDPOINT", ["s3.example.eu", "https://s3.example.eu/#a"]],
    ["POSTERN_BACKUP_S3_REGION", ["a b"]],
    ["POSTERN_BACKUP_S3_ACCESS_KEY", ["a b"]],
    ["POSTERN_RSPAMD_URL", ["rspamd:11333", "http://rspamd:11333/?a", "http://rspamd:11333/#a"]],
    [
      "DATABASE_URL",
      ["mysql://h/db", "postgresql://h/db?sslmode=verify_full", "postgresql://[bad", "postgresql://user:pa#ss@h/db"],
    ],
    ["POSTERN_DATABASE_POOLER", ["postgresql://pooler.example:6432/postern"]],
    ["POSTERN_DATABASE_CONNECTIONS", ["8", "many", "70000"]],
    ["POSTERN_ACME_CA", ["/", "/nowhere/ca.pem"]],
    ["POSTERN_OIDC_DOMAINS", ["@staff.example", "https://staff.example", "ann@staff.example"]],
  ];

  it("is named at once, in one problem", () => {
    const s3 = s3Settings("POSTERN_S3");
    const backup = s3Settings("POSTERN_BACKUP_S3");
    const client = { POSTERN_OIDC_CLIENT_ID: "postern", POSTERN_OIDC_CLIENT_SECRET: "s" };
    const oidc = { ...client, POSTERN_OIDC_ISSUER: "https://login.example" };
    const beside = { POSTERN_OIDC_DOMAINS: oidc };
    for (const [variable, values] of WRONG) {
      for (const value of values) {
        const ofStore = variable.startsWith("POSTERN_S3") ? s3 : variable.startsWith("POSTERN_BACKUP") ? backup : {};
        const more = beside[variable as keyof typeof beside] ?? ofStore;
        const found = problemsOf({ ...more, [variable]: value });
        assert.equal(found.length, 1, `${variable}=${value}: ${found.join(" ")}`);
        assert.ok(found[0]?.startsWith(variable), found[0]);
        assert.doesNotMatch(found[0] ?? "", /such as \W*$/, "the example is missing");
      }
    }
  });

  it("is not a store's as some have them", () => {
    assert.deepEqual(problemsOf({ ...s3Settings("POSTERN_S3"), ...s3Settings("POSTERN_BACKUP_S3") }), []);
  });

  it("is a public address with a path, as the dashboard and its links are at the root of a host name", () => {
    assert.deepEqual(problemsOf({ POSTERN_BASE_URL: "https://a.eu/mail" }), [
      'POSTERN_BASE_URL is "https://a.eu/mail", which has a path. Postern needs a host name of its own: write https://<that name> alone.',
    ]);
  });

  it("is a data folder that cannot be one, said in words", () => {
    const file = join(dir, "file");
    writeFileSync(file, "");
    const [found = ""] = problemsOf({ POSTERN_DATA: join(file, "data") });
    assert.match(found, /cannot be used \(\S+ does not exist: a part of its path is not a folder\); set POSTERN_DATA/);
  });

  it("is a pooler that is no database's address", () => {
    const direct = { DATABASE_URL: "postgresql://postern:p@db.example/postern" };
    const found = problemsOf({ ...direct, POSTERN_DATABASE_POOLER: "pooler.example:6432" });
    assert.deepEqual(found, ["POSTERN_DATABASE_POOLER must begin with postgresql://."]);
    const pooler = "postgresql://postern:secret@pooler.example:6432/postern";
    const config = readConfig({ POSTERN_DATA: join(dir, "fresh"), ...direct, POSTERN_DATABASE_POOLER: pooler });
    assert.equal(config.database_pooler_url, pooler);
    assert.ok(!JSON.stringify(printableConfig(config)).includes("secret"));
  });

  it("is not repeated where it may hold a password", () => {
    const secrets = { POSTERN_BASE_URL: "https://a:secret@h.eu", DATABASE_URL: "postgresql://a:secret#x@h/db" };
    for (const [variable, value] of Object.entries(secrets)) {
      const found = problemsOf({ [variable]: value }).join();
      assert.match(found, new RegExp(`^${variable}`));
      assert.ok(!found.includes("secret"), found);
    }
  });

  it("says nothing by itself where it is about another", () => {
    const [problem = "", ...more] = problemsOf({ POSTERN_PROXY_TLS: "1" });
    assert.match(problem, /^POSTERN_PROXY_TLS needs POSTERN_PROXY_PROTOCOL_FROM/);
    assert.deepEqual(more, []);
    assert.deepEqual(problemsOf({ POSTERN_PROXY_TLS: "1", POSTERN_PROXY_PROTOCOL_FROM: "10.0.0.7" }), []);
  });

  it("is not one that can be used", () => {
    const right = {
      POSTERN_LOG_LEVEL: "WARN",
      POSTERN_DNS: "192.0.2.1, 192.0.2.2:5353 [2001:db8::1]:53 [2001:db8::2]",
      POSTERN_PROXY_PROTOCOL_FROM: "10.0.0.7,10.0.0.0/8 2001:db8::/32 ::1",
      POSTERN_BASE_URL: "https://mail.example.eu:8443/",
      DATABASE_URL: "postgresql://postern@/postern?host=/run/postgresql",
    };
    const config = readConfig({ POSTERN_DATA: join(dir, "fresh"), ...right });
    assert.equal(config.log_level, "warn");
    assert.equal(config.base_url, "https://mail.example.eu:8443");
    assert.equal(printableConfig(config).database, "/run/postgresql");
  });
});

describe("a variable that is no setting", () => {
  const unusedOf = (env: Record<string, string>): string[] =>
    readConfig({ POSTERN_DATA: join(dir, "fresh"), ...env }).unused;

  it("is reported, and so is one without those that it belongs to", () => {
    const mistyped = { POSTERN_SUBMISION: "0.0.0.0:587", POSTERN_S3_SECRET_KEY: "s", POSTERN_HOST_NAME: "" };
    assert.deepEqual(unusedOf({ POSTERN_HOSTNAME: "mail.example.eu", ...mistyped }), [
      "POSTERN_S3_SECRET_KEY",
      "POSTERN_SUBMISION",
    ]);
  });

  it("is reported where it is about a sign-in provider that is not set, and not where it is", () => {
    const more = { POSTERN_OIDC_DOMAINS: "a.example", POSTERN_OIDC_NAME: "Ours", POSTERN_OIDC_ROLE: "admin" };
    assert.deepEqual(unusedOf(more), Object.keys(more));
    const access = { POSTERN_OIDC_CLIENT_ID: "postern", POSTERN_OIDC_CLIENT_SECRET: "s" };
    assert.deepEqual(unusedOf({ ...more, ...access, POSTERN_OIDC_ISSUER: "https://login.example" }), []);
  });

  it("is not reported when it is not ours", () => {
    const cluster = { POSTERN_PORT: "tcp://10.0.0.1:80", POSTERN_PORT_80_TCP: "x", POSTERN_SERVICE_HOST: "10.0.0.1" };
    const rest = { POSTERN_SUBMISSIONS: "127.0.0.1:465", POSTERN_GREYLISTING: "1", POSTERN_RETENTION_BODY_DAYS: "40" };
    assert.deepEqual(unusedOf({ ...cluster, ...rest, POSTERN_TESTING_ALLOW_LOOPBACK: "1", PATH: "/bin" }), []);
  });
});

describe("two settings of one address", () => {
  it("are a problem that names both, wildcards too", () => {
    assert.deepEqual(problemsOf({ POSTERN_MX: "127.0.0.1:21300", POSTERN_HTTP: "127.0.0.1:21300" }), [
      "POSTERN_HTTP (127.0.0.1:21300) and POSTERN_MX (127.0.0.1:21300) are one address; give each its own.",
    ]);
    for (const [one, other] of [
      ["0.0.0.0:25", "192.0.2.1:25"],
      ["[::1]:25", "[::]:25"],
      ["[::]:25", "0.0.0.0:25"],
    ] as const) {
      assert.equal(problemsOf({ POSTERN_MX: one, POSTERN_INTERNAL: other }).length, 1, `${one} ${other}`);
    }
  });

  it("are none with a port each, an address each, ports that the system chooses, or beside a default", () => {
    assert.deepEqual(problemsOf({ POSTERN_MX: "192.0.2.1:25", POSTERN_SUBMISSION: "192.0.2.2:25" }), []);
    assert.deepEqual(problemsOf({ POSTERN_MX: "[::1]:25", POSTERN_SUBMISSION: "0.0.0.0:25" }), []);
    assert.deepEqual(problemsOf({ POSTERN_MX: "127.0.0.1:0", POSTERN_HTTP: "127.0.0.1:0" }), []);
    assert.deepEqual(problemsOf({ POSTERN_HTTP: "127.0.0.1:2525", POSTERN_SUBMISSION: "" }), []);
  });
});

describe("settings that belong together", () => {
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
