// What PgBouncer costs: processor time a message of accepting and of sending, without it, in session and in transaction mode, one after
// the other on one database, and again in the opposite order. Of two runs the cheaper one counts: other work on the machine, and requests
// that happen to share fewer transactions, make a run dearer, never cheaper.
import { join } from "node:path";
import { startEmbeddedPostgres } from "../src/platform/postgres/embedded-postgres.ts";
import { type DnsServer, startDnsServer } from "../test/support/dns-server.ts";
import { hasPgBouncer, type PoolMode, startPgBouncer } from "../test/support/pgbouncer.ts";
import { apiOf, type Posterns, posternSettings, startPostern } from "../test/support/postern-process.ts";
import { addVerifiedDomain } from "../test/support/verified-domain.ts";
import {
  type BenchResult,
  conditions,
  makeFolder,
  round,
  routeToSink,
  throughSink,
  withClient,
} from "./support/bench.ts";
import { postMany, sendBody } from "./support/load.ts";
import { processorSeconds } from "./support/processor.ts";
import { type BenchSink, startBenchSink } from "./support/sink.ts";

export type PoolerOptions = { rows?: number };

type Way = "direct" | PoolMode;
/** Microseconds of processor time a message. */
type Cost = { postern: number; database: number; pooler: number };
type Costs = Record<Way, Cost[]>;

const COUNT = 5_000;
const WARM_UP = 1_500;
const CONNECTIONS = 64;
const WAYS: Way[] = ["direct", "session", "transaction"];
/** As many as a process opens by default, so that none waits for another's. */
const SERVER_CONNECTIONS = 40;
const DOMAIN = "shop.example";

type Place = { database_url: string; postmaster: number; settings: Posterns; sink: BenchSink; dns: DnsServer };

/** Runs the benchmark, `rows` messages each time. */
export async function benchPooler({ rows: count = COUNT }: PoolerOptions = {}): Promise<BenchResult> {
  if (!hasPgBouncer()) throw new Error("pgbouncer is not installed (apt-get install pgbouncer)");
  const { dir, remove } = makeFolder();
  const postgres = await startEmbeddedPostgres({ data_dir: join(dir, "postgres") });
  const [dns, sink] = [await startDnsServer(), await startBenchSink()];
  const settings = await posternSettings(dir, {
    DATABASE_URL: postgres.url,
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
  });
  const place = { database_url: postgres.url, postmaster: postgres.pid, settings, sink, dns };
  try {
    routeToSink(dns, "customer.example");
    const [accept, outbound] = await measureAll(place, count);
    return {
      name: "pooler",
      conditions: conditions({ rows: count, connections: CONNECTIONS, server_connections: SERVER_CONNECTIONS }),
      ours: { ...figuresOf("accept", accept), ...figuresOf("outbound", outbound) },
      peers: {},
      ratio: {},
    };
  } finally {
    sink.stop();
    await dns.stop();
    await postgres.stop();
    remove();
  }
}

async function measureAll(place: Place, count: number): Promise<[Costs, Costs]> {
  const [accept, outbound] = [1, 2].map((): Costs => ({ direct: [], session: [], transaction: [] })) as [Costs, Costs];
  const measureBoth = async (way: Way): Promise<[Cost, Cost]> => {
    const accepting = await measure(place, way, { roles: ["api"], count, run: acceptMany });
    // What was only accepted must not be sent by the next.
    await withClient(place, (client) => client.query("delete from delivery"));
    return [accepting, await measure(place, way, { roles: ["api", "mta", "hooks", "clock"], count, run: sendMany })];
  };
  await measureBoth("direct"); // does not count: the tables are young, and nothing is planned for
  for (const way of [...WAYS, ...WAYS.toReversed()]) {
    const [accepting, sending] = await measureBoth(way);
    accept[way].push(accepting);
    outbound[way].push(sending);
    console.log(`  ${way}: ${JSON.stringify({ accept: accept[way].at(-1), outbound: outbound[way].at(-1) })}`);
  }
  return [accept, outbound];
}

type Work = { roles: string[]; count: number; run(place: Place, count: number): Promise<void> };

/** In a process that is started for it. */
async function measure(place: Place, way: Way, { roles, count, run }: Work): Promise<Cost> {
  const pooler = way === "direct" ? null : await startPgBouncer(place.database_url, SERVER_CONNECTIONS, way);
  const env: Record<string, string> = pooler ? { POSTERN_DATABASE_POOLER: pooler.through(place.database_url) } : {};
  const process = await startPostern(place.settings, roles, env);
  const used = (): Cost => ({
    postern: processorSeconds([process.pid]),
    database: processorSeconds([place.postmaster]),
    pooler: pooler ? processorSeconds([pooler.pid]) : 0,
  });
  try {
    await verifyOnce(place);
    await run(place, Math.min(WARM_UP, count));
    const before = used();
    await run(place, count);
    const after = used();
    const cost = (of: keyof Cost) => round(((after[of] - before[of]) * 1e6) / count);
    return { postern: cost("postern"), database: cost("database"), pooler: cost("pooler") };
  } finally {
    await process.stop();
    await pooler?.stop();
  }
}

async function verifyOnce({ settings, dns }: Place): Promise<void> {
  const api = apiOf(settings);
  const { body } = await api.ask("GET", "/v1/domains");
  if ((body.domains as unknown as unknown[]).length === 0) await addVerifiedDomain(api, dns, DOMAIN);
}

async function acceptMany({ settings }: Place, count: number): Promise<void> {
  const load = await post(settings, count, (n) => `customer${n}@rcpt${n % 20}.example`);
  if (load.accepted !== count) throw new Error(`not all were accepted: ${JSON.stringify([...load.refused])}`);
}

async function sendMany({ settings, sink }: Place, count: number): Promise<void> {
  await throughSink({ sink }, count, () => post(settings, count, (n) => `customer${n}@customer.example`));
}

function post({ base_url, live_key }: Posterns, count: number, recipient: (n: number) => string) {
  return postMany({
    ...{ base_url, path: "/v1/send", key: live_key, count, connections: CONNECTIONS },
    body: (n) => sendBody(`orders@${DOMAIN}`, recipient(n), n),
  });
}

/** The cheaper run of each way; and how many times what it takes without a pooler, all processes together. */
function figuresOf(what: string, costs: Costs): Record<string, number> {
  const total = ({ postern, database, pooler }: Cost) => postern + database + pooler;
  const cheaper = (way: Way) => costs[way].reduce((best, one) => (total(one) < total(best) ? one : best));
  const figures = WAYS.flatMap((way) => [
    ...(["postern", "database", "pooler"] as const).map((of) => [`${what}_${way}_${of}_us`, cheaper(way)[of]]),
    [`${what}_${way}_ratio`, round(total(cheaper(way)) / total(cheaper("direct")), 2)],
  ]);
  return Object.fromEntries(figures.filter(([name]) => !/direct_(?:pooler_us|ratio)$/.test(String(name))));
}
