// What is found in packed texts, beside what the rows of the mail say themselves (list-queries.ts).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { rounds } from "../../../test/support/rounds.ts";
import { LAST_ID } from "../../platform/database/page.ts";
import { totalOf } from "../../platform/database/totals.ts";
import { firstOpenDay } from "../../platform/packed/packed-days.ts";
import { uuidFloor } from "../../platform/random.ts";
import { countEmails, type EmailFilter, listEmails } from "./list-queries.ts";
import { packPastDays } from "./pack.ts";
import { searchEmails } from "./search.ts";

const DAY_MS = 86_400_000;
let api: TestApi;
let now_ms = 0;
let today = 0;

before(async () => {
  api = await testApi();
  now_ms = api.world.clock.now();
  today = Date.parse(firstOpenDay(now_ms).day);
  const { db } = api.world;
  for (const ago of [0, 1, 2, 3, 4]) {
    const day = new Date(today - ago * DAY_MS).toISOString().slice(0, 10);
    await db.execute(`call make_day_partitions('${day}', '${day}')`);
  }
  // Two days that are packed, one of 1,200 e-mails, in three rows; between them one of too few; and today's.
  for (const [ago, mails] of [
    [0, 150],
    [1, 400],
    [2, 30],
    [3, 1200],
  ] as const)
    await fillDay(today - ago * DAY_MS, mails);
  await packPastDays(api.world);
});
after(() => api.close());

async function fillDay(startMs: number, mails: number): Promise<void> {
  const { db } = api.world;
  const id = `(lpad(to_hex($2::bigint + n * 70000), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid`;
  await db.execute(
    `insert into message (org_id, id, environment, domain_id, message_id, from_address, from_header, subject, tags, status, size,
       recipient_count, origin, created_at)
     select $1, ${id}, case when n % 7 = 0 then 'test' else 'live' end, $1, n || '@s.example', 'Shop' || n % 3 || '@s.example',
            case n % 3 when 0 then 'Łódź Shop <Shop0@s.example>' when 1 then 'Shop1@s.example' else 'Other name' end,
            case n % 5 when 0 then 'Your order ' || n when 1 then 'order order ' || n when 2 then 'ŻÓŁW and 100% _of_ \\ it'
              when 3 then 'with ' || chr(30) || 'a line' || chr(31) || 'end' else '' end,
            case n % 4 when 0 then '["order"]' when 1 then '["orders", "order", "a b"]' when 2 then '["Order"]' else '[]' end::jsonb,
            case when n % 11 = 0 then 'bounced' else 'delivered' end, 1, 1, case when n % 13 = 0 then 'masked' else 'api' end,
            to_timestamp($2 / 1000.0)
       from generate_series(1, $3) n`,
    [api.org_id, startMs, mails],
  );
  await db.execute(
    `insert into recipient (org_id, message_id, position, email, kind, status)
     select $1, ${id}, p, case when p = 0 then 'Customer' || n || '@gmail.example' else 'order@copy.example' end, 'to', 'delivered'
       from generate_series(1, $3) n, generate_series(0, n % 2) p`,
    [api.org_id, startMs, mails],
  );
}

const FILTERS: EmailFilter[] = [
  {},
  ...[
    "order",
    "ORDER",
    "żółw",
    "ŻÓŁW",
    "100%",
    "_of_",
    "\\",
    "line",
    "a line\u001fend",
    "\u001e",
    "\u001d",
    "er ",
    "order 7",
  ].map((subject) => ({ subject })),
  ...["shop1@s", "Łódź", "łódź", "example", "nobody", "other NAME", "name\u001fshop"].map((from) => ({ from })),
  ...["customer7@", "copy", "order@copy", "gmail.examplec", "gmail", "nobody", "@"].map((to) => ({ to })),
  ...["order", "Order", "a b", "a", "orders", "none", "\u001f"].map((tag) => ({ tag })),
  { subject: "order", tag: "order" },
  { subject: "order", from: "shop1", to: "copy", tag: "order" },
  { subject: "order", status: "bounced" },
  { to: "customer7", environment: "test" },
  { tag: "order", status: "failed" },
  { tag: "order", message_id: "5@s.example" },
  { status: "bounced" },
  ...["live", "test", "none"].map((environment) => ({ environment })),
  { domain_id: "01000000-0000-7000-8000-000000000001", tag: "order" },
];

/** The whole list, day borders, and moments within days that are packed and that are not. */
function bounds(): Pick<EmailFilter, "id_from" | "id_to">[] {
  const at = (ago: number, hours = 0) => uuidFloor(today - ago * DAY_MS + hours * 3_600_000);
  return [
    {},
    { id_from: at(3), id_to: at(2) },
    { id_from: at(3, 5), id_to: at(1, 2) },
    { id_to: at(3, 1) },
    { id_from: at(1, 3) },
  ];
}

/** One of so many combinations of a time and a filter; no filter always meets the same time. */
const every = rounds(7, 1);

test("what packed texts find is what the rows say: pages, order and totals, for each filter within each time", async () => {
  await api.world.db.asOrg(api.org_id, async (tx) => {
    let found = 0;
    let turn = 0;
    for (const bound of bounds())
      for (const asked of FILTERS) {
        turn += 1;
        if (turn % every !== 0) continue;
        const filter = { ...asked, ...bound };
        const name = JSON.stringify(filter);
        const rows = await listEmails(tx, api.org_id, filter, { limit: 5000, offset: 0, below: LAST_ID });
        const middle = rows[Math.floor(rows.length / 2)]?.id ?? LAST_ID;
        for (const page of [
          { limit: 50, offset: 0, below: LAST_ID },
          { limit: 7, offset: 333, below: LAST_ID },
          { limit: 20, offset: 2, below: middle },
        ]) {
          const { rows: emails, total } = await searchEmails(tx, api.org_id, filter, { ...page, now_ms });
          const expected = rows.filter(({ id }) => id < page.below).slice(page.offset, page.offset + page.limit);
          assert.deepEqual(emails, expected, name);
          const count = () => countEmails(tx, api.org_id, filter);
          assert.deepEqual(total, await totalOf(emails.length, page, count), name);
        }
        found += rows.length;
      }
    assert.ok(found > 10_000 / every, `the filters found ${found}`);
  });
});

test("a day of many e-mails is packed once, one of few is not, and another organization finds nothing in it", async () => {
  const packed = () =>
    api.world.db.query<{ day: string; mails: number; rows: number }>(
      "select day, sum(rows_in_it) as mails, count(*) as rows from message_texts where org_id = $1 group by day order by day",
      [api.org_id],
    );
  const day = (ago: number) => new Date(today - ago * DAY_MS).toISOString().slice(0, 10);
  const expected = [
    { day: day(3), mails: 1200 - Math.floor(1200 / 13), rows: 3 },
    { day: day(1), mails: 400 - Math.floor(400 / 13), rows: 1 },
  ];
  assert.deepEqual(await packed(), expected);
  await packPastDays(api.world);
  assert.deepEqual(await packed(), expected);
  const other = await api.organization();
  await api.world.db.asOrg(other.org_id, async (tx) => {
    const { rows: emails, total } = await searchEmails(
      tx,
      api.org_id,
      { subject: "order" },
      { limit: 50, offset: 0, below: LAST_ID, now_ms },
    );
    assert.deepEqual({ emails, total }, { emails: [], total: { total: 0 } });
  });
});
