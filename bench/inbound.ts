// Receiving: signed 4 KB mails over SMTP → verdicts (DNS on loopback) → parts → commit → the webhook received. Counted once
// by Message-ID at the receiver of the webhooks.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dkimRecord, generateDkimKey, loadSigningKey } from "../src/mail/dkim/key.ts";
import { signMessage } from "../src/mail/dkim/sign.ts";
import { ask, setUpDomain } from "../test/support/postern-process.ts";
import { makeCertificateAuthority } from "../test/support/tls.ts";
import { startWebhookSink } from "../test/support/webhook-sink.ts";
import { type BenchResult, conditions, round, setStage } from "./support/bench.ts";
import { deliverMany } from "./support/smtp-load.ts";

const COUNT = 6_000;
const WARM = 500;
const DISTINCT = 300;
const CONNECTIONS = 32;
const PARAGRAPH =
  "Thank you for your message. We have looked at your order and it leaves our house today before noon. ";

/** Runs the benchmark. */
export async function benchInbound(): Promise<BenchResult> {
  const dir = mkdtempSync(join(tmpdir(), "postern-inbound-bench-"));
  const authority = makeCertificateAuthority(dir);
  const hooks = await startWebhookSink({ tls: authority.issue(["localhost"]) });
  const received = new Set<string>();
  hooks.respond(({ body }) => {
    received.add(JSON.parse(body.toString()).message_id);
    hooks.requests.length = 0;
    return { status: 200 };
  });
  const stage = await setStage([["api", "clock", "hooks"], ["mx"]], { NODE_EXTRA_CA_CERTS: authority.ca_file });
  try {
    const { settings, dns } = stage;
    const id = await setUpDomain(settings, dns, "in.example", "inbound");
    await ask(settings, "POST", "/v1/aliases", { domain_id: id, local_part: "orders" });
    await ask(settings, "POST", "/v1/webhooks", { url: `${hooks.url}/in`, domain_id: id });
    dns.set("client.example", "TXT", ["v=spf1 ip4:127.0.0.1 -all"], 300);
    dns.set("_dmarc.client.example", "TXT", ["v=DMARC1; p=reject"], 300);
    const messages = await signedMessages(dns);
    const port = Number(settings.env.POSTERN_MX?.split(":")[1]);
    const run = (first: number, count: number) =>
      deliverMany({
        port,
        count,
        connections: CONNECTIONS,
        sender: "shop@client.example",
        recipient: () => "orders@in.example",
        message: (n) => messages(first + n),
      });
    await run(0, WARM);
    await waitUntil(() => received.size >= WARM);
    const startedAt = performance.now();
    const load = await run(WARM, COUNT);
    await waitUntil(() => received.size >= WARM + load.accepted);
    const seconds = (performance.now() - startedAt) / 1000;
    return {
      name: "inbound",
      conditions: conditions({ count: COUNT, connections: CONNECTIONS, message_bytes: messages(0).length }),
      ours: {
        accepted: load.accepted,
        webhooks: received.size - WARM,
        accepts_per_s: round(load.accepted / load.seconds),
        end_to_end_per_s: round(load.accepted / seconds),
      },
      peers: {},
      ratio: {},
    };
  } finally {
    await stage.close();
    await hooks.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function waitUntil(isDone: () => boolean): Promise<void> {
  const until = Date.now() + 120_000;
  while (!isDone()) {
    if (Date.now() > until) throw new Error("not all webhooks came within two minutes");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Distinct signed bodies; the Message-ID, unsigned, makes each message one of its own. */
async function signedMessages(dns: { set(name: string, type: string, records: unknown[], ttl_s?: number): void }) {
  const { private_key_pem, public_key } = await generateDkimKey("rsa");
  dns.set("b1._domainkey.client.example", "TXT", [dkimRecord(public_key, "rsa")], 300);
  const key = loadSigningKey(private_key_pem, { domain: "client.example", selector: "b1" });
  const made: Buffer[] = [];
  for (let n = 0; n < DISTINCT; n += 1) {
    const message = Buffer.from(
      `From: Shop <shop@client.example>\r\nTo: orders@in.example\r\nSubject: Order ${n}\r\nDate: Fri, 20 Nov 2026 09:00:00 +0000\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n${PARAGRAPH.repeat(14)}\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>${PARAGRAPH.repeat(15)}</p>\r\n--b--\r\n`,
    );
    made.push(Buffer.concat([await signMessage(message, [key], { now_s: Date.now() / 1000 }), message]));
  }
  return (n: number): Buffer => {
    const message = made[n % DISTINCT] as Buffer;
    return Buffer.concat([Buffer.from(`X-Number: ${n}\r\nMessage-ID: <${n}@client.example>\r\n`), message]);
  };
}
