// Postern as its users run it, in processes of their own, with what surrounds it on loopback: a folder, a database, a name
// server, the recipients' mail server and a webhook receiver. For stories in which a process starts, stops or is killed.
// Not here: the stage of the faults, which kills a PostgreSQL of its own as well, and that of the benchmarks.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { testDatabase } from "./database.ts";
import { type DnsServer, startDnsServer } from "./dns-server.ts";
import {
  type Asked,
  apiOf,
  type PosternProcess,
  type Posterns,
  posternSettings,
  startPostern,
} from "./postern-process.ts";
import { type SmtpSink, startSmtpSink } from "./smtp-sink.ts";
import { makeCertificateAuthority } from "./tls.ts";
import { startWebhookSink, type WebhookSink } from "./webhook-sink.ts";

/** The settings that its processes share, and the hands of a story. */
export type Scene = Posterns & {
  /** For the story's files; the data folder is `data` in it. */
  dir: string;
  dns: DnsServer;
  /** Offers STARTTLS; its certificate and the receiver's are of an authority that the processes trust. */
  sink: SmtpSink;
  receiver: WebhookSink;
  mx_port: number;
  submission_port: number;
  ask(method: string, path: string, body?: unknown): Promise<Asked>;
  /** A process with these roles (all of them) that is ready; it ends with the scene at the latest. */
  start(roles?: string[], env?: Record<string, string>): Promise<PosternProcess>;
  /** The superuser's session on the database, past row-level security; it ends with the scene. */
  admin(): Promise<pg.Client>;
  /** Sets how far the processes' clocks are ahead; resolves once every process goes by it. */
  moveClock(aheadMs: number): Promise<void>;
  close(): Promise<void>;
};

export type SceneOptions = {
  env?: Record<string, string>;
  /** The processes bring their own database instead of a clone of the template. */
  embedded?: boolean;
};

/** A process looks at the clock file again after 50 ms (src/platform/clock.ts). */
const CLOCK_SEEN_MS = 60;

/** Sets it, without a process; what was begun is undone when it fails half-way. */
export async function setScene(options: SceneOptions = {}): Promise<Scene> {
  const undo = new AsyncDisposableStack();
  try {
    return await setAround(undo, options);
  } catch (error) {
    await undo.disposeAsync();
    throw error;
  }
}

async function setAround(undo: AsyncDisposableStack, { env, embedded = false }: SceneOptions): Promise<Scene> {
  const dir = mkdtempSync(join(tmpdir(), "postern-scene-"));
  undo.defer(() => rmSync(dir, { recursive: true, force: true }));
  chmodSync(dir, 0o711); // run by root, the embedded database runs as an ordinary user
  const authority = makeCertificateAuthority(dir);
  const { key, cert } = authority.issue(["localhost", "mx.recipient.example"]);
  const dns = undo.adopt(await startDnsServer(), (server) => server.stop());
  const sink = undo.adopt(await startSmtpSink({ key, cert }), (server) => server.stop());
  const receiver = undo.adopt(await startWebhookSink({ tls: { key, cert } }), (server) => server.stop());
  const database = embedded ? null : undo.adopt(await testDatabase(), (clone) => clone.drop());
  const clockFile = join(dir, "clock");
  const settings = await posternSettings(join(dir, "data"), {
    ...(database ? { DATABASE_URL: database.url } : {}),
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    POSTERN_TESTING_CLOCK_FILE: clockFile,
    NODE_EXTRA_CA_CERTS: authority.ca_file,
    ...env,
  });
  return {
    ...settings,
    ...apiOf(settings),
    ...{ dir, dns, sink, receiver },
    mx_port: portOf(settings.env.POSTERN_MX),
    submission_port: portOf(settings.env.POSTERN_SUBMISSION),
    async start(roles, more) {
      const started = await startPostern(settings, roles, more);
      return undo.adopt(started, (running) => end(running, embedded));
    },
    async admin() {
      if (!database) throw new Error("only a process with the embedded database knows its superuser");
      const client = undo.adopt(new pg.Client(database.admin_url), (session) => session.end());
      await client.connect();
      return client;
    },
    async moveClock(aheadMs) {
      writeFileSync(clockFile, String(aheadMs / 1000));
      await new Promise((done) => setTimeout(done, CLOCK_SEEN_MS));
    },
    close: () => undo.disposeAsync(),
  };
}

function portOf(place = ""): number {
  return Number(place.split(":")[1]);
}

/** An embedded database is ended by its process, which must be asked; any other process is past caring. */
async function end(running: PosternProcess, embedded: boolean): Promise<void> {
  running.child.kill(embedded ? "SIGTERM" : "SIGKILL");
  await running.exited;
}
