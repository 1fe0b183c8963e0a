// The play: many nodes, each with the pools that a process has, behind PgBouncer in transaction mode with few connections to PostgreSQL.
// Organizations keep those connections busy, from every node at once, when mail becomes due of which every node has to send some.
import { type ChildProcess, fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { bootstrap } from "../../../src/accounts/accounts.ts";
import { readConfig } from "../../../src/config.ts";
import { startEmbeddedPostgres } from "../../../src/platform/postgres/embedded-postgres.ts";
import { openWorld } from "../../../src/world.ts";
import { sleep } from "../../faults/load.ts";
import { type DnsServer, startDnsServer } from "../../support/dns-server.ts";
import { type PgBouncer, startPgBouncer } from "../../support/pgbouncer.ts";
import { apiOf, ask, type Posterns } from "../../support/postern-process.ts";
import { type SmtpSink, startSmtpSink } from "../../support/smtp-sink.ts";
import { receiveAt } from "../../support/stories.ts";
import { addVerifiedDomain } from "../../support/verified-domain.ts";
import type { Held, Order, Started, Stopped } from "./nodes.ts";
import type { TimesByKind } from "./timed-db.ts";
import { type Seen, watch } from "./watch.ts";

export type PoolerOptions = {
  dir: string;
  nodes: number;
  /** From the pooler to PostgreSQL. */
  connections: number;
  seconds: number;
  say(text: string): void;
};

export type PoolerPlayed = {
  /** Of each node. */
  times: TimesByKind[];
  seen: Seen;
  held: Held[];
  /** The recipients of mail that was taken in. */
  accepted: string[];
  /** The recipients of what arrived, once for each copy. */
  arrived: string[];
};

const PROCESSES = 2;
const DOMAINS = 200;
/** Of organizations, at each node: as many as it has connections for them. */
const CLIENTS = 20;
/** Far longer than a request has a connection: few processors keep all of them busy so. */
const HOLD_MS = 300;
const MAILS = 300;
/** At once, each waiting for its answer. */
const SENDERS = 16;
/** When mail is due: none before the connections are busy. */
const DUE_MS = 15_000;
/** Of the one address that mail leaves from, so that every node has some. */
const SLOTS = 200;
const ADD_SLOTS = `with wider as (update source set slots = ${SLOTS} returning id, slots)
  insert into lease (source_id, slot) select id, slot from wider, generate_series(0, slots - 1) as slot on conflict do nothing`;
/** Connections of each node that pass the pooler by, at most. */
const LISTENING_EACH = 4;
const FLOWS_OUT_MS = 60_000;
const LOOK_MS = 100;

type World = { url: string; dns: DnsServer; sink: SmtpSink; pooler: PgBouncer };

/** Plays it on a PostgreSQL of its own in this folder. */
export async function playPooler(options: PoolerOptions): Promise<PoolerPlayed> {
  const { dir, nodes, connections } = options;
  const max_connections = String(connections + nodes * LISTENING_EACH + 20);
  const postgres = await startEmbeddedPostgres({ data_dir: join(dir, "database"), settings: { max_connections } });
  const dns = await startDnsServer();
  const sink = await startSmtpSink();
  const pooler = await startPgBouncer(postgres.url, connections);
  try {
    return await playOn({ url: postgres.url, dns, sink, pooler }, options);
  } finally {
    await pooler.stop();
    await sink.stop();
    await dns.stop();
    await postgres.stop();
  }
}

async function playOn(world: World, { dir, nodes, seconds, say }: PoolerOptions): Promise<PoolerPlayed> {
  const { url, dns, sink, pooler } = world;
  const env = {
    DATABASE_URL: url,
    POSTERN_DATABASE_POOLER: pooler.through(url),
    POSTERN_MASTER_KEY: randomBytes(32).toString("hex"),
    POSTERN_HOSTNAME: "postern.example",
    POSTERN_DATA: dir,
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    POSTERN_TESTING_ALLOW_LOOPBACK: "1",
    POSTERN_LOG_LEVEL: "error",
  };
  const live_key = await firstKey(env);
  const processes = Array.from({ length: Math.min(PROCESSES, nodes) }, startProcess);
  const stopped = new AbortController();
  try {
    const [base_url = ""] = (await Promise.all(startNodes(processes, nodes, env))).flatMap((one) => one.addresses);
    say(`${nodes} nodes have started`);
    await addVerifiedDomain(apiOf({ base_url, live_key }), dns, "sender.example");
    for (let n = 0; n < DOMAINS; n += 1) receiveAt(dns, `c${n}.example`, "mx.sink.example");
    const watching = watch(url, pooler.console_url, stopped.signal);
    const accepted = await sendMail({ base_url, live_key });
    say(`${accepted.length} mails are scheduled`);
    const hold: Order = { order: "hold", seconds, clients: CLIENTS, hold_ms: HOLD_MS };
    const held = await Promise.all(processes.map((child) => order<Held>(child, hold)));
    say(`${sink.messages.length} mails have arrived`);
    const until = performance.now() + FLOWS_OUT_MS;
    while (sink.messages.length < accepted.length && performance.now() < until) await sleep(LOOK_MS);
    stopped.abort();
    const seen = await watching;
    const ended = await Promise.all(processes.map((child) => order<Stopped>(child, { order: "stop" })));
    const arrived = sink.messages.flatMap(({ to }) => to);
    return { times: ended.flatMap(({ times }) => times), seen, held, accepted, arrived };
  } finally {
    stopped.abort();
    for (const child of processes) child.kill("SIGKILL");
  }
}

/** The recipients of mail that will be due. */
async function sendMail(api: Pick<Posterns, "base_url" | "live_key">): Promise<string[]> {
  const accepted: string[] = [];
  const scheduled_at = new Date(Date.now() + DUE_MS).toISOString();
  let next = 0;
  const sender = async (): Promise<void> => {
    for (let n = next++; n < MAILS; n = next++) {
      const to = `n${n}@c${n % DOMAINS}.example`;
      const mail = { from: "hello@sender.example", to: [to], subject: "Hello", text_body: "Hello", scheduled_at };
      const { status, body } = await ask(api, "POST", "/v1/send", mail);
      if (status !== 202) throw new Error(`a mail was answered ${status}: ${JSON.stringify(body)}`);
      accepted.push(to);
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, sender));
  return accepted;
}

/** Brings the database up to date and makes the first organization, and slots. */
async function firstKey(env: Record<string, string>): Promise<string> {
  const { world, close } = await openWorld(readConfig(env));
  try {
    await world.db.execute(ADD_SLOTS);
    return (await bootstrap(world, { live_key: null, test_key: null }))?.live_key ?? "";
  } finally {
    await close();
  }
}

function startProcess(): ChildProcess {
  return fork(join(import.meta.dirname, "nodes.ts"), { serialization: "advanced" });
}

function startNodes(processes: ChildProcess[], nodes: number, env: Record<string, string>): Promise<Started>[] {
  const each = Math.ceil(nodes / processes.length);
  return processes.map((child, n) => {
    const what: Order = { order: "start", first: n * each, nodes: Math.min(each, nodes - n * each), env };
    return order<Started>(child, what);
  });
}

async function order<Answer>(child: ChildProcess, what: Order): Promise<Answer> {
  const ended = once(child, "exit").then(() => Promise.reject(new Error("a process with nodes ended")));
  const answer = once(child, "message").then(([message]) => message as Answer);
  child.send(what);
  ended.catch(() => undefined);
  return Promise.race([answer, ended]);
}
