// A live service for masked addresses in one process: MX, delivery engine, name server, and one SMTP server that plays both
// the contact's and the mailbox's. The log is kept, to be searched.
import { startReceiving } from "../../src/app.ts";
import { settleTraces } from "../../src/masked/settle/settling.ts";
import { createLog } from "../../src/platform/process/log.ts";
import { settlingPorts } from "../../src/ports.ts";
import { type TestApi, testApi } from "./api.ts";
import { type DnsServer, startDnsServer } from "./dns-server.ts";
import { rawSmtp } from "./raw-smtp.ts";
import { type Received, type SmtpSink, startSmtpSink } from "./smtp-sink.ts";
import { until } from "./until.ts";

export const C = "shop.keeper@contact.example";
export const D = "anna.real@home.example";
/** Where C's and D's mail comes from; their domains let nobody else send. */
export const IP_C = "127.0.0.2";
export const IP_D = "127.0.0.3";
export const DOMAIN = "masked.postern.test";

export type MaskedStage = {
  api: TestApi;
  dns: DnsServer;
  sink: SmtpSink;
  log: string[];
  /** Mail over SMTP from C's or D's server; the answer. */
  send(mail: {
    from: string;
    to: string | string[];
    content: string;
    ip?: string;
  }): Promise<{ code: number; text: string }>;
  /** The messages at the sink for an address, once there are so many. */
  arrived(email: string, count?: number): Promise<Received[]>;
  /** An alias that forwards to confirmed destinations. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely; the assertions are the check
  alias(more?: object): Promise<any>;
  /** `type outcome reason` of each entry, the newest first. */
  activity(aliasId: string): Promise<string[]>;
  /** Does what the clock role does, until nothing of `traces` is left to do or the time is over. */
  settle(): Promise<void>;
  close(): Promise<void>;
};

/** Starts it. */
export async function startMaskedStage(): Promise<MaskedStage> {
  const dns = await startDnsServer();
  const sink = await startSmtpSink();
  const log: string[] = [];
  const destination = { write: (line: string) => void log.push(line) };
  const api = await testApi(
    { POSTERN_DNS: dns.address, POSTERN_MX: "127.0.0.1:0", POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) },
    (world) => ({ ...world, log: createLog({ level: "trace", role: "test", destination }) }),
  );
  await api.startMta();
  const mx = await startReceiving(api.world, api.engine);
  for (const [domain, ip] of [
    ["contact.example", IP_C],
    ["home.example", IP_D],
  ] as const) {
    dns.set(domain, "MX", [{ exchange: `mx.${domain}`, preference: 10 }]);
    dns.set(`mx.${domain}`, "A", ["127.0.0.1"]);
    dns.set(domain, "TXT", [`v=spf1 ip4:${ip} -all`]);
  }
  const stage: MaskedStage = {
    api,
    dns,
    sink,
    log,
    async send({ from, to, content, ip = from === D ? IP_D : IP_C }) {
      const smtp = await rawSmtp(mx.port, { localAddress: ip });
      await smtp.reply();
      const answer = await smtp.deliver({ from, to: [to].flat(), content });
      smtp.destroy();
      return answer;
    },
    arrived: (email, count = 1) =>
      until(`${count} messages for ${email}`, () => {
        const found = sink.messages.filter(({ to }) => to[0] === email);
        return found.length >= count ? found : null;
      }),
    async alias(more = {}) {
      const { status, body } = await api.ask("POST", "/v1/masked/aliases", { forward_to: [D], ...more });
      if (status !== 201) throw new Error(JSON.stringify(body));
      await api.world.db.execute(
        "update masked_destination set status = 'verified', confirmed_at = now(), hard_bounces = '{}'",
      );
      return { ...body.alias, full: `${body.alias.address}@${body.alias.domain}` };
    },
    async activity(aliasId) {
      const { body } = await api.ask("GET", `/v1/masked/aliases/${aliasId}/activity?limit=100`);
      return body.activity.map(
        ({ type, outcome, reason }: Record<string, string | null>) => `${type} ${outcome} ${reason ?? "-"}`,
      );
    },
    async settle() {
      await until("nothing is left to do", async () => {
        await api.world.db.execute("update masked_trace set due_at = to_timestamp(0) where due_at is not null");
        await settleTraces(api.world, settlingPorts(api.world, api.engine));
        const [row] = await api.world.db.query<{ open: number }>(
          `select (select count(*) from masked_trace where due_at is not null) + (select count(*) from inbound_queue)
                  + (select count(*) from delivery) as open`,
        );
        return row?.open === 0 ? true : null;
      });
    },
    async close() {
      await mx.stop();
      await api.close();
      await sink.stop();
      await dns.stop();
    },
  };
  return stage;
}
