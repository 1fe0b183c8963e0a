// A whole receiving end for tests: API, name server and MX in one process, a verified domain, and the events that webhooks
// would get, read from where they wait.
import nodemailer from "nodemailer";
import { startReceiving } from "../../src/app.ts";
import type { World } from "../../src/platform/world.ts";
import { type TestApi, testApi } from "./api.ts";
import { type DnsServer, startDnsServer } from "./dns-server.ts";
import { until } from "./until.ts";
import { addVerifiedDomain } from "./verified-domain.ts";

export type Receiving = {
  api: TestApi;
  dns: DnsServer;
  port: number;
  /** A verified domain of the first organization. */
  domain: { id: string; domain: string };
  /** An endpoint bound to that domain. */
  webhook_id: string;
  send(mail: Record<string, unknown>): Promise<void>;
  /** Waits until so many mails are listed and processed; newest last. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely; the assertions are the check
  processed(query: string, count?: number): Promise<any[]>;
  /** The bodies of queued webhook events of one mail, and for which endpoints. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  events(emailId: string): Promise<{ body: any; endpoints: string[] }[]>;
  /** Restarts the MX with the settings it has. */
  restartMx(): Promise<void>;
  close(): Promise<void>;
};

/**
 * Starts it; `env` are further settings, `change` may replace parts of the World. With POSTERN_TESTING_OUTBOUND_PORT what is
 * sent on goes there.
 */
export async function startTestReceiving(
  env: Record<string, string> = {},
  change?: (world: World) => World,
): Promise<Receiving> {
  const dns = await startDnsServer();
  const api = await testApi({ POSTERN_DNS: dns.address, POSTERN_MX: "127.0.0.1:0", ...env }, change);
  const domain = await addVerifiedDomain(api, dns, "in.example", { type: "both" });
  const webhook = await api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/in", domain_id: domain.id });
  if (env.POSTERN_TESTING_OUTBOUND_PORT) await api.startMta();
  let mx = await startReceiving(api.world, api.engine);
  const receiving: Receiving = {
    api,
    dns,
    port: mx.port,
    domain,
    webhook_id: webhook.body.webhook.id,
    async send(mail) {
      const transport = nodemailer.createTransport({
        host: "127.0.0.1",
        port: receiving.port,
        tls: { rejectUnauthorized: false },
      });
      try {
        await transport.sendMail(mail);
      } finally {
        transport.close();
      }
    },
    async processed(query, count = 1) {
      let seen: unknown;
      return until(
        () => `${count} mails are processed: ${JSON.stringify(seen)}`,
        async () => {
          const { body } = await api.ask("GET", `/v1/inbound-emails?direction=asc&${query}`);
          seen = body;
          const done = body.emails.filter((email: { status: string }) => isProcessed(email.status));
          return done.length >= count && done;
        },
      );
    },
    async events(emailId) {
      const rows = await api.world.db.query<{ body: Buffer; endpoints: string[] }>(
        `select e.body, array_agg(q.webhook_id::text order by q.webhook_id) as endpoints
           from webhook_event e join webhook_queue q on q.org_id = e.org_id and q.event_id = e.id
          group by e.org_id, e.id, e.body order by e.id`,
      );
      return rows
        .map(({ body, endpoints }) => ({ body: JSON.parse(body.toString()), endpoints }))
        .filter(({ body }) => body.email_id === emailId);
    },
    async restartMx() {
      await mx.stop();
      mx = await startReceiving(api.world, api.engine);
      receiving.port = mx.port;
    },
    async close() {
      await mx.stop();
      await api.close();
      await dns.stop();
    },
  };
  return receiving;
}

function isProcessed(status: string): boolean {
  return !["received", "processing"].includes(status);
}

/** The id that the answer to the final dot names. */
export function takenId(text: string): string {
  const [, id] = /taken as (\S+)/.exec(text) ?? [];
  if (!id) throw new Error(`the mail was not taken: ${text}`);
  return id;
}

/** What became of a mail that was taken, of whichever organization, once it is processed. */
export async function processedMail({ api }: Pick<Receiving, "api">, id: string) {
  return until(`the mail ${id} is processed`, async () => {
    const [row] = await api.world.db.query<{ status: string; reason: string | null }>(
      "select status, reason from inbound_email where id = $1",
      [id],
    );
    return row && isProcessed(row.status) && row;
  });
}

/** Adds an alias; its record. */
export async function addAlias(receiving: Receiving, local_part: string, more: object = {}) {
  const body = { domain_id: receiving.domain.id, local_part, ...more };
  const answer = await receiving.api.ask("POST", "/v1/aliases", body);
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body.alias;
}
