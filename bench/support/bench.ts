// What the benchmarks share: a fresh Postern with a verified domain, a sink, a name server; conditions; the result line.
import { execFileSync } from "node:child_process";
import { generateKeyPairSync, sign } from "node:crypto";
import { appendFileSync, chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { type Db, openDb } from "../../src/platform/database/db.ts";
import { runningEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { freePort } from "../../test/support/free-port.ts";
import {
  apiOf,
  type PosternProcess,
  type Posterns,
  posternSettings,
  startPostern,
} from "../../test/support/postern-process.ts";
import { startSystemPostgres } from "../../test/support/system-postgres.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";
import { type Calls, countCalls } from "./calls.ts";
import { processorSeconds } from "./processor.ts";
import { type BenchSink, startBenchSink } from "./sink.ts";

/** The tree of Postern that is measured: another version with `--against`, else this one. */
const PROGRAM = process.env.POSTERN_BENCH_PROGRAM;
const IS_ALONE = process.env.POSTERN_BENCH_ALONE === "1";
/** Set by `--postgres`, also for the processes that a run of several starts. */
const postgres = (): string | undefined => process.env.POSTERN_BENCH_POSTGRES;
let profile: string | null = null;
let countsCalls = false;

/** Lets all processes of this bench write into this folder what V8 samples in them. Such a run is slower, and no measure. */
export function profileInto(dir: string): void {
  profile = dir;
}

/** Lets this bench count Postern's system calls beside what it measures. Such a run is slower, and no measure of anything else. */
export function countSystemCalls(): void {
  countsCalls = true;
}

function isMeasure(): boolean {
  return profile === null && !countsCalls && postgres() === undefined;
}

/** Beside another version, and in a run that is no measure, no peer is measured. */
export function isAlone(): boolean {
  return IS_ALONE || !isMeasure();
}

/** Makes the database with this machine's PostgreSQL, which Postern then starts in place of the one in its packages. */
async function makeByInstalled(dir: string): Promise<void> {
  const server = await startSystemPostgres(join(dir, "postgres"));
  if (server === null) throw new Error("this machine has no PostgreSQL: apt-get install postgresql");
  await server.stop();
}

export const FILLING_MS = 3_600_000;
/** As mail servers' records often have, and as what peers ask has (postfix-inbound.ts). */
const DNS_TTL_S = 300;

/** The database for what a bench fills in beforehand: a statement may take an hour there, not the product's half minute. */
export async function fillIn<T>(url: string, work: (db: Db) => Promise<T>): Promise<T> {
  const db = openDb(url, { onError: () => undefined, statement_ms: FILLING_MS });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

export type BenchResult = {
  name: string;
  conditions: Record<string, unknown>;
  ours: Record<string, number>;
  peers: Record<string, Record<string, number>>;
  ratio: Record<string, number>;
};

export type Stage = {
  settings: Posterns;
  /** The addresses of every process with the role `api`. */
  base_urls: string[];
  processes: PosternProcess[];
  dns: DnsServer;
  sink: BenchSink;
  domain: string;
  domain_id: string;
  /** The embedded database of the processes, for preloading and looking. */
  database_url: string;
  /** The same database as its superuser. */
  admin_url: string;
  synchronous_commit: string;
  /** Seconds of processor time that Postern's processes and the database have used so far. */
  processor(): { postern: number; database: number };
  close(): Promise<void>;
};

/** Starts everything; `roleSets` is one list of roles a process. */
export async function setStage(
  roleSets: string[][] = [["api", "mta", "hooks", "clock"]],
  env: Record<string, string> = {},
): Promise<Stage> {
  const { dir, remove } = makeFolder();
  if (postgres() === "installed") await makeByInstalled(dir);
  const dns = await startDnsServer({}, { ttl_s: DNS_TTL_S });
  const sink = await startBenchSink();
  const settings = await posternSettings(dir, {
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    ...(profile === null ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-interval=500 --cpu-prof-dir=${profile}` }),
    ...env,
  });
  const processes: PosternProcess[] = [];
  const end = (): void => {
    for (const { child } of processes) child.kill("SIGKILL");
  };
  process.once("exit", end);
  const base_urls: string[] = [];
  for (const [index, roles] of roleSets.entries()) {
    const http = index === 0 ? (settings.env.POSTERN_HTTP as string) : `127.0.0.1:${await freePort()}`;
    if (roles.includes("api")) base_urls.push(`http://${http}`);
    const own = { POSTERN_INTERNAL: "127.0.0.1:0", POSTERN_HTTP: http };
    processes.push(await startPostern(settings, roles, index === 0 ? {} : own, PROGRAM));
  }
  const domain = "shop.example";
  const { id: domain_id } = await addVerifiedDomain(apiOf(settings), dns, domain);
  const database = await runningEmbeddedPostgres(join(dir, "postgres"));
  const database_url = database?.url ?? "";
  const postmaster = postmasterOf(dir) ?? 0;
  return {
    settings,
    base_urls,
    processes,
    dns,
    sink,
    domain,
    domain_id,
    database_url,
    admin_url: (database?.admin_url ?? "").replace(/\/postgres(?=\?|$)/, "/postern"),
    synchronous_commit: await withClient({ database_url }, async (client) => {
      const { rows } = await client.query("show synchronous_commit");
      return rows[0].synchronous_commit;
    }),
    processor: () => ({
      postern: processorSeconds(
        processes.map(({ pid }) => pid),
        postmaster,
      ),
      database: processorSeconds([postmaster]),
    }),
    async close() {
      process.off("exit", end);
      for (const running of processes.reverse()) await running.stop();
      sink.stop();
      await dns.stop();
      remove();
    },
  };
}

/** A data folder. At this process's exit, an interrupted one's too, its database is ended and the folder removed. */
export function makeFolder(): { dir: string; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), "postern-bench-"));
  chmodSync(dir, 0o711); // run by root, the embedded database runs as an ordinary user
  const remove = (): void => {
    process.off("exit", remove);
    const postmaster = postmasterOf(dir);
    if (postmaster !== null) process.kill(postmaster, "SIGKILL");
    rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
  };
  process.once("exit", remove);
  return { dir, remove };
}

/** Null when no database runs in the folder: a server that has ended in good order takes the file with it. */
export function postmasterOf(dir: string): number | null {
  const file = join(dir, "postgres/cluster/postmaster.pid");
  const pid = existsSync(file) ? Number.parseInt(readFileSync(file, "utf8"), 10) : 0;
  return pid > 0 && existsSync(`/proc/${pid}`) ? pid : null;
}

/** A connection that sees past row-level security, for preloading and looking. */
export async function withClient<T>(
  { database_url }: Pick<Stage, "database_url">,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: database_url, options: "-c postern.scope=system" });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Lets mail for `domain` go to the sink. */
export function routeToSink(dns: DnsServer, domain: string): void {
  dns.set(domain, "MX", [{ exchange: "mx.sink.example", preference: 10 }]);
  dns.set("mx.sink.example", "A", ["127.0.0.1"]);
}

/** Messages a second from the first of `load` to the last final dot at the sink; each must be taken and arrive once. */
export async function throughSink(
  { sink }: Pick<Stage, "sink">,
  count: number,
  load: () => Promise<{ accepted: number; refused: Map<unknown, number> }>,
): Promise<number> {
  await sink.reset();
  const startedAt = performance.now();
  const [{ accepted, refused }, endedAt] = await Promise.all([load(), sink.waitFor(count)]);
  if (accepted !== count) throw new Error(`not all were taken: ${JSON.stringify([...refused])}`);
  const { received, unique } = await sink.counts();
  if (received !== unique) throw new Error(`${received - unique} duplicates at the sink`);
  return count / ((endedAt - startedAt) / 1000);
}

/**
 * What is done before a bench measures: V8 compiles what is used often, for some ten thousand messages. What each of these took of
 * the processor is a figure of its own, so that nothing of a start is hidden.
 */
export async function warmUp(
  stage: Pick<Stage, "processor">,
  count: number,
  work: () => Promise<unknown>,
): Promise<{ warm_up_processor_us: number }> {
  const before = stage.processor();
  await work();
  const after = stage.processor();
  const seconds = after.postern - before.postern + after.database - before.database;
  return { warm_up_processor_us: round((seconds * 1e6) / count) };
}

/** Microseconds of processor time that each of `count` messages cost while `work` ran. */
export async function costOf<T>(
  stage: Stage,
  count: number,
  work: () => Promise<T>,
): Promise<[T, Record<string, number>]> {
  const countedCalls = countsCalls ? await countCalls(stage.processes.map(({ pid }) => pid)) : null;
  const before = stage.processor();
  const result = await work();
  const after = stage.processor();
  const calls = countedCalls ? callsEach(await countedCalls(), count) : {};
  const cost = (of: "postern" | "database") => round(((after[of] - before[of]) * 1e6) / count);
  return [result, { postern_processor_us: cost("postern"), database_processor_us: cost("database"), ...calls }];
}

/** System calls of a message, and those with a name that are at least a hundredth of them. */
function callsEach(calls: Calls, count: number): Record<string, number> {
  const all = [...calls.values()].reduce((sum, n) => sum + n, 0);
  const shown = [...calls].filter(([, n]) => n >= all / 100).toSorted(([, a], [, b]) => b - a);
  const named = shown.map(([name, n]) => [`call ${name}`, round(n / count, 2)] as const);
  return { system_calls: round(all / count, 2), ...Object.fromEntries(named) };
}

/** The load of the minute before the bench: afterwards it would be that of the bench itself. */
const LOAD_BEFORE = round(loadavg()[0] as number, 2);

/** The commit of this tree, `+` when files differ from it; "unknown" without git, "before" for another version. */
export function commitOf(): string {
  if (PROGRAM !== undefined) return "before";
  try {
    const git = (...args: string[]) => execFileSync("git", args, { cwd: import.meta.dirname, encoding: "utf8" }).trim();
    return git("rev-parse", "--short", "HEAD") + (git("status", "--porcelain", "--", "../../src") === "" ? "" : "+");
  } catch {
    return "unknown";
  }
}

const SIGNATURES = 200;

/** Microseconds of processor time of a signature with RSA-2048: how fast this machine is at the moment. */
function signatureUs(): number {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const before = process.cpuUsage();
  for (let n = 0; n < SIGNATURES; n += 1) sign("sha256", Buffer.alloc(1_000), privateKey);
  const { user, system } = process.cpuUsage(before);
  return round((user + system) / SIGNATURES);
}

/** The machine, the version and the database a figure was taken with. */
export function conditions(
  more: Record<string, unknown>,
  stage?: Pick<Stage, "synchronous_commit">,
): Record<string, unknown> {
  return {
    commit: commitOf(),
    load1: LOAD_BEFORE,
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    memory_gib: Math.round(totalmem() / 2 ** 30),
    rsa_2048_us: signatureUs(),
    node: process.version,
    at: new Date().toISOString(),
    ...(postgres() === undefined ? {} : { postgres: postgres() }),
    ...(stage ? { synchronous_commit: stage.synchronous_commit } : {}),
    ...more,
  };
}

const HISTORY = join(import.meta.dirname, "../history.csv");
/** Lines of before 20 November 2026, 17:00, end after the value. `rows`: how many, where the bench says. */
const COLUMNS = "at,name,figure,value,commit,rows,load1\n";

/** Prints the result for people and, as the last line with --json, as one JSON object; appends what is a measure to history.csv. */
export function report(result: BenchResult, json: boolean): void {
  const isKept = isMeasure();
  if (isKept && !existsSync(HISTORY)) writeFileSync(HISTORY, COLUMNS);
  const { commit, load1, rows = "" } = result.conditions;
  const at = new Date().toISOString();
  const figures = [
    ...Object.entries(result.ours).map(([name, value]) => [name, value] as const),
    ...Object.entries(result.peers).flatMap(([peer, values]) =>
      Object.entries(values).map(([name, value]) => [`${peer} ${name}`, value] as const),
    ),
    ...Object.entries(result.ratio).map(([peer, value]) => [`ratio to ${peer}`, value] as const),
  ];
  for (const [name, value] of figures) {
    console.log(`  ${name.padEnd(36)} ${value}`);
    if (isKept) appendFileSync(HISTORY, `${at},${result.name},${name},${value},${commit},${rows},${load1}\n`);
  }
  if (json) console.log(JSON.stringify(result));
}

/** How many times the rate of each peer `perS` is. */
export function ratioTo(peers: BenchResult["peers"], perS: number): Record<string, number> {
  return Object.fromEntries(Object.entries(peers).map(([name, peer]) => [name, round(perS / (peer.per_s ?? 0), 2)]));
}

/** The rates of runs of two kinds, the mean of each and one by one. */
export function comparison(rates: Record<string, number[]>): Record<string, number> {
  const named = Object.entries(rates).flatMap(([kind, each]) => [
    [`${kind}_per_s`, round(mean(each))] as const,
    ...each.map((rate, n) => [`${kind}_${n + 1}_per_s`, round(rate)] as const),
  ]);
  return Object.fromEntries(named);
}

export function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Rounded to `digits` decimals. */
export function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}
