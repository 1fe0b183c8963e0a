// What the rows of `copies` are played with: an original that has sent mail and holds a queue, its copies, and the one mail
// server that all of them reach, which counts what arrives.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import {
  apiOf,
  ask,
  type PosternProcess,
  type Posterns,
  posternSettings,
  startPostern,
} from "../support/postern-process.ts";
import { receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import { type CountingSink, startCountingSink } from "./sink.ts";

const QUEUED = 5;
const WAIT_MS = 30_000;

type Mail = { id: string; message_id: string };

/** An installation: where its data and its database are, and its processes by role. */
export type Site = { settings: Posterns; running: Map<string, PosternProcess> };

export type Theatre = {
  dir: string;
  sink: CountingSink;
  /** Of this row: everything that was answered 202. */
  accepted: Mail[];
  /** Its settings; nothing runs yet. Without a database in `env` it brings its own. */
  site(dataDir: string, env: Record<string, string>, like?: Site): Promise<Site>;
  start(site: Site, role: "api" | "mta"): Promise<void>;
  stop(site: Site, signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** An original: its API runs, mail has left from it, and `QUEUED` mails wait, without anybody to send them. */
  original(dataDir: string, env: Record<string, string>): Promise<Site>;
  send(site: Site): Promise<Mail>;
  /** The original sends what waits, as it goes on behind its copy. */
  sendQueue(site: Site): Promise<void>;
  arrived(mails: readonly Mail[]): Promise<void>;
  close(): Promise<void>;
};

/** Sets the stage of one row in `dir`, a folder of its own. */
export async function setTheatre(): Promise<Theatre> {
  const dir = mkdtempSync(join(tmpdir(), "postern-copies-"));
  chmodSync(dir, 0o711);
  const dns: DnsServer = await startDnsServer();
  receiveAt(dns, "recipient.example");
  const sink = await startCountingSink();
  const sites: Site[] = [];
  const shared = {
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    POSTERN_MASTER_KEY: "0123456789abcdef".repeat(4),
  };
  const t: Theatre = {
    dir,
    sink,
    accepted: [],
    async site(dataDir, env, like) {
      const settings = await posternSettings(dataDir, { ...shared, ...env });
      const site: Site = { settings, running: new Map() };
      if (like) Object.assign(settings, { live_key: like.settings.live_key, test_key: like.settings.test_key });
      sites.push(site);
      return site;
    },
    async start(site, role) {
      const internal: Record<string, string> = role === "mta" ? {} : { POSTERN_INTERNAL: "127.0.0.1:0" };
      site.running.set(role, await startPostern(site.settings, [role], internal));
    },
    async stop(site, signal = "SIGTERM") {
      for (const running of site.running.values()) running.child.kill(signal);
      for (const running of site.running.values()) await running.exited;
      site.running.clear();
    },
    async original(dataDir, env) {
      const site = await t.site(dataDir, env);
      await t.start(site, "api");
      await addVerifiedDomain(apiOf(site.settings), dns, "sender.example");
      await t.start(site, "mta");
      await t.arrived([await t.send(site)]);
      await stopOne(site, "mta");
      for (let n = 0; n < QUEUED; n += 1) await t.send(site);
      return site;
    },
    async send(site) {
      const mail = { from: "a@sender.example", to: ["b@recipient.example"], subject: "x", text_body: "x" };
      const { status, body } = await ask(site.settings, "POST", "/v1/send", mail);
      if (status !== 202) throw new Error(`not accepted: ${status} ${JSON.stringify(body)}`);
      const sent = { id: String(body.id), message_id: String(body.message_id) };
      t.accepted.push(sent);
      return sent;
    },
    async sendQueue(site) {
      await t.start(site, "mta");
      await t.arrived(t.accepted);
      await stopOne(site, "mta");
    },
    arrived: async (mails) =>
      void (await until(
        () => `${mails.filter((mail) => copiesOf(sink, mail) === 0).length} of ${mails.length} mails have not arrived`,
        () => mails.every((mail) => copiesOf(sink, mail) > 0),
        WAIT_MS,
      )),
    async close() {
      for (const site of sites) await t.stop(site);
      await sink.stop();
      await dns.stop();
      rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
    },
  };
  return t;
}

/** How often it arrived. */
export function copiesOf(sink: CountingSink, { message_id }: Mail): number {
  return sink.copies.get(message_id.replace(/^<|>$/g, "")) ?? 0;
}

async function stopOne(site: Site, role: string): Promise<void> {
  await site.running.get(role)?.stop();
  site.running.delete(role);
}
