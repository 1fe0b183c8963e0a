// What a million scheduled mails cost while they are not due: the rate from request to sink without them and with them,
// a tenth of them in the very lane that the mail takes: without, with, with, without, so that what changes with time by itself
// falls on both. And what a poll of the queue costs then.
import type pg from "pg";
import { run } from "./outbound.ts";
import {
  type BenchResult,
  comparison,
  conditions,
  mean,
  round,
  routeToSink,
  setStage,
  withClient,
} from "./support/bench.ts";

const LANES = 1_000;
/** The lane that the mail takes has one in ten of them. */
const IN_BUSY_LANE = 0.1;
const COUNT = 10_000;
const POLLS = 50;
const DOMAIN = "customer.example";

/** Runs the benchmark with `rows` scheduled mails. */
export async function benchSchedule({ rows }: { rows: number } = { rows: 1_000_000 }): Promise<BenchResult> {
  const stage = await setStage();
  routeToSink(stage.dns, DOMAIN);
  try {
    await run(stage, 3_000);
    const empty = [await run(stage, COUNT)];
    console.log(`  preloading ${rows} rows due tomorrow`);
    const poll = await withClient(stage, async (client) => {
      await preload(client, rows);
      return measurePoll(client);
    });
    const with_scheduled = [await run(stage, COUNT), await run(stage, COUNT)];
    await withClient(stage, clear);
    empty.push(await run(stage, COUNT));
    return {
      name: "schedule",
      conditions: conditions({ rows, lanes: LANES, in_busy_lane: rows * IN_BUSY_LANE, count: COUNT }, stage),
      ours: {
        ...comparison({ empty, with_scheduled }),
        share: round(mean(with_scheduled) / mean(empty), 2),
        poll_ms: round(poll.ms, 2),
        poll_pages: round(poll.pages, 1),
      },
      peers: {},
      ratio: {},
    };
  } finally {
    await stage.close();
  }
}

/** Rows as accepting scheduled mail leaves them, in lanes of the slots that the running process holds. */
async function preload(client: pg.Client, count: number): Promise<void> {
  const { rows } = await client.query("select org_id, source_id from lane where domain = $1", [DOMAIN]);
  const { org_id, source_id } = rows[0];
  await client.query(
    `insert into lane (org_id, source_id, slot, domain, class, next_at, touched_at)
     select $1, $2, n % 16, 'later' || n || '.example', 0, now() + interval '1 day', now() from generate_series(1, $3) n`,
    [org_id, source_id, LANES],
  );
  const insert = (perLane: number, condition: string) =>
    client.query(
      `insert into delivery (org_id, message_id, position, lane_id, email, due_at, created_at, expires_at, return_path_host)
       select $1, gen_random_uuid(), 0, l.id, 'someone@' || l.domain, now() + interval '1 day' + n * interval '1 millisecond',
              now(), now() + interval '4 days', 'bounces.postern.example'
         from lane l, generate_series(1, $2) as n where ${condition}`,
      [org_id, perLane],
    );
  await insert(Math.floor((count * (1 - IN_BUSY_LANE)) / LANES), "l.domain like 'later%'");
  await insert(Math.floor(count * IN_BUSY_LANE), `l.domain = '${DOMAIN}'`);
  await client.query("vacuum analyze delivery");
  await client.query("analyze lane");
}

async function clear(client: pg.Client): Promise<void> {
  await client.query("delete from delivery where due_at > now() + interval '12 hours'");
  await client.query("delete from lane where domain like 'later%'");
  await client.query("vacuum analyze delivery, lane");
}

/** The look for due lanes that every process makes once a second. */
async function measurePoll(client: pg.Client): Promise<{ ms: number; pages: number }> {
  let ms = 0;
  let pages = 0;
  for (let n = 0; n < POLLS; n += 1) {
    const { rows } = await client.query(
      `explain (analyze, buffers, format json)
       select l.id from generate_series(0, 15) as s (slot)
         cross join lateral (select id, next_at from lane
           where source_id = '00000000-0000-7000-8000-000000000001' and slot = s.slot and next_at <= now()
             and (paused_until is null or paused_until <= now()) order by next_at limit 200) l
        order by l.next_at limit 200`,
    );
    const [{ Plan: plan, "Execution Time": time }] = rows[0]["QUERY PLAN"];
    ms += time / POLLS;
    pages += (plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]) / POLLS;
  }
  return { ms, pages };
}
