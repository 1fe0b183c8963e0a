// Masked addresses as a test key meets them: POST /v1/inbound-emails/simulate takes a mail from the session to the messages
// that would have left. Nothing leaves. Not here: real SMTP and what comes back by it (masked-stage.ts).
import assert from "node:assert/strict";
import PostalMime from "postal-mime";
import { type Answer, type TestApi, testApi } from "./api.ts";
import { type DnsServer, startDnsServer, type Zones } from "./dns-server.ts";

export const C = "shop@contact.example";
export const D = "anna@home.example";
/** Where C's and D's mail comes from; their domains let nobody else send. */
export const IP_C = "198.51.100.7";
export const IP_D = "198.51.100.8";
export const DOMAIN = "masked.postern.test";

/** `raw` in place of what the other fields make; `ip` is D's for mail from D, C's for any other. */
export type SimulatedMail = {
  to: string | string[];
  from?: string;
  envelope?: string;
  ip?: string;
  helo?: string;
  head?: string;
  text?: string;
  raw?: Buffer;
};

export type MaskedSimulation = {
  api: TestApi;
  dns: DnsServer;
  /** With the test key. */
  ask(method: string, path: string, body?: unknown): Promise<Answer>;
  /** An alias that forwards to D, with its whole address as `full`. */
  alias(more?: object): Promise<Answer["body"]>;
  /** The reverse address of a contact, of C unless it is named. */
  reverse(aliasId: string, email?: string): Promise<string>;
  /**
   * A mail, from D unless it says otherwise: what SMTP said to the first recipient, and what would have left, read. What the
   * owner learns of mail that passed stands apart, in `reports`.
   */
  simulate(mail: SimulatedMail): Promise<{
    body: Answer["body"];
    messages: Answer["body"][];
    reports: Answer["body"][];
    said: string;
    message: string;
  }>;
  /** `type outcome reason` of each entry, the newest first. */
  activity(aliasId: string): Promise<string[]>;
  close(): Promise<void>;
};

/** Starts it; `zones` are further names. */
export async function startMaskedSimulation(zones: Zones = {}): Promise<MaskedSimulation> {
  const dns = await startDnsServer({
    "contact.example": { TXT: [`v=spf1 ip4:${IP_C} -all`] },
    "home.example": { TXT: [`v=spf1 ip4:${IP_D} -all`] },
    ...zones,
  });
  const api = await testApi({ POSTERN_DNS: dns.address });
  const ask: MaskedSimulation["ask"] = (method, path, body) => api.ask(method, path, body, { key: api.test_key });
  return {
    api,
    dns,
    ask,
    async alias(more = {}) {
      const { status, body } = await ask("POST", "/v1/masked/aliases", { forward_to: [D], ...more });
      assert.equal(status, 201, JSON.stringify(body));
      return { ...body.alias, full: `${body.alias.address}@${body.alias.domain}` };
    },
    async reverse(aliasId, email = C) {
      return (await ask("POST", `/v1/masked/aliases/${aliasId}/contacts`, { email })).body.contact.reply_address;
    },
    simulate: (mail) => simulate(ask, mail),
    async activity(aliasId) {
      const { body } = await ask("GET", `/v1/masked/aliases/${aliasId}/activity?limit=100`);
      return body.activity.map(
        ({ type, outcome, reason }: Record<string, string | null>) => `${type} ${outcome} ${reason ?? "-"}`,
      );
    },
    async close() {
      await api.close();
      await dns.stop();
    },
  };
}

async function simulate(ask: MaskedSimulation["ask"], mail: SimulatedMail) {
  const { to, from = D, envelope = from, ip = from === D ? IP_D : IP_C, helo = "mx.example" } = mail;
  const raw_base64 = (mail.raw ?? written(mail, from)).toString("base64");
  const request = { to, envelope_from: envelope, remote_ip: ip, helo, raw_base64 };
  const { status, body } = await ask("POST", "/v1/inbound-emails/simulate", request);
  assert.equal(status, 200, JSON.stringify(body));
  const [{ smtp_code, enhanced_code, message }] = body.results;
  const messages = await Promise.all(
    body.messages.map(async (one: { raw_base64: string }) => ({
      ...one,
      mail: await PostalMime.parse(Buffer.from(one.raw_base64, "base64")),
    })),
  );
  const [reports, others] = [messages.filter((one) => isReport(one)), messages.filter((one) => !isReport(one))];
  return { body, messages: others, reports, said: `${smtp_code} ${enhanced_code}`, message };
}

/** True for a notice that informs the owner of mail that passed. */
export function isReport({ mail }: { mail: { subject?: string | undefined } }): boolean {
  return /^(?:Your reply was sent|A mail to your alias holds)/.test(mail.subject ?? "");
}

function written({ to, head = "", text = "hi" }: SimulatedMail, from: string): Buffer {
  const shown = /^To:/im.test(head) ? "" : `To: ${[to].flat().join(", ")}\r\n`;
  return Buffer.from(`From: ${from}\r\n${shown}Subject: order\r\n${head}\r\n${text}\r\n`);
}
