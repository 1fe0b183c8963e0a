// What a message costs when there is more of everything: rows in the queue, organizations, domains, processes, nodes. And
// what Postern itself takes: seconds to start, memory at rest and after a load. Each figure is of a run of its own with the
// same load, so they are compared with each other, not with those of other benches.
import { join } from "node:path";
import { posternSettings, startPostern } from "../test/support/postern-process.ts";
import { residentMib } from "../test/support/resident.ts";
import {
  type BenchResult,
  conditions,
  costOf,
  makeFolder,
  mean,
  round,
  routeToSink,
  type Stage,
  setStage,
  throughSink,
  withClient,
} from "./support/bench.ts";
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
    conditions: conditions({ rows: depths.at(-1), count, depths, organizations, domains, connections: CONNECTIONS }),
    ours,
    peers: {},
    ratio: {},
  };
}

// --- start and memory -------------------------------------------------------------------------------------------------

/** From the command to "ready": with nothing there (its database is made), and again with all there, as bin/postern does. */
async function benchStart(count: number): Promise<Figures> {
  const { dir, remove } = makeFolder();
  const settings = await posternSettings(dir, { NODE_COMPILE_CACHE: join(dir, "compiled") });
  const start = async (): Promise<number> => {
    const startedAt = performance.now();
    const running = await startPostern(settings);
    const seconds = (performance.now() - startedAt) / 1000;
    await running.stop();
    return round(seconds, 2);
  };
  const seconds = { cold_start_s: await start(), warm_start_s: await start() };
  remove();
  return { ...seconds, ...(await benchMemory(count)) };
}

async function benchMemory(count: number): Promise<Figures> {
  return onStage(LAYOUTS.one_process as string[][], async (stage) => {
    const at_rest = memoryMib(stage);
    await send(stage, count, [ownSender(stage)]);
    return { memory_at_rest_mib: at_rest, memory_after_load_mib: memoryMib(stage) };
  });
}

/** The memory of Postern's own processes, without the database, in MiB. */
function memoryMib({ processes }: Stage): number {
  return round(processes.reduce((sum, { pid }) => sum + (residentMib(pid) ?? 0), 0));
}

// --- queue depth ------------------------------------------------------------------------------------------------------

/**
 * Behind destinations that do not answer: their lanes are parked, in slots that the process holds. Up to the deepest and down
 * again, the means of the two runs at each depth, so that what changes with time by itself falls on all alike.
 */
async function benchDepths(count: number, depths: number[]): Promise<Figures> {
  const runs = new Map<number, Figures[]>([0, ...depths].map((depth) => [depth, []]));
  await onStage([ALL], async (stage) => {
    const measure = async (depth: number) => runs.get(depth)?.push(await send(stage, count, [ownSender(stage)]));
    await measure(0);
    for (const [n, depth] of depths.entries()) {
      console.log(`  preloading to ${depth} queued rows`);
      await preload(stage, depth - (depths[n - 1] ?? 0), hostOf(depth));
      await measure(depth);
    }
    for (const [n, depth] of depths.entries().toArray().reverse()) {
      await measure(depth);
      await unload(stage, hostOf(depth));
      if (n === 0) await measure(0);
    }
  });
  return Object.assign({}, ...[...runs].map(([depth, each]) => named(`queue_${depth}`, meansOf(each))));
}

function meansOf(runs: Figures[]): Figures {
  const names = Object.keys(runs[0] ?? {});
  return Object.fromEntries(names.map((name) => [name, round(mean(runs.map((run) => run[name] as number)))]));
}

/** By the name of their return path the rows of one step are known. */
function hostOf(depth: number): string {
  return `bounces${depth}.postern.example`;
}

async function preload(stage: Stage, rows: number, host: string): Promise<void> {
  await withClient(stage, async (client) => {
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
              now() + interval '3 days', $4
         from (select id, domain from lane where domain like '%.' || $3) l, generate_series(1, $2) as n`,
      [org_id, Math.round(rows / LANES), DEAD, host],
    );
    await client.query("vacuum analyze delivery, lane");
  });
}

async function unload(stage: Stage, host: string): Promise<void> {
  await withClient(stage, async (client) => {
    await client.query("delete from delivery where return_path_host = $1", [host]);
    await client.query("vacuum analyze delivery, lane");
  });
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
      const memory_mib = memoryMib(stage);
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
  const senderOf = (n: number): Sender => senders[n % senders.length] as Sender;
  const load = () =>
    postMany({
      base_url: stage.base_urls,
      path: "/v1/send",
      key: (n) => senderOf(n).key,
      count,
      connections: CONNECTIONS,
      body: (n) => sendBody(senderOf(n).from, `customer${n}@${RECIPIENTS}`, n),
    });
  const [perS, cost] = await costOf(stage, count, () => throughSink(stage, count, load));
  return { per_s: round(perS), ...cost };
}

function named(name: string, figures: Figures): Figures {
  return Object.fromEntries(Object.entries(figures).map(([figure, value]) => [`${name}_${figure}`, value]));
}
