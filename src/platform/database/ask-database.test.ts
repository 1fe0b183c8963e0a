// `postern sql`, and that every query of docs/operations.md can be asked with it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import pg from "pg";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import type { World } from "../world.ts";
import { answerJson, answerLines, askDatabase } from "./ask-database.ts";
import type { Tx } from "./db.ts";

const OPERATIONS = join(import.meta.dirname, "../../../docs/operations.md");

let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

const ask = (query: string) => askDatabase(api.world.db, query);

test("a query sees the rows of every organization", async () => {
  const { org_id } = await api.organization();
  const { rows } = await ask("select id from organization");
  assert.deepEqual(rows.flat().sort(), [api.org_id, org_id].sort());
});

test("nothing can be changed with it, and it says so in a sentence", async () => {
  const changes = [
    "update organization set name = 'x'",
    "select 1; update organization set name = 'x'",
    "with u as (update organization set name = 'x' returning 1) select * from u",
    "select 1; commit; update organization set name = 'x'",
    "delete from organization",
    "create table x (a int)",
    "explain select 1",
    "select set_config('postern.x', '1', false), lo_create(0)",
    "",
  ];
  for (const change of changes)
    await assert.rejects(ask(change), /^Error: postern sql only reads, .* \(.+\)\.$/, change);
  const { rows } = await ask("select name from organization where name = 'x'");
  assert.deepEqual(rows, []);
});

test("a query that is wrong is refused in a sentence", async () => {
  const wrong = { "select 1 / 0": "division by zero", "(select": "syntax error at end of input" };
  for (const [query, why] of Object.entries(wrong)) {
    await assert.rejects(ask(query), { message: `PostgreSQL refuses the query: ${why}.` });
  }
});

test("what a query does beside reading is undone", async () => {
  await ask("select set_config('postern.left_behind', 'yes', false)");
  const sessions = await Promise.all([1, 2, 3].map(() => ask("select current_setting('postern.left_behind', true)")));
  for (const { rows } of sessions) assert.notEqual(rows[0]?.[0], "yes");
});

test("PostgreSQL has nothing to warn of", async () => {
  const client = new pg.Client({ connectionString: api.database_url });
  const notices: string[] = [];
  client.on("notice", ({ message }) => notices.push(message ?? ""));
  await client.connect();
  const execute = async (text: string) => (await client.query(text)).rowCount ?? 0;
  const table = async (text: string) => ({ columns: ["n"], rows: (await client.query(text)).rows });
  const transaction: World["db"]["transaction"] = async (work) => {
    await execute("begin");
    const result = await work({ execute, table } as unknown as Tx);
    await execute("commit");
    return result;
  };
  await askDatabase({ transaction }, "select 1 as n");
  await client.end();
  assert.deepEqual(notices, []);
});

test("it stops at ten thousand rows and says so", async () => {
  const whole = await ask("select * from generate_series(1, 10000) as n");
  assert.deepEqual([whole.rows.length, whole.isCut], [10_000, false]);
  const cut = await ask("select * from generate_series(1, 10001) as n");
  assert.deepEqual([cut.rows.length, cut.isCut], [10_000, true]);
  assert.match(answerLines(cut), /\n10000\n\(more than 10000 rows\)$/);
});

test("lines have one row each, whatever other servers have put into it", async () => {
  const answer = await ask(
    `select E'550 no\\r\\n\\t\\x1b[2Jway' as reply, null as nothing, '{"a": 1}'::jsonb as json, true as yes, 2::bigint as n,
            '2026-11-20T10:00:00Z'::timestamptz as at, '\\x00ff'::bytea as bytes`,
  );
  assert.deepEqual(answerLines(answer).split("\n"), [
    "reply\tnothing\tjson\tyes\tn\tat\tbytes",
    '550 no [2Jway\t\t{"a":1}\ttrue\t2\t2026-11-20T10:00:00.000Z\t\\x00ff',
  ]);
  assert.equal(answerLines(await ask("select 1 as n where false")), "n\n(no rows)");
});

test("columns of equal name are all shown, and numbered", async () => {
  const answer = await ask("select null, 'a b', 'l m', 1 as n, 2 as n_2, 3 as n");
  assert.deepEqual(answerLines(answer).split("\n"), [
    "?column?\t?column?_2\t?column?_3\tn\tn_2\tn_3",
    "\ta b\tl m\t1\t2\t3",
  ]);
  const record = { "?column?": null, "?column?_2": "a b", "?column?_3": "l m", n: 1, n_2: 2, n_3: 3 };
  assert.deepEqual(JSON.parse(answerJson(answer)), { rows: [record], is_cut: false });
});

test("every query of docs/operations.md can be asked, and those of blocked addresses find who was refused", async () => {
  const domain = await api.ask("POST", "/v1/domains", { domain: "sender.example", type: "outbound" });
  const id = api.world.random.uuid();
  const at = new Date(api.world.clock.now());
  await api.world.db.execute(
    `insert into message (org_id, id, environment, domain_id, message_id, from_address, from_header, subject, status, size,
                          recipient_count, created_at)
     values ($1, $2, 'live', $3, 'x@sender.example', 'a@sender.example', 'a@sender.example', 'x', 'deferred', 1, 1, $4)`,
    [api.org_id, id, domain.body.id, at],
  );
  await api.world.db.execute(
    `insert into event (org_id, id, message_id, event_type, at, smtp_code, message, class)
     values ($1, $2, $3, 'deferred', $4, '550', '5.7.1 listed', 'blocked')`,
    [api.org_id, api.world.random.uuid(), id, at],
  );
  const text = readFileSync(OPERATIONS, "utf8");
  const queries = [...text.matchAll(/npm run postern -- sql "([^"…]+)"/g)].map(([, query]) => query as string);
  assert.ok(queries.length >= 3, "the queries of the runbooks are found");
  const answers = await Promise.all(queries.map(ask));
  const [replies, senders] = answers.filter((_answer, n) => queries[n]?.includes("'blocked'"));
  assert.deepEqual(replies?.rows, [["550", "5.7.1 listed", 1]]);
  assert.deepEqual(senders?.rows, [[api.org_id, "My organization", "sender.example", 1]]);
});
