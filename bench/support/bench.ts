// What the benchmarks share: a fresh Postern with a verified domain, a sink, a name server; conditions; the result line.
import { appendFileSync, chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { runningEmbeddedPostgres } from "../../src/platform/embedded-postgres.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import {
  freePort,
  type PosternProcess,
  type Posterns,
  posternSettings,
  setUpDomain,
  startPostern,
} from "../../test/support/postern-process.ts";
import { processorSeconds } from "./processor.ts";
import { type BenchSink, startBenchSink } from "./sink.ts";

export type BenchResult = {
  name: string;
  conditions: Record<string, unknown>;
  ours: Record<string, number>;
  peers: Record<string, Record<string, number>>;
  ratio: Record<string, number>;
};

export type Stage = {
  settings: Posterns;
  /** Of every process with the role `api`. */
  base_urls: string[];
  processes: PosternProcess[];
  dns: DnsServer;
  sink: BenchSink;
  domain: string;
  domain_id: string;
  /** The embedded database of the processes, for preloading and looking. */
  database_url: string;
  /** Seconds of processor time that Postern's processes and the database have used so far. */
  processor(): { postern: number; database: number };
  close(): Promise<void>;
};

/** Starts everything; `roleSets` is one list of roles a process. */
export async function setStage(
  roleSets: string[][] = [["api", "mta", "hooks", "clock"]],
  env: Record<string, string> = {},
): Promise<Stage> {
  const dir = mkdtempSync(join(tmpdir(), "postern-bench-"));
  chmodSync(dir, 0o711); // run by root, the embedded database runs as an ordinary user
  const dns = await startDnsServer();
  const sink = await startBenchSink();
  const settings = await posternSettings(dir, {
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    ...env,
  });
  const processes: PosternProcess[] = [];
  const base_urls: string[] = [];
  for (const [index, roles] of roleSets.entries()) {
    const http = index === 0 ? (settings.env.POSTERN_HTTP as string) : `127.0.0.1:${await freePort()}`;
    if (roles.includes("api")) base_urls.push(`http://${http}`);
    const own = { POSTERN_INTERNAL: "127.0.0.1:0", POSTERN_HTTP: http };
    processes.push(await startPostern(settings, roles, index === 0 ? {} : own));
  }
  const domain = "shop.example";
  const domain_id = await setUpDomain(settings, dns, domain);
  const database = await runningEmbeddedPostgres(join(dir, "postgres"));
  const postmaster = Number.parseInt(readFileSync(join(dir, "postgres/cluster/postmaster.pid"), "utf8"), 10);
  return {
    settings,
    base_urls,
    processes,
    dns,
    sink,
    domain,
    domain_id,
    database_url: database?.url ?? "",
    processor: () => ({
      postern: processorSeconds(processes.map(({ pid }) => pid)),
      database: processorSeconds([postmaster]),
    }),
    async close() {
      for (const process of processes.reverse()) await process.stop();
      sink.stop();
      await dns.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Lets mail for `domain` go to the sink. */
export function routeToSink(dns: DnsServer, domain: string): void {
  dns.set(domain, "MX", [{ exchange: "mx.sink.example", preference: 10 }]);
  dns.set("mx.sink.example", "A", ["127.0.0.1"]);
}

/** Microseconds of processor time that each of `count` messages cost while `work` ran. */
export async function costOf<T>(
  stage: Stage,
  count: number,
  work: () => Promise<T>,
): Promise<[T, Record<string, number>]> {
  const before = stage.processor();
  const result = await work();
  const after = stage.processor();
  const cost = (of: "postern" | "database") => round(((after[of] - before[of]) * 1e6) / count);
  return [result, { postern_processor_us: cost("postern"), database_processor_us: cost("database") }];
}

/** The machine and versions a figure was taken with. */
export function conditions(more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    memory_gib: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    at: new Date().toISOString(),
    ...more,
  };
}

const HISTORY = join(import.meta.dirname, "../history.csv");

/** Prints the result for people and, as the last line with --json, as one JSON object; appends it to history.csv. */
export function report(result: BenchResult, json: boolean): void {
  if (!existsSync(HISTORY)) writeFileSync(HISTORY, "at,name,figure,value\n");
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
    appendFileSync(HISTORY, `${at},${result.name},${name},${value}\n`);
  }
  if (json) console.log(JSON.stringify(result));
}

/** How many times the rate of each peer `perS` is. */
export function ratioTo(peers: BenchResult["peers"], perS: number): Record<string, number> {
  return Object.fromEntries(Object.entries(peers).map(([name, peer]) => [name, round(perS / (peer.per_s ?? 0), 2)]));
}

/** Rounded to `digits` decimals. */
export function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}
