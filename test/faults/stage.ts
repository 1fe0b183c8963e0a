// The stage of a fault scenario: PostgreSQL as a server of its own, one Postern process for each role, a name server,
// the recipients' mail server and a webhook receiver, all on loopback; and hands that kill and start them again.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { journalFolders } from "../../src/outbound/queue/journal.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import {
  apiOf,
  ask,
  type PosternProcess,
  type Posterns,
  posternSettings,
  startPostern,
} from "../support/postern-process.ts";
import { makeCertificateAuthority } from "../support/tls.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import { startWebhookSink, type WebhookSink } from "../support/webhook-sink.ts";
import { sleep } from "./load.ts";
import { type Recorder, startRecorder } from "./recorder.ts";
import { type CountingSink, startCountingSink } from "./sink.ts";

/** `all`: every role in one process, with its metrics where the settings say. */
export type Role = "api" | "mta" | "mx" | "hooks" | "clock" | "all";

export type Stage = {
  dir: string;
  settings: Posterns;
  postgres: EmbeddedPostgres;
  dns: DnsServer;
  sink: CountingSink;
  receiver: WebhookSink;
  recorder: Recorder;
  /** The folder of the version that `start` starts; undefined is this one. */
  program: string | undefined;
  processes: Map<string, PosternProcess>;
  /** Processes that ended although nobody killed or stopped them, with their last words. */
  died: string[];
  /** What all processes since the last `forgetFailures` logged of requests that failed for no reason they know. */
  failures(): string[];
  forgetFailures(): void;
  domain: string;
  /** Rows past row-level security. */
  rows<Row>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Starts a process of this role and keeps it under `name`; tries again while the database is away. */
  start(role: Role, name?: string, env?: Record<string, string>): Promise<PosternProcess>;
  /** SIGKILL; resolves when the process is gone. */
  kill(name: string): Promise<void>;
  /** SIGTERM; resolves with the exit code and how long it took. */
  stop(name: string): Promise<{ code: number | null; ms: number }>;
  /** Moves the clock of all processes ahead. */
  advance(seconds: number): void;
  /** What that clock shows, in milliseconds. */
  now(): number;
  close(): Promise<void>;
};

export type StageOptions = {
  /** A server that runs already, instead of one for the stage; it is left running. */
  postgres?: EmbeddedPostgres;
  roles?: Role[];
  /** Where the database and the data folder lie, when not in the stage's own folder. */
  disk?: string;
  postgres_settings?: Record<string, string>;
  env?: Record<string, string>;
  /** The folder of another version, to begin with. */
  program?: string;
  /** The address at which the processes reach the database, when it is not its own. */
  reach?(postgres: EmbeddedPostgres): Promise<string>;
};

const START_TRIES_MS = 60_000;
const START_AGAIN_MS = 200;

/** Sets everything up: a verified, warm sender domain, a route for `recipient.example`, a webhook for every outcome. */
export async function setStage(options: StageOptions = {}): Promise<Stage> {
  const dir = mkdtempSync(join(tmpdir(), "postern-faults-"));
  chmodSync(dir, 0o711); // run by root, PostgreSQL runs as an ordinary user
  const postgres = options.postgres
    ? { ...options.postgres, stop: async () => undefined }
    : await startEmbeddedPostgres({
        data_dir: makeFolder(options.disk ?? dir, "database"),
        ...(options.postgres_settings ? { settings: options.postgres_settings } : {}),
      });
  const stage = await setAround(dir, postgres, {
    POSTERN_DATA: makeFolder(options.disk ?? dir, "data"),
    ...(options.reach ? { DATABASE_URL: await options.reach(postgres) } : {}),
    ...options.env,
  });
  stage.program = options.program;
  try {
    for (const role of options.roles ?? (["api", "mta", "hooks"] as const)) await stage.start(role);
    await furnish(stage);
    return stage;
  } catch (error) {
    for (const line of stage.failures()) console.error(line);
    await stage.close();
    throw error;
  }
}

function makeFolder(dir: string, name: string): string {
  mkdirSync(join(dir, name), { recursive: true });
  chmodSync(join(dir, name), 0o711);
  return join(dir, name);
}

async function setAround(dir: string, postgres: EmbeddedPostgres, env: Record<string, string>): Promise<Stage> {
  const authority = makeCertificateAuthority(dir);
  const dns = await startDnsServer({}, { ttl_s: 60 });
  const sink = await startCountingSink();
  const receiver = await startWebhookSink({ tls: authority.issue(["localhost"]) });
  const clockFile = join(dir, "clock");
  const settings = await posternSettings(env.POSTERN_DATA ?? "", {
    DATABASE_URL: postgres.url,
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    POSTERN_TESTING_CLOCK_FILE: clockFile,
    NODE_EXTRA_CA_CERTS: authority.ca_file,
    ...env,
  });
  const processes = new Map<string, PosternProcess>();
  const died: string[] = [];
  const logged: Array<{ failures: readonly string[]; from: number }> = [];
  let offset = 0;
  const endAtOnce = (): void => {
    for (const { child } of processes.values()) child.kill("SIGKILL");
    if (postgres.alive()) process.kill(postgres.pid, "SIGKILL");
    rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
  };
  process.once("exit", endAtOnce);
  const stage: Stage = {
    dir,
    settings,
    postgres,
    dns,
    sink,
    receiver,
    recorder: startRecorder(join(dir, "acknowledged.jsonl")),
    program: undefined,
    processes,
    died,
    failures: () => logged.flatMap(({ failures, from }) => failures.slice(from)),
    forgetFailures: () => {
      for (const one of logged) one.from = one.failures.length;
    },
    domain: "shop.example",
    rows: (text, values = []) => readRows(postgres, text, values),
    async start(role, name = role, more = {}) {
      const started = await startInTime(settings, role, more, stage.program);
      processes.set(name, started);
      logged.push({ failures: started.failures, from: 0 });
      void started.exited.then((code) => {
        if (processes.get(name) === started) died.push(`${name} ended with ${code}: ${started.output().slice(-2_000)}`);
      });
      return started;
    },
    kill: async (name) => {
      const running = processes.get(name);
      processes.delete(name);
      running?.child.kill("SIGKILL");
      await running?.exited;
    },
    async stop(name) {
      const startedAt = performance.now();
      const running = processes.get(name);
      processes.delete(name);
      const code = (await running?.stop()) ?? null;
      return { code, ms: Math.round(performance.now() - startedAt) };
    },
    advance: (seconds) => {
      offset += seconds;
      writeFileSync(clockFile, String(offset));
    },
    now: () => Date.now() + offset * 1000,
    async close() {
      process.off("exit", endAtOnce);
      const left = [...processes.values()];
      processes.clear();
      for (const running of left) running.child.kill("SIGKILL");
      for (const running of left) await running.exited;
      await receiver.stop();
      await sink.stop();
      await dns.stop();
      await postgres.stop();
      // A killed process leaves them in memory.
      const [memory = ""] = journalFolders({ config: { data_dir: env.POSTERN_DATA ?? dir } });
      rmSync(memory, { recursive: true, force: true });
      rmSync(dir, { recursive: true, force: true });
    },
  };
  return stage;
}

async function startInTime(
  settings: Posterns,
  role: Role,
  env: Record<string, string>,
  program: string | undefined,
): Promise<PosternProcess> {
  const until = performance.now() + START_TRIES_MS;
  for (;;) {
    try {
      // One internal listener each, on any port.
      if (role === "all") return await startPostern(settings, undefined, env, program);
      return await startPostern(settings, [role], { POSTERN_INTERNAL: "127.0.0.1:0", ...env }, program);
    } catch (error) {
      if (performance.now() > until) throw error;
      await sleep(START_AGAIN_MS);
    }
  }
}

async function readRows<Row>(postgres: EmbeddedPostgres, text: string, values: unknown[]): Promise<Row[]> {
  const url = new URL(postgres.admin_url);
  url.pathname = "/postern";
  const client = new pg.Client({ connectionString: url.href });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(text, values)).rows as Row[];
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function furnish(stage: Stage): Promise<void> {
  await addVerifiedDomain(apiOf(stage.settings), stage.dns, stage.domain);
  stage.dns.set("recipient.example", "MX", [{ exchange: "mx.recipient.example", preference: 10 }]);
  // Many domains behind one server: their mail is spread over all slots, and so over several nodes.
  stage.dns.set("*.recipients.example", "MX", [{ exchange: "mx.recipient.example", preference: 10 }]);
  stage.dns.set("mx.recipient.example", "A", ["127.0.0.1"]);
  const events = ["email.delivered", "email.bounced", "email.deferred"];
  const made = await ask(stage.settings, "POST", "/v1/webhooks", { url: `${stage.receiver.url}/hook`, events });
  if (made.status !== 201) throw new Error(`no webhook: ${JSON.stringify(made.body)}`);
}
