import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { until } from "../../../test/support/until.ts";
import { indexPastDays } from "./day-indexes.ts";
import { makePartitions } from "./partitions.ts";

const DAY_MS = 86_400_000;
let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

const dayName = (ms: number): string => new Date(ms).toISOString().slice(0, 10).replaceAll("-", "");

async function indexesOf(leaf: string): Promise<string[]> {
  const rows = await api.world.db.query<{ name: string }>(
    `select indexrelid::regclass::text as name from pg_index where indrelid = to_regclass($1) and indisvalid order by 1`,
    [leaf],
  );
  return rows.map(({ name }) => name);
}

test("days that are over get their indexes, today and the days to come do not, and doing it again changes nothing", async () => {
  const now = api.world.clock.now();
  await makePartitions(api.world.db, now - 20 * DAY_MS);
  await indexPastDays(api.world);
  for (const past of [-1, -20]) {
    const leaf = `message_${dayName(now + past * DAY_MS)}`;
    const names = await indexesOf(leaf);
    assert.ok(names.includes(`${leaf}_by_status_shown`), leaf);
  }
  const received = `inbound_email_${dayName(now - DAY_MS)}`;
  for (const suffix of ["by_status", "by_processed", "by_author", "by_recipient", "by_subject", "by_size"])
    assert.ok((await indexesOf(received)).includes(`${received}_${suffix}`), suffix);
  const today = await indexesOf(`message_${dayName(now)}`);
  assert.ok(!today.some((name) => name.includes("_by_status")), today.join(", "));
  await indexPastDays(api.world);
});

test("of several processes that begin at once one builds, and none fails", async () => {
  const leaf = `inbound_email_${dayName(api.world.clock.now() - DAY_MS)}`;
  const built = await indexesOf(leaf);
  for (const name of built.filter((one) => one.includes("_by_"))) await api.world.db.execute(`drop index "${name}"`);
  await Promise.all([1, 2, 3, 4].map(() => indexPastDays(api.world)));
  await indexPastDays(api.world);
  assert.deepEqual(await indexesOf(leaf), built);
});

test("the index of an older version goes once its successor is there", async () => {
  const leaf = `message_${dayName(api.world.clock.now() - DAY_MS)}`;
  await api.world.db.execute(`drop index if exists "${leaf}_by_status_shown"`);
  for (const old of ["status", "domain_id"])
    await api.world.db.execute(`create index "${leaf}_by_${old.replace("_id", "")}" on "${leaf}" (org_id, ${old}, id)`);
  await indexPastDays(api.world);
  const names = (await indexesOf(leaf)).filter((name) => /_by_(?:status|domain)/.test(name));
  assert.deepEqual(names, [`${leaf}_by_status_shown`]);
});

test("a day that was never analysed is measured by its size", async () => {
  const { db } = api.world;
  const leaf = `message_${dayName(api.world.clock.now() - 3 * DAY_MS)}`;
  await makePartitions(db, api.world.clock.now() - 3 * DAY_MS);
  const [unknown] = await db.query<{ reltuples: number }>("select reltuples from pg_class where relname = $1", [leaf]);
  assert.equal(unknown?.reltuples, -1);
  // More bytes than any five million rows would need need not be there for the test: a table says what size it has.
  const big: typeof db.query = (text, values) =>
    db.query(
      text.replace("pg_relation_size(c.oid)", `(case when c.relname = '${leaf}' then 600000000 else 0 end)`),
      values,
    );
  await indexPastDays({ ...api.world, db: { ...db, query: big } });
  assert.ok(!(await indexesOf(leaf)).includes(`${leaf}_by_status_shown`), "it may be far too large");
  await indexPastDays(api.world);
  assert.ok((await indexesOf(leaf)).includes(`${leaf}_by_status_shown`));
});

test("an index that a process left half built is built again", async () => {
  const leaf = `message_${dayName(api.world.clock.now() - DAY_MS)}`;
  await indexPastDays(api.world);
  await api.world.db.execute(`drop index "${leaf}_by_status_shown"`);
  const row = `insert into message (org_id, id, environment, domain_id, message_id, from_address, from_header, subject, status, size,
      recipient_count, created_at)
    select $1, uuid_floor(now() - interval '1 day'), 'live', $1, 'm', 'a@b.example', 'a@b.example', 's', 'delivered', 1, 1, now()`;
  await api.world.db.execute(row, [api.org_id]);
  // Two of the same make a unique index fail half way, as an end of the process does.
  const other = await api.organization();
  await api.world.db.execute(row, [other.org_id]);
  await assert.rejects(
    api.world.db.execute(`create unique index concurrently "${leaf}_by_status_shown" on "${leaf}" (status)`),
    /could not create unique index/,
  );
  assert.ok(!(await indexesOf(leaf)).includes(`${leaf}_by_status_shown`));
  await indexPastDays(api.world);
  assert.ok((await indexesOf(leaf)).includes(`${leaf}_by_status_shown`));
  await api.world.db.execute("delete from message where org_id = any($1)", [[api.org_id, other.org_id]]);
});

test("an index that another process is building is left to it", async () => {
  const { db } = api.world;
  const leaf = `message_${dayName(api.world.clock.now() - DAY_MS)}`;
  await indexPastDays(api.world);
  await db.execute(`drop index "${leaf}_by_status_shown"`);
  const oid = async () =>
    (await db.query<{ oid: string | null }>("select to_regclass($1)::oid::text as oid", [`${leaf}_by_status_shown`]))[0]
      ?.oid;
  let other: Promise<unknown> = Promise.resolve();
  // Who writes to the day holds up the building of its indexes.
  const begun = await db.transaction(async (tx) => {
    await tx.execute(`lock table "${leaf}" in row exclusive mode`);
    other = db.execute(`create index concurrently "${leaf}_by_status_shown" on "${leaf}" (org_id, status, id)`);
    await until("it is begun", async () => (await oid()) !== null);
    await indexPastDays(api.world);
    return oid();
  });
  await other;
  assert.equal(await oid(), begun);
  assert.ok((await indexesOf(leaf)).includes(`${leaf}_by_status_shown`));
});
