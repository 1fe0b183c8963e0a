// What a message costs when there is more of everything: rows in the queue, organizations, domains, processes, nodes. And
// what Postern itself takes: seconds to start, memory at rest and after a load. Each figure is of a run of its own with the
// same load, so they are compared with each other, not with those of other benches.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { posternSettings, startPostern } from "../test/support/postern-process.ts";
import { type BenchResult, conditions, costOf, round, routeToSink, type Stage, setStage } from "./support/bench.ts";
import { postMany, sendBody } from "./support/load.ts";
import { addDomains, addOrganizations, type Sender } from "./support/tenants.ts";

export type GrowthOptions = {
  /** Messages of each run. */
  count?: number;
  /** The deepest queue. */
  rows?: number;
  organizations?: number;
  domains?: number[];
};

const COUNT = 5_000;
const WARM_UP = 2_000;
const CONNECTIONS = 64;
const LANES = 1_000;
const DEEP = [100_000, 1_000_000];
const ORGANIZATIONS = 1_000;
const DOMAINS = [1_000, 10_000];
const RECIPIENTS = "customer.example";
const DEAD = "dead.example";
const ALL = ["api", "mta", "hooks", "clock"];
/** One list of roles a process. */
const LAYOUTS: Record<string, string[][]> = {
  one_process: [ALL],
  two_processes: [["api"], ["mta", "hooks", "clock"]],
  four_processes: [["api"], ["mta", "hooks", "clock"], ["api"], ["mta"]],
  two_nodes: [ALL, ALL],
};

type Figures = Record<string, number>;

/** Runs the benchmark. */
export async function benchGrowth(options: GrowthOptions = {}): Promise<BenchResult> {
  const { count = COUNT, rows, organizations = ORGANIZATIONS, domains = DOMAINS } = options;
  const depths = rows === undefined ? DEEP : [...DEEP.filter((depth) => depth < rows), rows];
  const ours = {
    ...(await benchStart(count)),
    ...(await benchDepths(count, depths)),
    ...(await benchSenders(count, { organizations, domains })),
    ...(await benchLayouts(count)),
  };
  return {
    name: "growth",
    conditions: conditions({ message_bytes: 4096, count, depths, organizations, domains, connections: CONNECTIONS }),
    ours,
    peers: {},
    ratio: {},
  };
}

// --- start and memory -------------------------------------------------------------------------------------------------

/** From the command to "ready": with nothing there (its database is made), and again with all there, as bin/postern does. */
async function benchStart(count: number): Promise<Figures> {
  const dir = mkdtempSync(join(tmpdir(), "postern-growth-"));
  const settings = await posternSettings(dir, { NODE_COMPILE_CACHE: join(dir, "compiled") });
  const start = async (): Promise<number> => {
    const startedAt = performance.now();
    const running = await startPostern(settings);
    const seconds = (performance.now() - startedAt) / 1000;
    await running.stop();
    return round(seconds, 2);
  };
  const seconds = { cold_start_s: await start(), warm_start_s: await start() };
  rmSync(dir, { recursive: true, force: true });
  return { ...seconds, ...(await benchMemory(count)) };
}

async function benchMemory(count: number): Promise<Figures> {
  return onStage(LAYOUTS.one_process as string[][], async (stage) => {
    const at_rest = residentMib(stage);
    await send(stage, count, [ownSender(stage)]);
    return { memory_at_rest_mib: at_rest, memory_after_load_mib: residentMib(stage) };
  });
}

/** Of Postern's own processes, without the database (proc_pid_status(5)); 0 but on Linux. */
function residentMib({ processes }: Stage): number {
  const kib = processes.map(({ pid }) => {
    try {
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? 0);
    } catch {
      return 0;
    }
  });
  return round(kib.reduce((sum, one) => sum + one, 0) / 1024);
}

// --- queue depth ------------------------------------------------------------------------------------------------------

/** Behind destinations that do not answer: their lanes are parked, in slots that the process holds. */
async function benchDepths(count: number, depths: number[]): Promise<Figures> {
  return onStage([ALL], async (stage) => {
    const figures = named("queue_0", await send(stage, count, [ownSender(stage)]));
    let queued = 0;
    for (const depth of depths) {
      console.log(`  preloading to ${depth} queued rows`);
      await preload(stage, depth - queued);
      queued = depth;
      Object.assign(figures, named(`queue_${depth}`, await send(stage, count, [ownSender(stage)])));
    }
    return figures;
  });
}

async function preload(stage: Stage, rows: number): Promise<void> {
  const client = new pg.Client({ connectionString: stage.database_url, options: "-c postern.scope=system" });
  await client.connect();
  const { rows: found } = await client.query("select org_id, source_id from lane where domain = $1", [RECIPIENTS]);
  const { org_id, source_id } = found[0];
  await client.query(
    `insert into lane (org_id, source_id, slot, domain, class, next_at, paused_until, touched_at)
     select $1, $2, n % 16, 'd' || n || '.' || $4, 0, now() + interval '1 day', now() + interval '1 day', now()
       from generate_series(1, $3) as n on conflict do nothing`,
    [org_id, source_id, LANES, DEAD],
  );
  await client.query(
    `insert into delivery (org_id, message_id, position, lane_id, email, due_at, created_at, expires_at, return_path_host)
     select $1, gen_random_uuid(), 0, l.id, 'someone@' || l.domain, now() - interval '1 minute', now(),
            now() + interval '3 days', 'bounces.postern.example'
       from (select id, domain from lane where domain like '%.' || $3) l, generate_series(1, $2) as n`,
    [org_id, Math.round(rows / LANES), DEAD],
  );
  await client.query("analyze delivery");
  await client.query("analyze lane");
  await client.end();
}

// --- senders ----------------------------------------------------------------------------------------------------------

async function benchSenders(count: number, wanted: { organizations: number; domains: number[] }): Promise<Figures> {
  return onStage([ALL], async (stage) => {
    const own = ownSender(stage);
    const figures = named("senders_1", await send(stage, count, [own]));
    const organizations = [own, ...(await addOrganizations(stage, wanted.organizations - 1))];
    Object.assign(figures, named(`organizations_${wanted.organizations}`, await send(stage, count, organizations)));
    const domains = [own];
    for (const size of wanted.domains) {
      domains.push(...(await addDomains(stage, size - domains.length)));
      Object.assign(figures, named(`domains_${size}`, await send(stage, count, domains)));
    }
    return figures;
  });
}

// --- processes --------------------------------------------------------------------------------------------------------

async function benchLayouts(count: number): Promise<Figures> {
  const figures: Figures = {};
  for (const [name, layout] of Object.entries(LAYOUTS)) {
    const cost = await onStage(layout, async (stage) => {
      const memory_mib = residentMib(stage);
      return { ...(await send(stage, count, [ownSender(stage)])), memory_mib };
    });
    Object.assign(figures, named(name, cost));
  }
  return figures;
}

// --- what all share ---------------------------------------------------------------------------------------------------

async function onStage<T>(layout: string[][], work: (stage: Stage) => Promise<T>): Promise<T> {
  const stage = await setStage(layout);
  routeToSink(stage.dns, RECIPIENTS);
  try {
    await send(stage, WARM_UP, [ownSender(stage)]);
    return await work(stage);
  } finally {
    await stage.close();
  }
}

function ownSender({ settings, domain }: Stage): Sender {
  return { key: settings.live_key, from: `orders@${domain}` };
}

/** From the first request to the last final dot, senders in turn; each message must arrive once. */
async function send(stage: Stage, count: number, senders: Sender[]): Promise<Figures> {
  await stage.sink.reset();
  const senderOf = (n: number): Sender => senders[n % senders.length] as Sender;
  const startedAt = performance.now();
  const [seconds, cost] = await costOf(stage, count, async () => {
    const loading = postMany({
      base_url: stage.base_urls,
      path: "/v1/send",
      key: (n) => senderOf(n).key,
      count,
      connections: CONNECTIONS,
      body: (n) => sendBody(senderOf(n).from, `customer${n}@${RECIPIENTS}`, n),
    });
    const [load, endedAt] = await Promise.all([loading, stage.sink.waitFor(count)]);
    if (load.accepted !== count) throw new Error(`not all were accepted: ${JSON.stringify([...load.refused])}`);
    return (endedAt - startedAt) / 1000;
  });
  const { received, unique } = await stage.sink.counts();
  if (received !== unique) throw new Error(`${received - unique} duplicates at the sink`);
  return { per_s: round(count / seconds), ...cost };
}

function named(name: string, figures: Figures): Figures {
  return Object.fromEntries(Object.entries(figures).map(([figure, value]) => [`${name}_${figure}`, value]));
}
