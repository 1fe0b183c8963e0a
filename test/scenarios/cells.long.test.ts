// On Citus, a coordinator and two workers: the schema is given to it and moved, and stories of sending, receiving and
// masked addresses are the same as on one PostgreSQL.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { makeBackup } from "../../src/backup/backup.ts";
import { fillDatabase } from "../../src/backup/restore.ts";
import { fileTarget } from "../../src/backup/store.ts";
import { createClock } from "../../src/platform/clock.ts";
import { addCell, distribute, isDistributed, listCells, moveCell } from "../../src/platform/database/citus/cells.ts";
import { type Db, openDb } from "../../src/platform/database/db.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { makePartitions } from "../../src/platform/database/partitions.ts";
import { startEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { createRandom } from "../../src/platform/random.ts";
import { createFolderBlobs } from "../../src/platform/storage/blobs.ts";
import { insertListened, readEvents } from "../../src/webhooks/stream/stream-queries.ts";
import { type Citus, lacksCitus, startCitus, withSchema } from "../support/citus.ts";
import { connectToRows, digestTables } from "../support/table-digests.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const STORIES = ["send", "outcomes", "masked", "bounces", "searches", "simulator", "submission", "address-data"];
const STORY_MS = 600_000;
const ADD = `insert into suppression (org_id, id, email, reason, scope_type, source, created_at)
             values ($1, $2, $3, 'manual', 'org', 'manual', $4)`;

describe("a schema that Citus keeps", { skip: lacksCitus }, () => {
  const dir = lacksCitus ? "" : mkdtempSync(join(tmpdir(), "postern-cells-"));
  const org = "01000000-0000-7000-8000-000000000001";
  let citus: Citus;
  let url: string;
  /** Who finds the tables of Postern's schema, too. */
  let asSuperuser: string;

  before(async () => {
    chmodSync(dir, 0o711); // run by root, PostgreSQL runs as an ordinary user
    citus = await startCitus(dir, 2, { fsync: "off" });
    url = citus.urlOf();
    asSuperuser = withSchema(citus.adminUrlOf(), "postern");
  });
  after(async () => {
    await citus?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  /** The organizations that each side sees, in a world that was opened for the database as it is. */
  async function organizations(): Promise<{ system: number; own: number; other: number }> {
    const db = openDb(url, { onError: () => undefined, distributed: await isDistributed(url) });
    const count = "select count(*)::int as n from organization";
    try {
      const other = "01000000-0000-7000-8000-000000000009";
      return {
        system: (await db.query<{ n: number }>(count))[0]?.n ?? -1,
        own: await db.asOrg(org, async (tx) => (await tx.query<{ n: number }>(count))[0]?.n ?? -1),
        other: await db.asOrg(other, async (tx) => (await tx.query<{ n: number }>(count))[0]?.n ?? -1),
      };
    } finally {
      await db.close();
    }
  }

  it("is given to it with its rows, and both walls stand", async () => {
    await assert.rejects(distribute(url), /run postern migrate first/);
    await migrate(url);
    const db = openDb(url, { onError: () => undefined });
    for (const id of [org, org.replace(/1$/, "2")])
      await db.execute("insert into organization (id, name, plan, state) values ($1, 'a', 'free', 'active')", [id]);
    await assert.rejects(distribute(url), /stop every process of Postern first/);
    await makePartitions(db, Date.now());
    await keepEvent(db);
    await db.close();
    assert.deepEqual(await organizations(), { system: 2, own: 1, other: 0 });
    assert.equal(await distribute(url), "postern");
    assert.equal(await isDistributed(url), true);
    assert.deepEqual(await organizations(), { system: 2, own: 1, other: 0 });
    await assert.rejects(distribute(url), /keeps this database's schema already/);
    assert.deepEqual(await migrate(url), []);
    await samplesNobody();
    assert.deepEqual(await events(), kept);
  });

  /** Ids of events for a reader, in order. */
  const kept: string[] = [];

  /** One that was written on a server that counted its transactions further than any here. */
  async function keepEvent(db: Db): Promise<void> {
    const id = createRandom(createClock({ offsetFile: null })).uuid();
    const event = { org_id: org, id, event: "email.delivered", environment: "live", body: Buffer.from("{}") };
    await db.transaction((tx) => insertListened(tx, [event], { at: new Date(), listened: "4000000000" }));
    kept.push(id);
  }

  async function events(): Promise<string[]> {
    const db = openDb(url, { onError: () => undefined, distributed: true });
    const from = "00000000-0000-7000-8000-000000000000";
    const wanted = { after: from, types: ["email.delivered" as const], environments: ["live"], from_id: from };
    const rows = await db.asOrg(org, (tx) => readEvents(tx, org, wanted, 100)).finally(() => db.close());
    return rows.map(({ id }) => id);
  }

  /** No server samples columns with addresses of a day's tables, where the rows are. */
  async function samplesNobody(): Promise<void> {
    const client = new pg.Client({ connectionString: asSuperuser });
    await client.connect();
    const { rows } = await client.query<{ name: string; not_sampled: string }>(
      `select c.relname as name, ran.result as not_sampled
         from pg_class c cross join lateral run_command_on_shards(c.oid::regclass,
           $$select count(*) from pg_attribute where attrelid = '%s'::regclass and attnum > 0 and attstattarget = 0$$) as ran
        where c.relnamespace = current_schema()::regnamespace and c.relname ~ '^(recipient|masked_activity)_[0-9]{8}$' and c.relkind = 'r'`,
    );
    await client.end();
    assert.ok(rows.length >= 10, `${rows.length} tables`);
    assert.deepEqual(
      rows.filter(({ not_sampled }) => not_sampled !== "2"),
      [],
    );
  }

  it("samples no addresses in the tables of days to come either", async () => {
    const db = openDb(url, { onError: () => undefined, distributed: true });
    await makePartitions(db, Date.now() + 30 * 86_400_000).finally(() => db.close());
    await samplesNobody();
  });

  /** Addresses that were added, one after the other, until `work` was done. */
  async function writing(work: () => Promise<void>): Promise<string[]> {
    const db = openDb(url, { onError: () => undefined, distributed: true });
    const added: string[] = [];
    let isOver = false;
    const write = async (): Promise<void> => {
      for (let n = 0; !isOver; n += 1) {
        const email = `${n}@example.org`;
        await db.execute(ADD, [org, randomUUID(), email, new Date()]);
        added.push(email);
      }
    };
    try {
      const writes = write();
      await work().finally(() => {
        isOver = true;
      });
      await writes;
      return added;
    } finally {
      await db.close();
    }
  }

  async function suppressed(): Promise<string[]> {
    const db = openDb(url, { onError: () => undefined, distributed: true });
    const rows = await db.query<{ email: string }>("select email from suppression").finally(() => db.close());
    return rows.map(({ email }) => email);
  }

  it("moves to the other worker while it is written to", async () => {
    const { cells, servers } = await listCells(url);
    assert.equal(cells.length, 1);
    const [cell] = cells;
    const to = servers.find(({ port }) => port !== cell?.port && port !== citus.coordinator.port);
    assert.ok(cell && to);
    await assert.rejects(moveCell(url, { name: cell.name, to }), /name a superuser/);
    const db = openDb(url, { onError: () => undefined, distributed: true });
    await keepEvent(db).finally(() => db.close());
    assert.deepEqual(await events(), kept.slice(0, 1));
    const added = await writing(() => moveCell(citus.adminUrlOf(), { name: cell.name, to }));
    assert.ok(added.length > 0);
    assert.deepEqual((await suppressed()).sort(), added.sort());
    assert.deepEqual(
      (await listCells(url)).cells.map(({ name, port }) => [name, port]),
      [["postern", to.port]],
    );
    await samplesNobody();
    assert.deepEqual(await events(), kept);
    assert.deepEqual(await organizations(), { system: 2, own: 1, other: 0 });
  });

  it("is backed up there, and restored in one PostgreSQL with the same rows", async () => {
    const clock = createClock({ offsetFile: null });
    const blobs = createFolderBlobs(join(dir, "blobs"), (error) => assert.fail(String(error)));
    const target = fileTarget(join(dir, "cell.backup"));
    const master_key = Buffer.alloc(32, 7);
    const made = await makeBackup(
      { database_url: url, blobs, master_key, clock },
      {
        ...{ target, locks: { passphrase: "words", recipients: [] }, bodies: "included", version: "1" },
        progress: () => undefined,
      },
    );
    assert.ok(made.rows > 2);
    const plain = await startEmbeddedPostgres({ data_dir: join(dir, "plain"), settings: { fsync: "off" } });
    try {
      await fillDatabase(
        { database_url: plain.url, blobs, clock },
        {
          ...{ target, keys: { passphrase: "words", identities: [] }, master_key, replace: false },
          progress: () => undefined,
        },
      );
      const there = await connectToRows(asSuperuser);
      const here = await connectToRows(plain.url);
      assert.deepEqual(await digestTables(here), await digestTables(there));
      await Promise.all([there.end(), here.end()]);
    } finally {
      await plain.stop();
    }
  });

  it("has others beside it, which cannot reach each other's rows", async () => {
    await assert.rejects(addCell(url, { name: "cell_2", password: "x" }), /name a superuser/);
    for (const name of ["Cell", "public", "pg_cell", "a-b"])
      await assert.rejects(addCell(citus.adminUrlOf(), { name, password: "x" }), /cannot be a cell's name/);
    const other = await addCell(citus.adminUrlOf(), { name: "cell_2", password: "x" });
    await assert.rejects(
      addCell(citus.adminUrlOf(), { name: "cell_2", password: "x" }),
      /role or a schema cell_2 already/,
    );
    const { cells } = await listCells(url);
    assert.deepEqual(cells.map(({ name }) => name).sort(), ["cell_2", "postern"]);
    assert.equal(await isDistributed(other), true);
    const db = openDb(other, { onError: () => undefined, distributed: true });
    try {
      assert.deepEqual(await db.query("select id from organization"), []);
      await assert.rejects(db.query("select id from postern.organization"), /permission denied/);
    } finally {
      await db.close();
    }
    assert.deepEqual(await organizations(), { system: 2, own: 1, other: 0 });
  });

  for (const story of STORIES)
    it(`plays the story of ${story}`, { timeout: STORY_MS }, async () => {
      const file = `test/scenarios/${story}.test.ts`;
      const { NODE_TEST_CONTEXT: _of_this, ...env } = process.env;
      const ended = await new Promise<string>((done) =>
        execFile(
          process.execPath,
          ["--test", file],
          { cwd: ROOT, env: { ...env, POSTERN_TEST_CITUS: "1" }, timeout: STORY_MS, maxBuffer: 2 ** 26 },
          (error, stdout) => done(error ? stdout : "passed"),
        ),
      );
      assert.equal(ended, "passed");
    });
});
