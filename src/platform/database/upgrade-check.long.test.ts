import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { type TestDatabase, testDatabase } from "../../../test/support/database.ts";
import { type Migration, readMigrations } from "./migrate.ts";
import { checkUpgrade, type UpgradeCheck } from "./upgrade-check.ts";

const made = (number: number, name: string, text: string): Migration => ({
  ...{ number, name, text },
  checksum: createHash("sha256").update(text).digest("hex"),
});

const NEXT = [
  made(9001, "a_table", "create table thing (id uuid primary key, note text)"),
  made(9002, "an_index", "create index on message (subject); create index on suppression (reason)"),
  made(9003, "a_column", "alter table suppression add column remark text; create index on thing (note)"),
  made(9004, "a_type", "alter table suppression alter column remark type varchar(20)"),
  made(
    9005,
    "an_old_column",
    "alter table organization drop column name; alter table thing add column why text not null",
  ),
];

describe("what an upgrade would do", () => {
  let database: TestDatabase;
  let client: pg.Client;
  let found: UpgradeCheck;

  before(async () => {
    database = await testDatabase();
    client = new pg.Client({ connectionString: database.url, options: "-c postern.scope=system" });
    await client.connect();
    found = await checkUpgrade(database.url, [...readMigrations(), ...NEXT]);
  });
  after(async () => {
    await client?.end();
    await database?.drop();
  });

  const of = (number: number) => {
    const open = found.open.find((one) => one.number === number);
    assert.ok(open, `${number}`);
    return {
      ...open,
      effects: open.tables.map(({ table, waits, is_read_whole }) => [table, waits, is_read_whole]),
    };
  };

  it("names what is open, and changes nothing", async () => {
    assert.deepEqual(
      found.open.map(({ name }) => name),
      NEXT.map(({ name }) => name),
    );
    const { rows } = await client.query(
      "select to_regclass('thing') as thing, max(number) as last from schema_migration",
    );
    assert.equal(rows[0].thing, null);
    assert.ok(rows[0].last < 9001);
  });

  it("of a table that it makes nobody waits for anything", () => {
    assert.deepEqual(of(9001).effects, []);
    assert.deepEqual(of(9001).breaks_old, []);
  });

  it("an index keeps writers waiting while its table is read, partitions included", () => {
    assert.deepEqual(of(9002).effects, [
      ["message", "writes", true],
      ["suppression", "writes", true],
    ]);
    assert.ok(of(9002).tables.every(({ bytes }) => bytes > 0));
  });

  it("a column keeps everybody waiting, for a moment", () => {
    assert.deepEqual(of(9003).effects, [
      ["suppression", "reads and writes", false],
      ["thing", "writes", true],
    ]);
    assert.equal(of(9003).about_seconds, 0.1);
  });

  it("says what older processes would miss, and that they may not run on", () => {
    assert.deepEqual(of(9004).breaks_old, ["suppression.remark is character varying(20), and was text"]);
    assert.deepEqual(of(9005).breaks_old, ["organization.name is no more", "thing.why must be given"]);
    assert.equal(found.old_processes_may_run_on, false);
  });

  it("takes longer where more rows are read", async () => {
    await client.query(
      "create table many (id int, text text); insert into many select n, repeat('x', 1000) from generate_series(1, 50000) n",
    );
    const makes = made(9001, "many", "create table if not exists many (id int, text text)");
    await client.query("insert into schema_migration (number, name, checksum) values (9001, 'many', $1)", [
      makes.checksum,
    ]);
    const index = made(9002, "an_index", "create index on many (id)");
    const { open, old_processes_may_run_on } = await checkUpgrade(database.url, [...readMigrations(), makes, index]);
    assert.equal(open.length, 1);
    assert.ok(Number(open[0]?.about_seconds) > 1, JSON.stringify(open));
    assert.equal(old_processes_may_run_on, true);
    await assert.rejects(checkUpgrade(database.url), /migration 9001 \(many\): a newer Postern has run on it/);
    const other = made(9001, "many", "create table many (id bigint)");
    await assert.rejects(
      checkUpgrade(database.url, [...readMigrations(), other]),
      /was changed after it had been applied/,
    );
  });

  it("no migration that is there now would stop processes of the one before it", async () => {
    const empty = await testDatabase();
    const other = new pg.Client({ connectionString: empty.url, options: "-c postern.scope=system" });
    await other.connect();
    await other.query("truncate schema_migration");
    const all = await checkUpgrade(empty.url);
    await other.end();
    await empty.drop();
    const breaking = all.open
      .filter(({ breaks_old }) => breaks_old.length > 0)
      .map(({ number, breaks_old }) => ({ number, breaks_old }));
    assert.deepEqual(breaking, []);
  });
});
