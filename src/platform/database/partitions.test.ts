import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, test } from "node:test";
import pg from "pg";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { startSystemPostgres } from "../../../test/support/system-postgres.ts";
import { uuidFloor } from "../random.ts";
import { openDb } from "./db.ts";
import { migrate } from "./migrate.ts";
import { dropExpiredPartitions, makePartitions, withPartitions } from "./partitions.ts";

const DAY_MS = 86_400_000;
/** Long enough for what does not wait, on any machine. */
const WAIT_MS = 20_000;
let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

async function leaves(parent: string): Promise<string[]> {
  const rows = await api.world.db.query<{ name: string }>(
    "select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = $1::regclass order by 1",
    [parent],
  );
  return rows.map(({ name }) => name);
}

const dayTables = async (): Promise<string[]> =>
  (await api.world.db.query<{ name: string }>("select table_name as name from day_partitioned order by 1")).map(
    ({ name }) => name,
  );

const dayName = (ms: number): string => new Date(ms).toISOString().slice(0, 10).replaceAll("-", "");

test("days are made ahead, and making them again changes nothing", async () => {
  const now = api.world.clock.now();
  await makePartitions(api.world.db, now);
  const made = await leaves("message");
  for (const day of [-1, 0, 1, 2, 3]) assert.ok(made.includes(`message_${dayName(now + day * DAY_MS)}`), `day ${day}`);
  await makePartitions(api.world.db, now);
  assert.deepEqual(await leaves("message"), made);
});

test("days past their retention are dropped whole, by their own class, and no others", async () => {
  const now = api.world.clock.now();
  await makePartitions(api.world.db, now - 50 * DAY_MS);
  const dropped = await dropExpiredPartitions(api.world, api.world.config.retention_days);
  assert.ok(dropped.includes(`message_body_${dayName(now - 50 * DAY_MS)}`));
  assert.ok(!dropped.some((leaf) => /^message_\d/.test(leaf)), "messages are kept 90 days");
  assert.ok((await leaves("message")).includes(`message_${dayName(now - 50 * DAY_MS)}`));
});

test("an insert into a day that is not there yet makes it and succeeds", async () => {
  const later = api.world.clock.now() + 400 * DAY_MS;
  const world = { db: api.world.db, clock: { ...api.world.clock, now: () => later } };
  const id = uuidFloor(later);
  await withPartitions(world, () =>
    world.db.execute("insert into message_body (org_id, id, mime) values ($1, $2, 'x')", [api.org_id, id]),
  );
  assert.ok((await leaves("message_body")).includes(`message_body_${dayName(later)}`));
});

// A dump of the database, or a long look into it, reads in one transaction and keeps its locks to the end.
describe("while somebody reads the tables for hours", () => {
  async function reading(work: () => Promise<void>): Promise<void> {
    const reader = new pg.Client({ connectionString: api.database_url, options: "-c postern.scope=system" });
    await reader.connect();
    try {
      await reader.query("begin isolation level repeatable read");
      for (const table of await dayTables()) await reader.query(`select count(*) from ${table}`);
      await work();
      await reader.query("commit");
    } finally {
      await reader.end();
    }
  }

  const inTime = <T>(work: Promise<T>, what: string): Promise<T> => {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new Error(`${what} waited for the reader`)), WAIT_MS);
    return Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
  };

  it("days are made ahead", async () => {
    const later = api.world.clock.now() + 500 * DAY_MS;
    await reading(() => inTime(makePartitions(api.world.db, later), "making a day"));
    for (const table of await dayTables())
      assert.ok((await leaves(table)).includes(`${table}_${dayName(later)}`), table);
  });

  it("days past their retention wait for a reader, nobody waits for them, and they go when the reader is gone", async () => {
    const now = api.world.clock.now();
    const old = `message_body_${dayName(now - 60 * DAY_MS)}`;
    await makePartitions(api.world.db, now - 60 * DAY_MS);
    await reading(async () => {
      const dropping = dropExpiredPartitions(api.world, api.world.config.retention_days);
      const inserted = api.world.db.execute("insert into message_body (org_id, id, mime) values ($1, $2, 'x')", [
        api.org_id,
        uuidFloor(now),
      ]);
      await inTime(inserted, "an insert");
      assert.ok(!(await inTime(dropping, "retention")).includes(old));
      assert.ok((await leaves("message_body")).includes(old));
    });
    assert.ok((await dropExpiredPartitions(api.world, api.world.config.retention_days)).includes(old));
  });
});

test("a day has what its table has: keys, indexes and settings of storage", async () => {
  await makePartitions(api.world.db, api.world.clock.now());
  const [row] = await api.world.db.query<{ loose: string[]; plain: string[] }>(
    `select array(select c.relname || ': ' || x.relname from day_partitioned d
                    join pg_inherits i on i.inhparent = d.table_name::regclass join pg_class c on c.oid = i.inhrelid
                    join pg_index own on own.indrelid = c.oid join pg_class x on x.oid = own.indexrelid
                   where not exists (select 1 from pg_inherits h where h.inhrelid = x.oid)) as loose,
            array(select c.relname::text from day_partitioned d
                    join pg_inherits i on i.inhparent = d.table_name::regclass join pg_class c on c.oid = i.inhrelid
                   where (d.storage <> '') <> (c.reloptions is not null)) as plain`,
  );
  assert.deepEqual(row, { loose: [], plain: [] });
});

test("the distribution's PostgreSQL, which may be the oldest that will do, makes days too", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "postern-partitions-"));
  const server = await startSystemPostgres(dir, { fsync: "off" });
  if (server === null) return t.skip("this machine has no PostgreSQL of its distribution");
  try {
    await migrate(server.url);
    const db = openDb(server.url, { onError: () => undefined });
    await makePartitions(db, Date.parse("2031-01-01"));
    const [row] = await db.query("select to_regclass('event_20310101') is not null as is_there");
    await db.close();
    assert.deepEqual(row, { is_there: true });
  } finally {
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  }
});

test("bodies of mail are compressed where the server has lz4, and read as they were written", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "postern-lz4-"));
  const server = await startSystemPostgres(dir, { fsync: "off" });
  if (server === null) return t.skip("this machine has no PostgreSQL of its distribution");
  try {
    await migrate(server.url);
    const db = openDb(server.url, { onError: () => undefined });
    const at = Date.parse("2031-01-01");
    await makePartitions(db, at);
    const [text, random] = [Buffer.from("Your order is on its way.\r\n".repeat(400)), randomBytes(20_000)];
    for (const [table, column, more] of [
      ["message_body", "mime", ""],
      ["inbound_raw", "bytes", ", size, envelope_from, helo, protocol, received_at"],
    ]) {
      const values = more === "" ? "" : ", 1, '', '', '', '2031-01-01'";
      for (const [n, body] of [text, random].entries()) {
        const id = uuidFloor(at + n);
        await db.execute(`insert into ${table} (org_id, id, ${column}${more}) values ($1, $2, $3${values})`, [
          id,
          id,
          body,
        ]);
      }
      const stored = await db.query<{ body: Buffer; how: string | null; is_small: boolean }>(
        `select ${column} as body, pg_column_compression(${column}) as how, pg_column_size(${column}) < 1000 as is_small
           from ${table} order by id`,
      );
      assert.deepEqual(
        stored.map(({ body }) => Buffer.from(body)),
        [text, random],
      );
      assert.deepEqual(
        stored.map(({ how, is_small }) => [how, is_small]),
        [
          ["lz4", true],
          [null, false],
        ],
        table,
      );
    }
    await db.close();
  } finally {
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  }
});
