// What a deep queue costs: claims of 200 due rows at 1,000,000 queued rows and 10,000 lanes, and the rate from request to
// sink with that queue behind it (rows in slots that the process does not own), beside the rate of the same processes with an
// empty one: empty, deep, deep, empty, so that what changes with time by itself falls on both.
import type { Client } from "pg";
import { claimDue, dueLanes } from "../src/outbound/queries.ts";
import { openDb } from "../src/platform/database/db.ts";
import { run } from "./outbound.ts";
import {
  type BenchResult,
  comparison,
  conditions,
  mean,
  round,
  routeToSink,
  type Stage,
  setStage,
  withClient,
} from "./support/bench.ts";
import { percentile } from "./support/load.ts";

const ROWS = 1_000_000;
const LANES = 10_000;
const CLAIMS = 200;
const BATCH = 200;
const COUNT = 10_000;
const SOURCE = "00000000-0000-7000-8000-000000000001";

/** Runs the benchmark. */
export async function benchClaims(): Promise<BenchResult> {
  const stage = await setStage();
  routeToSink(stage.dns, "customer.example");
  try {
    await run(stage, 3_000);
    const empty = [await run(stage, COUNT)];
    console.log(`  preloading ${ROWS} rows in ${LANES} lanes`);
    const claim_ms = await preload(stage);
    const deep = [await run(stage, COUNT), await run(stage, COUNT)];
    await clear(stage);
    empty.push(await run(stage, COUNT));
    return {
      name: "claims",
      conditions: conditions({ rows: ROWS, lanes: LANES, claim_batch: BATCH, count: COUNT }, stage),
      ours: {
        claim_p50_ms: round(percentile(claim_ms, 50), 1),
        claim_p99_ms: round(percentile(claim_ms, 99), 1),
        ...comparison({ empty, deep }),
        deep_share: round(mean(deep) / mean(empty), 2),
      },
      peers: {},
      ratio: {},
    };
  } finally {
    await stage.close();
  }
}

/** Due rows in slots that no process holds, claimed here as a node would; the times of the claims in ms. */
async function preload(stage: Stage): Promise<number[]> {
  await withClient(stage, insertRows);
  return measureClaims(stage);
}

async function clear(stage: Stage): Promise<void> {
  await withClient(stage, async (client) => {
    await client.query("delete from delivery using lane l where l.id = lane_id and l.slot >= 100");
    await client.query("delete from lane where slot >= 100");
    await client.query("vacuum analyze delivery, lane");
  });
}

async function insertRows(client: Client): Promise<void> {
  const { rows } = await client.query("select id from organization limit 1");
  const org = rows[0].id;
  await client.query(
    `insert into lane (org_id, source_id, slot, domain, class, next_at, touched_at)
     select $1, $2, 100 + n % 16, 'deep' || n || '.example', 0, now() - interval '1 minute', now()
       from generate_series(1, $3) as n`,
    [org, SOURCE, LANES],
  );
  await client.query(
    `insert into delivery (org_id, message_id, position, lane_id, email, due_at, created_at, expires_at, return_path_host)
     select $1, gen_random_uuid(), 0, l.id, 'someone@' || l.domain, now() - interval '1 minute', now(),
            now() + interval '3 days', 'bounces.postern.example'
       from (select id, domain from lane where slot >= 100) l, generate_series(1, $2) as n`,
    [org, ROWS / LANES],
  );
  await client.query("analyze delivery");
  await client.query("analyze lane");
}

async function measureClaims(stage: Stage): Promise<number[]> {
  const db = openDb(stage.database_url, { onError: () => undefined });
  const times: number[] = [];
  let claimed = 0;
  for (let n = 0; n < CLAIMS; n += 1) {
    const slots = [{ source_id: SOURCE, slot: 100 + (n % 16) }];
    const at = performance.now();
    const lanes = await dueLanes(db, slots, { busy: [], now: new Date(), limit: BATCH });
    const rows = await claimDue(
      db,
      999_999_999,
      lanes.map(({ id }) => ({ id, k: 1 })),
      { now: new Date(), mark: null },
    );
    times.push(performance.now() - at);
    claimed += rows.length;
  }
  await db.close();
  if (claimed !== CLAIMS * BATCH) throw new Error(`${claimed} rows were claimed, not ${CLAIMS * BATCH}`);
  return times;
}
