import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { dropExpiredPartitions, makePartitions, withPartitions } from "./partitions.ts";
import { uuidFloor } from "./random.ts";

const DAY_MS = 86_400_000;
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
