// `postern backup` beside a running Postern, and what it makes restored with another data folder and another cluster: every row
// and every body is there, nothing leaves until the operator says so, and a backup that is damaged is known as damaged.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { Decrypter, generateX25519Identity, identityToRecipient } from "age-encryption";
import { open } from "../../src/backup/envelope.ts";
import { BackupBroken } from "../../src/backup/frames.ts";
import { takeBackup } from "../../src/backup/read.ts";
import { withSchema } from "../support/citus.ts";
import { plainDatabase, type TestDatabase } from "../support/database.ts";
import { inheritedEnv } from "../support/inherited-env.ts";
import { hasS3Server, type S3Server, startS3Server } from "../support/s3-server.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { receiveAt } from "../support/stories.ts";
import { connectToRows, digestTables } from "../support/table-digests.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const MASTER_KEY = "5e".repeat(32);
const LACKING_S3 = hasS3Server() ? false : "versitygw is not installed";
const LARGE = `${"A body that is not kept in a row. ".repeat(10)}\n`.repeat(1_000);

let s: Scene;
let target: TestDatabase;
let recipient: string;
let identity: string;
let backup: string;
let made: Record<string, unknown>;

before(async () => {
  s = await setScene({ env: { POSTERN_MASTER_KEY: MASTER_KEY, POSTERN_LOG_LEVEL: "info" } });
  target = await plainDatabase();
  receiveAt(s.dns, "recipient.example");
  const secret = await generateX25519Identity();
  recipient = await identityToRecipient(secret);
  identity = join(s.dir, "identity");
  writeFileSync(identity, `# public key: ${recipient}\n${secret}\n`);
  backup = join(s.dir, "mail.backup");
  const running = await s.start(["api", "mta", "clock"]);
  await addVerifiedDomain(s, s.dns, "sender.example");
  const delivered = await send("delivered", LARGE);
  await until("it is delivered", async () => (await statusOf(delivered)) === "delivered");
  // Sessions are counted in memory for two seconds: a backup of before has none of them.
  await until("its session is counted", async () => (await countedSessions()) > 0);
  await send("waits for tomorrow", "tab\there, back\\slash, é, \u{1f4ee}", { scheduled_at: tomorrow() });
  assert.equal((await s.ask("POST", "/v1/suppressions", { email: "no@recipient.example" })).status, 201);
  made = JSON.parse(await command(["backup", backup, "--recipient", recipient, "--json"]));
  await running.stop();
});
after(async () => {
  await target?.drop();
  await s?.close();
});

const tomorrow = () => new Date(Date.now() + 86_400_000).toISOString();

async function send(subject: string, text_body: string, more: Record<string, string> = {}): Promise<string> {
  const mail = { from: "a@sender.example", to: ["b@recipient.example"], subject, text_body, ...more };
  const { status, body } = await s.ask("POST", "/v1/send", mail);
  assert.equal(status, 202, JSON.stringify(body));
  return String(body.id);
}

async function countedSessions(): Promise<number> {
  const client = await connectToRows(s.env.DATABASE_URL as string);
  const { rows } = await client.query<{ sessions: number }>("select count(*)::int as sessions from tls_result");
  await client.end();
  return rows[0]?.sessions ?? 0;
}

async function statusOf(id: string): Promise<string> {
  const { body } = await s.ask("GET", `/v1/emails/${id}`);
  return (body.email as unknown as { status: string }).status;
}

async function command(args: string[], env: Record<string, string> = {}): Promise<string> {
  const all = { ...inheritedEnv(), ...s.env, ...env };
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args], { env: all });
  return stdout.trim();
}

function settingsOf({ access }: S3Server, prefix: "POSTERN_S3" | "POSTERN_BACKUP_S3"): Record<string, string> {
  const named = Object.entries(access).map(([name, value]) => [`${prefix}_${name.toUpperCase()}`, value]);
  return Object.fromEntries(named);
}

/** What the command says when it fails. */
async function failure(args: string[], env: Record<string, string> = {}): Promise<string> {
  const ended = await command(args, env).then(
    (stdout) => assert.fail(`it did not fail: ${stdout}`),
    (error: { stderr: string; stdout: string }) => error,
  );
  return `${ended.stderr}${ended.stdout}`;
}

/** Reads a backup as a restore does, and keeps nothing of it. */
function readWhole(bytes: Buffer) {
  const identities = [readFileSync(identity, "utf8").split("\n")[1] as string];
  return takeBackup(open(Readable.from([bytes], { objectMode: false }), { passphrase: null, identities }), {
    head: async () => undefined,
    table: async (_head, rows) => {
      for await (const _bytes of rows);
    },
    body: async () => undefined,
  });
}

/** On Citus other means protect the rows. */
const IS_CELL = process.env.POSTERN_TEST_CITUS !== undefined;

/** Every table's rows, and what protects them. */
async function rowsOf(url: string): Promise<Record<string, string>> {
  const client = await connectToRows(url);
  const found = await digestTables(client);
  if (IS_CELL) {
    await client.end();
    return found;
  }
  const walls = await client.query<{ said: string }>(
    `select string_agg(concat_ws(' ', relname, relrowsecurity, relforcerowsecurity, tgname, tgenabled), '|'
                       order by relname, tgname) as said
       from pg_class c left join pg_trigger t on t.tgrelid = c.oid and not t.tgisinternal
      where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace and not relispartition`,
  );
  await client.end();
  found["row-level security and triggers"] = walls.rows[0]?.said ?? "";
  return found;
}

/** Where all rows are seen: of a cell by a superuser alone. */
function ownUrl(): string {
  const { DATABASE_URL = "" } = s.env;
  const citus = process.env.POSTERN_TEST_CITUS ?? "";
  return URL.canParse(citus) ? withSchema(citus, new URL(DATABASE_URL).username) : DATABASE_URL;
}

describe("a backup", () => {
  it("says its size and what is in it, is nobody else's to read, and holds no plain text", () => {
    assert.ok(Number(made.rows) > 20, JSON.stringify(made));
    assert.deepEqual([made.bodies, made.bodies_missing, made.bodies_referenced], [1, 0, 0]);
    const bytes = readFileSync(backup);
    assert.equal(made.stored_bytes, bytes.length);
    assert.equal(made.sha256, createHash("sha256").update(bytes).digest("hex"));
    assert.equal(statSync(backup).mode & 0o777, 0o600);
    assert.ok(!bytes.includes("sender.example"));
  });

  it("opens with age alone", async () => {
    const decrypter = new Decrypter();
    decrypter.addIdentity(readFileSync(identity, "utf8").split("\n")[1] as string);
    const plain = await decrypter.decrypt(readFileSync(backup));
    assert.equal(Buffer.from(plain.subarray(0, 4)).readUInt32LE(), 0xfd2fb528, "Zstandard");
  });

  it("is verified in a scratch database, row by row and body by body", async () => {
    const found = JSON.parse(await command(["backup", "verify", backup, "--identity", identity, "--json"]));
    assert.equal(found.ok, true, JSON.stringify(found));
    assert.deepEqual([found.rows, found.tables, found.bodies], [made.rows, made.tables, made.bodies]);
    assert.deepEqual(found.different, []);
  });

  it("that is cut short, changed, or no backup is known as such, wherever it is damaged", async () => {
    const bytes = readFileSync(backup);
    const changed = (at: number): Buffer => {
      const copy = Buffer.from(bytes);
      copy[at] = (copy[at] as number) ^ 1;
      return copy;
    };
    const { length } = bytes;
    const cut = [0, 40, 300, length >> 1, length - 1_000, length - 1].map((end) => bytes.subarray(0, end));
    const wrong = [
      ...cut,
      ...[30, 150, length >> 1, length - 100].map(changed),
      Buffer.from("x"),
      Buffer.concat([bytes, bytes]),
    ];
    assert.equal((await readWhole(bytes)).end.rows, made.rows);
    for (const [index, damaged] of wrong.entries()) {
      await assert.rejects(readWhole(damaged), BackupBroken, `${index}`);
    }
  });

  it("does not open with another passphrase, and is refused under another master key", async () => {
    const passphrase = { POSTERN_BACKUP_PASSPHRASE: "some words", DATABASE_URL: target.url };
    assert.match(await failure(["restore", backup], passphrase), /does not open with this passphrase/);
    const key = { POSTERN_MASTER_KEY: "6f".repeat(32), DATABASE_URL: target.url };
    assert.match(await failure(["restore", backup, "--identity", identity], key), /made under another master key/);
  });

  it("is not restored over rows, unless it is asked to, and is not written over a file", async () => {
    const args = ["restore", backup, "--identity", identity];
    assert.match(
      await failure(args),
      IS_CELL ? /Citus keeps this .* one PostgreSQL/ : /the database is not empty: .* --replace/,
    );
    assert.match(await failure(["backup", backup, "--recipient", recipient]), /is there already/);
    assert.match(await failure(["backup", `${backup}2`]), /set POSTERN_BACKUP_PASSPHRASE/);
  });

  it("is kept in an S3-compatible store as well, and verified and restored from there", {
    skip: LACKING_S3,
  }, async () => {
    const store = await startS3Server();
    try {
      const env = settingsOf(store, "POSTERN_BACKUP_S3");
      const address = `s3://${store.bucket}/2026/mail.postern`;
      const kept = JSON.parse(await command(["backup", address, "--recipient", recipient, "--json"], env));
      assert.equal(kept.bodies, made.bodies);
      assert.match(await failure(["backup", address, "--recipient", recipient], env), /is there already/);
      const found = JSON.parse(await command(["backup", "verify", address, "--identity", identity, "--json"], env));
      assert.deepEqual([found.ok, found.rows], [true, kept.rows]);
      const said = await command(["restore", address, "--identity", identity], { ...env, DATABASE_URL: target.url });
      assert.match(said, /Sending is paused/);
      assert.match(await failure(["restore", `${address}x`, "--identity", identity], env), /it answered 404/);
      assert.match(await failure(["backup", address, "--recipient", recipient]), /no store is set/);
    } finally {
      await store.stop();
    }
  });

  it("is neither made without the bodies of a bucket that is not there, nor costs rows for one", {
    skip: LACKING_S3,
  }, async () => {
    const store = await startS3Server();
    try {
      const env = { ...settingsOf(store, "POSTERN_S3"), POSTERN_S3_BUCKET: "absent" };
      const without = join(s.dir, "without.backup");
      assert.match(await failure(["backup", without, "--recipient", recipient], env), /404 NoSuchBucket/);
      assert.equal(existsSync(without), false);
      await command(["restore", backup, "--identity", identity, "--replace"], { DATABASE_URL: target.url });
      const before = await rowsOf(target.url);
      const again = ["restore", backup, "--identity", identity, "--replace"];
      assert.match(await failure(again, { ...env, DATABASE_URL: target.url }), /404 NoSuchBucket/);
      assert.deepEqual(await rowsOf(target.url), before);
    } finally {
      await store.stop();
    }
  });

  it("brings every row and body into another cluster and data folder, where mail waits for the operator", async () => {
    const own = await rowsOf(ownUrl());
    await command(["restore", backup, "--identity", identity, "--replace"], { DATABASE_URL: target.url });
    const difference = Object.entries(await rowsOf(target.url)).filter(([name, said]) => own[name] !== said);
    // The clock went on between backup and stop: what it notes of itself may differ, and lanes without mail go.
    assert.deepEqual(
      difference.filter(([name]) => !["node", "lease", "lane", "key_ring_use"].includes(name)),
      [],
    );

    const elsewhere = { POSTERN_DATA: join(s.dir, "elsewhere"), DATABASE_URL: "" };
    const said = await command(["restore", backup, "--identity", identity], elsewhere);
    assert.match(said, /Sending is paused/);
    const restored = await s.start(["api", "mta"], elsewhere);
    assert.match(restored.output(), /nothing is sent: run `postern resume`/);
    const { body } = await s.ask("GET", "/v1/emails");
    assert.equal((body.emails as unknown as unknown[]).length, 2);
    const queued = await send("after it was restored", "x");
    assert.equal(await statusOf(queued), "queued");
    assert.match(await command(["resume"], elsewhere), /Mail leaves again/);
    await until("it leaves", async () => (await statusOf(queued)) === "delivered");
    await restored.stop();
  });
});
