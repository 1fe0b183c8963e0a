// TLS to a real PostgreSQL: every mode of DATABASE_URL, and what a start and the doctor say where it fails.
import assert from "node:assert/strict";
import { chownSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { type SystemPostgres, startSystemPostgres } from "../../../test/support/system-postgres.ts";
import { makeRunFolder } from "../../../test/support/test-server.ts";
import {
  type CertificateAuthority,
  type IssuedCertificate,
  makeCertificateAuthority,
} from "../../../test/support/tls.ts";
import { readConfig } from "../../config.ts";
import { checkDatabase } from "../../doctor/check-database.ts";
import { explainStart } from "../process/start-problem.ts";
import { openDb } from "./db.ts";

let dir: string;
let found: SystemPostgres | null = null;
let authority: CertificateAuthority;

before(async () => {
  dir = await makeRunFolder();
  for (const name of ["ours", "others", "plain", "data"]) mkdirSync(join(dir, name));
  authority = makeCertificateAuthority(join(dir, "ours"));
  makeCertificateAuthority(join(dir, "others"));
  found = await startSystemPostgres(join(dir, "pg"));
  if (found) await shows(authority.issue(["127.0.0.1", "localhost"]));
});
after(async () => {
  await found?.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** The server encrypts with this certificate from now on, and takes `tls_only` and `cert_only` in no other way. */
async function shows({ cert, key }: IssuedCertificate): Promise<void> {
  const server = found as SystemPostgres;
  const cluster = join(dir, "pg", "cluster");
  const { uid, gid } = statSync(cluster);
  for (const [name, text] of [
    ["server.crt", cert],
    ["server.key", key],
    ["root.crt", authority.ca],
  ] as const) {
    rmSync(join(cluster, name), { force: true });
    writeFileSync(join(cluster, name), text, { mode: 0o600 });
    chownSync(join(cluster, name), uid, gid);
  }
  const rules = join(cluster, "pg_hba.conf");
  const [only, certified] = [
    "hostnossl all tls_only 127.0.0.1/32 reject",
    "hostssl all cert_only 127.0.0.1/32 scram-sha-256 clientcert=verify-ca",
  ];
  const before = readFileSync(rules, "utf8");
  if (!before.startsWith(only)) writeFileSync(rules, `${only}\n${certified}\n${before}`);
  const client = new pg.Client(server.admin_url);
  await client.connect();
  for (const role of ["tls_only", "cert_only"]) {
    const { rowCount } = await client.query("select 1 from pg_roles where rolname = $1", [role]);
    if (rowCount === 0) await client.query(`create role ${role} login password 'secret'`);
  }
  for (const [name, value] of [
    ["ssl", "on"],
    ["ssl_cert_file", "server.crt"],
    ["ssl_key_file", "server.key"],
    ["ssl_ca_file", "root.crt"],
    ["ssl_min_protocol_version", "TLSv1.3"],
  ] as const) {
    await client.query(`alter system set ${name} = '${value}'`);
  }
  await client.end();
  await server.restart();
}

function urlOf(role: "postern" | "tls_only" | "cert_only", search: string, server = found as SystemPostgres): string {
  const url = new URL(server.url);
  if (role !== "postern") Object.assign(url, { username: role, password: "secret" });
  url.search = search;
  return url.href;
}

const configOf = (url: string) => readConfig({ POSTERN_DATA: join(dir, "data"), DATABASE_URL: url });

/** `encrypted` or `clear`; a failure as a start says it, where the doctor says the same. */
async function outcome(url: string): Promise<string> {
  const config = configOf(url);
  const db = openDb(config.database_url as string, { onError: () => undefined });
  try {
    const [row] = await db.query<{ ssl: boolean }>("select ssl from pg_stat_ssl where pid = pg_backend_pid()");
    const noted = await db.listen(["anything"], () => undefined);
    await noted.close();
    return row?.ssl ? "encrypted" : "clear";
  } catch (error) {
    const says = (explainStart(config, error) as Error).message;
    const [check] = await checkDatabase({ ...config, master_key: null });
    const [, why = ""] = /cannot be used: (.*?)(?:\. [A-Z].*)?$/.exec(says) ?? [];
    assert.ok(why !== "" && check?.says === `The database cannot be used: ${why}.`, `${says}\n${check?.says}`);
    const remedy = check?.remedy?.replace(/\.$/, "") ?? "";
    assert.ok(says.endsWith(remedy) || remedy.startsWith("Check DATABASE_URL"), `${says}\n${remedy}`);
    assert.doesNotMatch(says, /error:|routines|[A-Z]+_[A-Z]+_[A-Z]+/);
    assert.doesNotMatch(says, /secret/);
    return says.slice(says.indexOf("cannot be used: ") + "cannot be used: ".length);
  } finally {
    await db.close();
  }
}

describe("TLS to PostgreSQL", () => {
  it("is there with each mode, and every mode but no-verify checks the certificate", async (t) => {
    if (!found) return t.skip("no PostgreSQL of the distribution here");
    const root = `sslrootcert=${join(dir, "ours/ca.pem")}`;
    for (const [search, wanted] of [
      ["", /^clear$/],
      ["sslmode=disable", /^clear$/],
      ["sslmode=no-verify", /^encrypted$/],
      [`sslmode=verify-full&${root}`, /^encrypted$/],
      [`sslmode=require&${root}`, /^encrypted$/],
      [`${root}&sslmode=verify-ca`, /^encrypted$/],
      [root, /^encrypted$/],
      ["sslmode=require", /certificate is not valid: its (chain|authority).*sslrootcert=\/path\/ca\.pem/],
      ["sslmode=verify-full&sslrootcert=system", /certificate is not valid: its (chain|authority)/],
      [
        `sslmode=verify-full&sslrootcert=${join(dir, "others/ca.pem")}`,
        /certificate is not valid: its (chain|authority|sig)/,
      ],
      [`sslmode=verify-full&sslrootcert=${join(dir, "nothing.pem")}`, /nothing\.pem does not exist/],
    ] as const) {
      assert.match(await outcome(urlOf("postern", search)), wanted, search);
    }
  });

  it("is asked for in words where the server takes nothing else", async (t) => {
    if (!found) return t.skip("no PostgreSQL of the distribution here");
    const said = await outcome(urlOf("tls_only", ""));
    assert.match(
      said,
      /^the server refuses connections without TLS \(.*\)\. Add \?sslmode=verify-full to DATABASE_URL/,
    );
    const root = `sslrootcert=${join(dir, "ours/ca.pem")}`;
    const wanting = await outcome(urlOf("cert_only", `sslmode=verify-full&${root}`));
    assert.match(wanting, /^the server wants a certificate from its clients\. Add sslcert=/);
    const client = authority.issue(["cert_only"]);
    writeFileSync(join(dir, "client.pem"), client.cert);
    writeFileSync(join(dir, "client-key.pem"), client.key);
    const both = `sslcert=${join(dir, "client.pem")}&sslkey=${join(dir, "client-key.pem")}`;
    assert.match(await outcome(urlOf("tls_only", `sslmode=verify-full&${root}&${both}`)), /^encrypted$/);
    writeFileSync(join(dir, "client-key.pem"), "no key");
    assert.match(
      await outcome(urlOf("tls_only", `sslmode=verify-full&${root}&${both}`)),
      /^a certificate or key that DATABASE_URL names cannot be used: it .*\. Name files in PEM form/,
    );
  });

  it("fails in words for a certificate of another name, and for one that has expired", async (t) => {
    if (!found) return t.skip("no PostgreSQL of the distribution here");
    const root = `sslmode=verify-full&sslrootcert=${join(dir, "ours/ca.pem")}`;
    await shows(authority.issue(["db.example.eu"]));
    assert.match(
      await outcome(urlOf("postern", root)),
      /it is for other names \(db\.example\.eu\)\. Connect to a name/,
    );
    await shows(authority.issue(["127.0.0.1"], { from_days: -9, until_days: -1 }));
    assert.match(await outcome(urlOf("postern", root)), /it has expired\. Renew the server's certificate/);
  });

  it("says so where the server does not offer it", async (t) => {
    const plain = found && (await startSystemPostgres(join(dir, "plain")));
    if (!plain) return t.skip("no PostgreSQL of the distribution here");
    try {
      const said = await outcome(urlOf("postern", "sslmode=require", plain));
      assert.match(said, /^the server does not offer TLS, which DATABASE_URL asks for\. Set ssl = on/);
    } finally {
      await plain.stop();
    }
  });
});

describe("a pooler before PostgreSQL", () => {
  it("is named where it refuses the options of our sessions", async () => {
    const pooler = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => socket.end(refusal("08P01", "unsupported startup parameter: options")));
    });
    const port = await listening(pooler);
    try {
      const said = await outcome(`postgresql://postern@127.0.0.1:${port}/postern`);
      assert.match(
        said,
        /^a pooler stands before the server and refuses .*\. Let DATABASE_URL name PostgreSQL itself$/,
      );
    } finally {
      await new Promise((done) => pooler.close(done));
    }
  });
});

/** An ErrorResponse of the protocol (PostgreSQL 18, 54.7), as PgBouncer sends it. */
function refusal(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C${code}\0M${message}\0\0`);
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return (server.address() as { port: number }).port;
}
