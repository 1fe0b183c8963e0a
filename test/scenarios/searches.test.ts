// Lists of mail are searched over the API in what the clock role has packed, on every kind of database (cells.long.test.ts plays
// this on Citus). What is found by which filter: src/sending/search/search.test.ts, src/inbound/search/search.test.ts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { packReceived, unpack } from "../../src/inbound/search/pack.ts";
import { firstOpenDay } from "../../src/platform/packed/packed-days.ts";
import { uuidFloor } from "../../src/platform/random.ts";
import { packPastDays } from "../../src/sending/search/pack.ts";
import { type TestApi, testApi } from "../support/api.ts";

const DAY_MS = 86_400_000;
const MAILS = 250;

let api: TestApi;
let ids: string[] = [];

before(async () => {
  api = await testApi();
  const { db, clock } = api.world;
  const yesterdayMs = Date.parse(firstOpenDay(clock.now()).day) - DAY_MS;
  const day = new Date(yesterdayMs).toISOString().slice(0, 10);
  await db.execute(`call make_day_partitions('${day}', '${day}')`);
  await fill(Array.from({ length: MAILS }, (_, n) => uuidFloor(yesterdayMs + n * 60_000)));
  await packPastDays(api.world);
  await packReceived(api.world);
});
after(() => api.close());

/** Sent and received mails with these ids. */
async function fill(these: string[]): Promise<void> {
  const { db } = api.world;
  ids = [...ids, ...these];
  const rows = (row: (id: string, n: number) => string) =>
    these.map((id, n) => `('${api.org_id}', ${row(id, n)})`).join(", ");
  await db.execute(
    `insert into message (org_id, id, environment, domain_id, message_id, from_address, from_header, subject, tags, status, size,
       recipient_count, origin, created_at)
     values ${rows((id, n) => `'${id}', 'live', '${id}', '${n}@s.example', 'a@b.example', 'a@b.example', 'Order ${n}', '["shop"]', 'delivered', 1, 1, 'api', now()`)}`,
  );
  await db.execute(
    `insert into recipient (org_id, message_id, position, email, kind, status)
     values ${rows((id, n) => `'${id}', 0, 'c${n}@gmail.example', 'to', 'delivered'`)}`,
  );
  await db.execute(
    `insert into inbound_email (org_id, id, raw_id, environment, kind, route, recipient, envelope_from, status, received_at, size,
       subject, from_address, processed_at)
     values ${rows((id, n) => `'${id}', '${id}', 'live', 'alias', '{}', 'a@in.example', 'c@s.example', 'delivered', now(), 1, 'Answer ${n}', 'c@s.example', now()`)}`,
  );
}

async function totalOf(path: string): Promise<number> {
  const { status, body } = await api.ask("GET", path);
  assert.equal(status, 200, JSON.stringify(body));
  return body.total;
}

test("a part of a text and a tag are found in days that are packed", async () => {
  const packed = await api.world.db.query(
    "select (select sum(rows_in_it) from message_texts)::int as sent, (select sum(rows_in_it) from inbound_email_texts)::int as received",
  );
  assert.deepEqual(packed, [{ sent: MAILS, received: MAILS }]);
  const found = [
    ["/v1/emails", MAILS],
    ["/v1/emails?subject=order%207", 11],
    ["/v1/emails?to=c7%40", 1],
    ["/v1/emails?tag=shop", MAILS],
    ["/v1/emails?tag=shop&status=bounced", 0],
    ["/v1/inbound-emails?subject=answer%207", 11],
    ["/v1/inbound-emails?q=nobody", 0],
  ] as const;
  for (const [path, total] of found) assert.equal(await totalOf(path), total, path);
});

test("a day that is unpacked is read from its rows, and packed again", async () => {
  const [id = ""] = ids;
  await api.world.db.transaction((tx) => unpack(tx, [{ org_id: api.org_id, id }]));
  const packed = () => api.world.db.query<{ n: number }>("select count(*)::int as n from inbound_email_texts");
  assert.deepEqual(await packed(), [{ n: 0 }]);
  assert.equal(await totalOf("/v1/inbound-emails?subject=answer%207"), 11);
  await packReceived(api.world);
  assert.deepEqual(await packed(), [{ n: 1 }]);
});

test("what a clock that was ahead has packed of today hides no mail that comes later, and goes", async () => {
  const { world } = api;
  const now = world.clock.now();
  const later = { ...world, clock: { ...world.clock, now: () => now + 2 * DAY_MS } };
  const todayMs = Date.parse(firstOpenDay(now).day);
  await fill(Array.from({ length: MAILS }, (_, n) => uuidFloor(todayMs + n)));
  await packPastDays(later);
  await packReceived(later);
  await fill([uuidFloor(todayMs + MAILS)]);
  const totals = async () => [
    await totalOf("/v1/emails"),
    await totalOf("/v1/emails?tag=shop"),
    await totalOf("/v1/inbound-emails?subject=answer"),
  ];
  assert.deepEqual(await totals(), Array(3).fill(2 * MAILS + 1));
  await packPastDays(world);
  await packReceived(world);
  const [packed] = await world.db.query(
    "select (select sum(rows_in_it) from message_texts)::int as sent, (select sum(rows_in_it) from inbound_email_texts)::int as received",
  );
  assert.deepEqual(packed, { sent: MAILS, received: MAILS });
  assert.deepEqual(await totals(), Array(3).fill(2 * MAILS + 1));
});
