// What is found in packed texts, beside what the rows of received mail say themselves (list-queries.ts).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { rounds } from "../../../test/support/rounds.ts";
import { LAST_ID } from "../../platform/database/page.ts";
import { totalOf } from "../../platform/database/totals.ts";
import { firstOpenDay } from "../../platform/packed/packed-days.ts";
import { uuidFloor } from "../../platform/random.ts";
import { forgetReceived } from "../blobs/forget.ts";
import { countEmails, type EmailFilter, listEmails, SORTS } from "../read/list-queries.ts";
import { packReceived, unpack } from "./pack.ts";
import { searchReceived } from "./search.ts";

const DAY_MS = 86_400_000;
let api: TestApi;
let now_ms = 0;
let today = 0;

before(async () => {
  api = await testApi();
  now_ms = api.world.clock.now();
  today = Date.parse(firstOpenDay(now_ms).day);
  for (const [ago, mails] of [
    [0, 100],
    [1, 300],
    [2, 20],
    [3, 700],
  ] as const) {
    const day = new Date(today - ago * DAY_MS).toISOString().slice(0, 10);
    await api.world.db.execute(`call make_day_partitions('${day}', '${day}')`);
    await fillDay(today - ago * DAY_MS, mails);
  }
  await packReceived(api.world);
});
after(() => api.close());

async function fillDay(startMs: number, mails: number): Promise<void> {
  await api.world.db.execute(
    `insert into inbound_email (org_id, id, raw_id, environment, kind, route, recipient, envelope_from, status, received_at, processed_at,
       message_id, from_address, subject, size, has_attachments, spam_score, alias_id)
     select $1, id, id, 'live', case when n % 9 = 0 then 'masked' else 'alias' end, '{}', 'Support' || n % 4 || '@shop.example',
            case when n % 6 = 0 then '' else 'Bounce' || n || '@mail.example' end, case when n % 18 = 0 then 'quarantined' else 'delivered' end,
            to_timestamp($2 / 1000.0 + n), to_timestamp($2 / 1000.0 + n), '<' || n || '@mail.example>',
            case when n % 10 > 0 then 'Żona' || n % 5 || '@mail.example' end,
            case n % 3 when 0 then 'A question about order ' || n when 1 then 'order' || chr(31) || 'order' end, n, n % 2 = 0, n % 7,
            case when n % 5 = 0 then '01000000-0000-7000-8000-000000000001'::uuid end
       from generate_series(1, $3) n, lateral (
         select (lpad(to_hex($2::bigint + n * 1000), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid as id) i`,
    [api.org_id, startMs, mails],
  );
}

const FILTERS: EmailFilter[] = [
  {},
  ...["order", "question about ORDER 7", "nobody", "\u001f"].map((subject) => ({ subject })),
  ...["żona3", "mail.example", "@"].map((from) => ({ from })),
  ...["support2", "SHOP"].map((to) => ({ to })),
  ...["bounce7@", "mail"].map((envelope_sender) => ({ envelope_sender })),
  ...["order", "support1", "<12@", "mail.example a question", "nobody-at-all"].map((q) => ({ q })),
  { q: "order", from: "żona1", has_attachments: true },
  { subject: "order", status: "quarantined" },
  { to: "support", envelope_sender: "bounce1" },
  { environment: "test" },
  ...[true, false].map((has_attachments) => ({ has_attachments })),
  { environment: "live", has_attachments: true },
  { alias_id: "01000000-0000-7000-8000-000000000001" },
];

const FEW_FILTERS: EmailFilter[] = [{}, { subject: "order" }, { q: "order", has_attachments: true }];

/** The whole list, and moments within days that are packed and that are not. */
function bounds(): EmailFilter[] {
  const at = (ago: number, seconds = 0) => today - ago * DAY_MS + seconds * 1000;
  const within = (from: number, to: number) => ({
    ...{ id_from: uuidFloor(from), received_from: new Date(from) },
    ...{ id_to: uuidFloor(to + DAY_MS), received_to: new Date(to) },
  });
  return [{}, within(at(3, 50), at(1, 60)), within(at(3), at(2))];
}

/** One of so many combinations of a time, a filter and a direction. */
const every = rounds(5, 1);

async function compareAll(filters: readonly EmailFilter[]): Promise<number> {
  return api.world.db.asOrg(api.org_id, async (tx) => {
    let found = 0;
    let turn = 0;
    for (const bound of bounds())
      for (const asked of filters)
        for (const direction of ["asc", "desc"] as const) {
          turn += 1;
          if (turn % every !== 0) continue;
          const filter = { ...asked, ...bound };
          const order = { sort: "received_at", direction } as const;
          const rows = await listEmails(tx, api.org_id, filter, { ...order, limit: 5000, offset: 0, below: LAST_ID });
          const at = Math.floor(rows.length / 2);
          for (const [start, page] of [
            [0, { limit: 50, offset: 0, below: LAST_ID }],
            [at + 1, { limit: 20, offset: 3, below: rows[at]?.id ?? LAST_ID }],
          ] as const) {
            const { rows: emails, total } = await searchReceived(tx, api.org_id, filter, { ...page, ...order, now_ms });
            const name = JSON.stringify({ ...filter, direction });
            assert.deepEqual(emails, rows.slice(start + page.offset, start + page.offset + page.limit), name);
            assert.deepEqual(
              total,
              await totalOf(emails.length, page, () => countEmails(tx, api.org_id, filter)),
              name,
            );
          }
          found += rows.length;
        }
    return found;
  });
}

async function packedDays(): Promise<string[]> {
  const rows = await api.world.db.query<{ day: string }>(
    "select distinct day from inbound_email_texts where org_id = $1 order by day",
    [api.org_id],
  );
  return rows.map(({ day }) => day);
}

const dayOf = (ago: number) => new Date(today - ago * DAY_MS).toISOString().slice(0, 10);

test("what packed texts find is what the rows say, in both directions, for each filter within each time", async () => {
  assert.deepEqual(await packedDays(), [dayOf(3), dayOf(1)]);
  assert.ok((await compareAll(FILTERS)) > 5_000 / every);
});

test("in another order the page comes from the rows, and the total is the same", async () => {
  await api.world.db.asOrg(api.org_id, async (tx) => {
    for (const sort of SORTS) {
      const page = { sort, direction: "desc", limit: 10, offset: 5, below: LAST_ID, now_ms } as const;
      const { rows, total } = await searchReceived(tx, api.org_id, { q: "order" }, page);
      assert.deepEqual(rows, await listEmails(tx, api.org_id, { q: "order" }, page));
      assert.deepEqual(total, await countEmails(tx, api.org_id, { q: "order" }));
    }
  });
});

test("a day of which a mail is deleted holds its text no more, is read from its rows, and is packed again", async () => {
  const { db } = api.world;
  const [mail] = await db.query<{ org_id: string; id: string }>(
    "select org_id, id from inbound_email where org_id = $1 and id >= $2 and status = 'delivered' and kind = 'alias' order by id limit 1",
    [api.org_id, uuidFloor(today - DAY_MS)],
  );
  assert.ok(mail);
  await forgetReceived(api.world, [mail]);
  assert.deepEqual(await packedDays(), [dayOf(3)]);
  await compareAll(FEW_FILTERS);
  await packReceived(api.world);
  assert.deepEqual(await packedDays(), [dayOf(3), dayOf(1)]);
  await compareAll(FEW_FILTERS);
});

test("a day of which a mail is processed again is packed once that is over", async () => {
  const { db } = api.world;
  const id = (
    await db.query<{ id: string }>("select id from inbound_email where org_id = $1 order by id limit 1", [api.org_id])
  )[0]?.id;
  assert.ok(id);
  const mail = { org_id: api.org_id, id };
  await db.transaction((tx) => unpack(tx, [mail]));
  await db.execute(
    "insert into inbound_queue (org_id, id, raw_id, next_attempt_at) values ($1, $2, $2, now() + interval '1 day')",
    [api.org_id, id],
  );
  await packReceived(api.world);
  assert.deepEqual(await packedDays(), [dayOf(1)]);
  await db.execute("delete from inbound_queue where org_id = $1", [api.org_id]);
  await packReceived(api.world);
  assert.deepEqual(await packedDays(), [dayOf(3), dayOf(1)]);
});
