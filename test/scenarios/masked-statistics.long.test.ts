// What PostgreSQL itself remembers of masked mail: samples of columns for its planner, which stay after the rows are gone, and
// what the events of such mail say of servers.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { C, D, IP_D, startMaskedStage } from "../support/masked-stage.ts";
import { until } from "../support/until.ts";

const s = await startMaskedStage();
after(() => s.close());

const SECRET = /anna\.real|shop\.keeper|home\.example|contact\.example/i;

/** Names of domains alone: reports on TLS are about all mail to a domain; ids that a message has while it waits. */
const NAMES_NOBODY = /^(?:tls_|message(?:_\d+)+\.message_id$)/;

type Sample = { at: string; sample: string };

/** All samples that the planner has, as text; those of a cell are where Citus keeps it. */
async function samples(): Promise<Sample[]> {
  const { db, distributed } = s.api.world;
  const [{ schema = "" } = {}] = await db.query<{ schema: string }>("select current_schema()::text as schema");
  const read = `select tablename || '.' || attname as at, concat_ws(' ', most_common_vals::text, histogram_bounds::text,
            most_common_elems::text) as sample from pg_stats where schemaname = '${schema}'
     union all select statistics_name, s::text from pg_stats_ext s where schemaname = '${schema}'`;
  if (!distributed) return await db.query<Sample>(read);
  const servers = await db.query<{ result: string }>("select result from run_command_on_workers($1)", [
    `select coalesce(json_agg(s), '[]') from (${read}) as s`,
  ]);
  return servers.flatMap(({ result }) => JSON.parse(result) as Sample[]);
}

async function isSaid(where: string) {
  await s.api.world.db.execute("analyze");
  const all = await samples();
  const sampled = new Set(all.map(({ at }) => at.replace(/(?:_\d+)*\..*$/, "")));
  for (const table of ["masked_activity", "masked_trace", "message", "recipient", "event"])
    assert.ok(sampled.has(table), `${table} has samples: ${[...sampled].join(" ")}`);
  const found = all
    .filter(({ at, sample }) => !NAMES_NOBODY.test(at) && SECRET.test(sample))
    .map(({ at, sample }) => `${at}: ${sample.slice(0, 200)}`);
  assert.deepEqual(found, [], where);
}

test("the planner's samples name neither side, while mail waits and when it is over; nor do its events", async () => {
  const a = await s.alias();
  s.sink.onRcpt(() => ({ code: 450, text: "4.2.0 later" }));
  for (let n = 0; n < 12; n += 1) {
    const head = `From: "Shop Keeper" <${C}>\r\nTo: ${a.full}\r\nMessage-ID: <${n}@contact.example>\r\n`;
    await s.send({ from: C, to: a.full, content: `${head}Subject: x\r\n\r\nhi ${n}\r\n` });
  }
  const { contact } = (await s.api.ask("POST", `/v1/masked/aliases/${a.id}/contacts`, { email: C })).body;
  const r = contact.reply_address;
  for (let n = 0; n < 8; n += 1) {
    await s.send({ from: D, to: r, content: `From: ${D}\r\nTo: ${r}\r\nSubject: y\r\n\r\nyes\r\n`, ip: IP_D });
  }
  await isSaid("while it waits");
  s.sink.onRcpt(() => null);
  // More than once: an attempt that was under way when the server still said "later" defers its delivery afterwards.
  await until("nothing waits", async () => {
    await s.api.world.db.execute("update delivery set due_at = to_timestamp(0) where due_at > to_timestamp(0)");
    const [left] = await s.api.world.db.query<{ n: number }>("select count(*)::int as n from delivery");
    return left?.n === 0;
  });
  await s.arrived(D, 12);
  await s.arrived(C, 8);
  await s.settle();
  await isSaid("when it is over");
  const events = await s.api.world.db.query<{ row: string }>("select e::text as row from event e");
  for (const { row } of events) assert.doesNotMatch(row, SECRET);
});
