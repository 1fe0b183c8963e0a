// What the statistics cost at `events` recorded events of one domain over 90 days: each answer at its longest period, with
// counters as the writers leave them (nothing merged) and after merging; what counting adds to recording; and the same
// sums taken by a scan of the event log, once. The past is filled in by SQL; what is measured is the product's own code.
import { bootstrap } from "../src/accounts/accounts.ts";
import { createHttpServer, type HttpServer } from "../src/api/server.ts";
import { createEngine, mountFeatures } from "../src/app.ts";
import { readConfig } from "../src/config.ts";
import { type MailEvent, recordEvents } from "../src/events/events.ts";
import type { Db } from "../src/platform/database/db.ts";
import { createLog } from "../src/platform/process/log.ts";
import { uuidFloor } from "../src/platform/random.ts";
import type { World } from "../src/platform/world.ts";
import { sweepStats } from "../src/stats/background.ts";
import { countEvents } from "../src/stats/stats.ts";
import { type Opened, openWorld } from "../src/world.ts";
import { type BenchResult, conditions, fillIn, makeFolder, round } from "./support/bench.ts";
import { percentile } from "./support/load.ts";

const DAYS = 90;
const DAY_MS = 86_400_000;
/** As the delivery engine commits outcomes. */
const ENGINE_BATCH = 250;
const WRITERS = 2;
const RECORDED = 25_000;
const ASKS = 100;
const COUNTS = 200;
const SWEEPS = 5;
const ISPS = [
  "google",
  "microsoft",
  "yahoo",
  "apple",
  "gmx",
  "tonline",
  "orange",
  "proton",
  "fastmail",
  "zoho",
  "other",
];
const REASONS = ["5.1.1", "5.1.2", "5.2.1", "5.2.2", "5.7.1", "5.7.26", "5.4.4", "5.3.4"];
const ANSWERS = {
  summary: `stats?days=${DAYS}`,
  daily: `stats/daily?days=${DAYS}`,
  hourly: "stats/hourly?hours=336",
  isp: `stats/isp?days=${DAYS}`,
};

type Subject = { world: World; server: HttpServer; key: string; org_id: string; domain_id: string };

/** Fills the events in (some 20 µs each), then measures. Milliseconds. */
export async function benchStats({ events }: { events: number } = { events: 10_000_000 }): Promise<BenchResult> {
  const { dir, remove } = makeFolder();
  const config = readConfig({ POSTERN_DATA: dir, POSTERN_RETENTION_EVENT_DAYS: "100" });
  const opened = await openWorld(config, createLog({ level: "silent", role: "bench" }));
  try {
    const subject = await prepare(opened);
    console.log(`  filling in ${events} events`);
    const fillSeconds = await fillIn(opened.database_url, (db) => fill(db, subject, events));
    await checkTotals(subject, events);
    const ours = {
      fill_seconds: round(fillSeconds),
      ...(await measureAnswers(subject, "unmerged")),
      recorded_per_s: round(await measureRecording(subject)),
      ...(await measureCounting(subject)),
    };
    for (let sweep = 0; sweep < SWEEPS; sweep += 1) await sweepStats(subject.world);
    const merged = await measureAnswers(subject, "merged");
    const scan = { scan_of_events_ms: round(await scanEvents(subject)) };
    await subject.server.stop();
    const about = conditions({ rows: events, days: DAYS, providers: ISPS.length, asks: ASKS });
    return { name: "stats", conditions: about, ours: { ...ours, ...merged, ...scan }, peers: {}, ratio: {} };
  } finally {
    await opened.close();
    remove();
  }
}

async function prepare({ world, database_url }: Opened): Promise<Subject> {
  const first = await bootstrap(world, { live_key: null, test_key: null });
  if (!first) throw new Error("the database is not empty");
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
  const now = world.clock.now();
  const days = `'${day(now - DAYS * DAY_MS)}', '${day(now + DAY_MS)}'`;
  await fillIn(database_url, (db) => db.query(`call make_day_partitions(${days})`));
  const server = await createHttpServer(world, (api) => mountFeatures(api, world, createEngine(world)));
  const created = await server.app.inject({
    method: "POST",
    url: "/v1/domains",
    headers: { authorization: `Bearer ${first.live_key}` },
    payload: { domain: "shop.example" },
  });
  return { world, server, key: first.live_key, org_id: first.org_id, domain_id: created.json().id };
}

/** A statement a day, some at once. Milliseconds it took. */
async function fill(db: Db, subject: Subject, events: number): Promise<number> {
  const { world } = subject;
  const perDay = Math.floor(events / DAYS);
  const today = Math.floor(world.clock.now() / DAY_MS);
  let next = 0;
  async function writer(): Promise<void> {
    for (let day = next++; day < DAYS; day = next++) {
      const count = day === 0 ? events - perDay * (DAYS - 1) : perDay;
      await db.execute(FILL, [
        subject.org_id,
        subject.domain_id,
        (today - DAYS + 1 + day) * DAY_MS,
        count,
        ISPS,
        REASONS,
      ]);
    }
  }
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: WRITERS }, writer));
  await db.execute("vacuum analyze");
  return (performance.now() - startedAt) / 1000;
}

// The outcomes of one day: events, and the counters as eight sessions of the server leave them. The rules are those of
// stats/counting.ts for first attempts; `checkTotals` holds the product's answer against them.
const COUNTS_OF = (span: string, isp: string) => `
  select $1::uuid, $2::uuid, '${span}', date_trunc('${span}', at, 'UTC') as starts_at, ${isp} as isp, shard, count(*),
         count(*) filter (where event_type = 'delivered'), count(*) filter (where event_type = 'deferred'),
         count(*) filter (where event_type = 'bounced'), count(*) filter (where event_type = 'bounced'), 0, 0, 0
    from made group by 4, 5, 6`;

const FILL = `
  with dice as materialized (
    select n, random() as chance, md5(n::text || $3::text) as hash, $3::bigint + n * 86400000 / $4::bigint as ms
      from generate_series(0, $4::bigint - 1) as n),
  made as materialized (
    select (lpad(to_hex(ms), 12, '0') || '7' || left(hash, 3) || '8' || substr(hash, 4, 15))::uuid as id,
           to_timestamp(ms / 1000.0) as at, 1 + n % 8 as shard, ($5::text[])[1 + n % 11] as isp,
           case when chance < 0.04 then 'bounced' when chance < 0.1 then 'deferred' else 'delivered' end as event_type,
           ($6::text[])[1 + (n / 11) % 8] as reason, n
      from dice),
  logged as (
    insert into event (org_id, id, message_id, event_type, recipient, at, attempt, smtp_code, enhanced_code, message,
                       mx_host, mx_ip, tls, duration_ms, class)
    select $1::uuid, id, id, event_type, 'customer' || n || '@example.com', at, 1,
           case event_type when 'bounced' then '550' when 'deferred' then '450' else '250' end,
           case event_type when 'bounced' then reason when 'deferred' then '4.2.1' else '2.0.0' end,
           'an answer of ordinary length, as servers give it', 'mx.example.com', '192.0.2.1',
           'TLSv1.3 TLS_AES_256_GCM_SHA384', 120, case event_type when 'bounced' then 'invalid_recipient' end
      from made),
  counted as (
    insert into stat ${COUNTS_OF("hour", "''")} union all ${COUNTS_OF("day", "isp")})
  insert into stat_reason
  select $1::uuid, $2::uuid, date_trunc('day', at, 'UTC') as starts_at, isp, 'invalid_recipient', reason, shard, count(*)
    from made where event_type = 'bounced' group by starts_at, isp, reason, shard`;

/** The sums that are filled in are those that the product shows. */
async function checkTotals(subject: Subject, events: number): Promise<void> {
  const { metrics } = await askFor(subject, ANSWERS.summary);
  const parts = metrics.total_delivered + metrics.total_deferred + metrics.total_bounced;
  if (metrics.total_sent !== events || parts !== events) throw new Error(`counted ${metrics.total_sent} of ${events}`);
}

/** What the product itself needs to record outcomes, in batches as the engine's. Events a second. */
async function measureRecording(subject: Subject): Promise<number> {
  const { world } = subject;
  const startedAt = performance.now();
  for (let turn = 0; turn < RECORDED / ENGINE_BATCH; turn += 1) {
    const batch = makeEvents(subject, world.clock.now(), ENGINE_BATCH);
    await world.db.transaction((tx) => recordEvents(tx, world, batch));
  }
  return (RECORDED / (performance.now() - startedAt)) * 1000;
}

/** 90 of 100 delivered at once, 6 deferred, 4 bounced. */
function makeEvents({ world, org_id, domain_id }: Subject, atMs: number, count: number): MailEvent[] {
  const prefix = uuidFloor(atMs).slice(0, 15);
  return Array.from({ length: count }, (_unused, n) => {
    const chance = world.random.float();
    const isBounce = chance < 0.04;
    const id = prefix + world.random.uuid().slice(15, 19) + world.random.uuid().slice(19);
    return {
      org_id,
      id,
      event_type: isBounce ? "bounced" : chance < 0.1 ? "deferred" : "delivered",
      message_id: id,
      recipient: `customer${n}@example.com`,
      at: new Date(atMs),
      attempt: 1,
      smtp_code: isBounce ? "550" : "250",
      enhanced_code: isBounce ? pick(world, REASONS) : "2.0.0",
      message: isBounce ? "no such user here" : "2.0.0 accepted",
      mx_host: "mx.example.com",
      mx_ip: "192.0.2.1",
      source_ip: null,
      tls: "TLSv1.3 TLS_AES_256_GCM_SHA384",
      duration_ms: 120,
      class: isBounce ? "invalid_recipient" : null,
      isp: pick(world, ISPS),
      bounce_type: isBounce ? "hard" : null,
      suppress: false,
      next_attempt_at: null,
      announces: false,
      about: {
        domain_id,
        rfc_message_id: `${id}@shop.example`,
        from_address: "shop@shop.example",
        subject: "s",
        tags: [],
        metadata: {},
        environment: "live",
      },
    };
  });
}

function pick(world: World, words: string[]): string {
  return words[Math.floor(world.random.float() * words.length)] as string;
}

async function measureAnswers(subject: Subject, state: string): Promise<Record<string, number>> {
  const figures: Record<string, number> = {};
  const [rows] = await subject.world.db.query<{ total: number }>("select count(*) as total from stat");
  figures[`rows_${state}`] = rows?.total ?? 0;
  for (const [name, path] of Object.entries(ANSWERS)) {
    await timed(10, () => askFor(subject, path));
    const times = await timed(ASKS, () => askFor(subject, path));
    figures[`${name}_p50_${state}`] = round(percentile(times, 50), 1);
    figures[`${name}_p99_${state}`] = round(percentile(times, 99), 1);
  }
  return figures;
}

async function askFor({ server, key, domain_id }: Subject, path: string) {
  const url = `/v1/domains/${domain_id}/${path}`;
  const answer = await server.app.inject({ url, headers: { authorization: `Bearer ${key}` } });
  if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}`);
  return answer.json();
}

/** What the engine's transactions pay for the counters. */
async function measureCounting(subject: Subject): Promise<Record<string, number>> {
  const { world } = subject;
  const batch = makeEvents(subject, world.clock.now(), ENGINE_BATCH);
  const times: number[] = [];
  for (let turn = 0; turn < COUNTS; turn += 1) {
    await world.db.transaction(async (tx) => {
      const startedAt = performance.now();
      await countEvents(tx, batch);
      times.push(performance.now() - startedAt);
    });
  }
  return { count_250_p50: round(percentile(times, 50), 2), count_250_p99: round(percentile(times, 99), 2) };
}

/** What an answer would cost without counters. */
async function scanEvents({ world, org_id }: Subject): Promise<number> {
  const [ms] = await timed(1, () =>
    world.db.query("select event_type, count(*) from event where org_id = $1 group by event_type", [org_id]),
  );
  return ms ?? 0;
}

async function timed(count: number, work: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let turn = 0; turn < count; turn += 1) {
    const startedAt = performance.now();
    await work();
    times.push(performance.now() - startedAt);
  }
  return times;
}
