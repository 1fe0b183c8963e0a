// Receiving: signed 4 KB mails over SMTP → verdicts (DNS on loopback) → parts → commit → the webhook received. Counted once
// by Message-ID at the receiver of the webhooks. Beside it Postfix with OpenDKIM and OpenDMARC, handing on to the sink.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dkimRecord, generateDkimKey, loadSigningKey } from "../src/mail/dkim/key.ts";
import { signMessage } from "../src/mail/dkim/sign.ts";
import type { DnsServer } from "../test/support/dns-server.ts";
import { apiOf, ask } from "../test/support/postern-process.ts";
import { postfixVersion } from "../test/support/postfix.ts";
import { makeCertificateAuthority } from "../test/support/tls.ts";
import { addVerifiedDomain } from "../test/support/verified-domain.ts";
import { startWebhookSink } from "../test/support/webhook-sink.ts";
import { type BenchResult, conditions, costOf, isAlone, ratioTo, round, setStage, warmUp } from "./support/bench.ts";
import { benchPostfixInbound, peerMissing } from "./support/postfix-inbound.ts";
import { deliverMany } from "./support/smtp-load.ts";

const COUNT = 6_000;
const WARM = 10_000;
const PEER_WARM = 500;
const CONNECTIONS = 32;
const PEER_COUNT = 3_000;
const DOMAIN = "client.example";
const RECIPIENT = "orders@in.example";
const PEER = "postfix+opendkim+opendmarc";
const SENDING = { connections: CONNECTIONS, sender: `shop@${DOMAIN}`, recipient: RECIPIENT };
const PARAGRAPH =
  "Thank you for your message. We have looked at your order and it leaves our house today before noon. ";

/** Runs the benchmark. */
export async function benchInbound(): Promise<BenchResult> {
  const dir = mkdtempSync(join(tmpdir(), "postern-inbound-bench-"));
  const authority = makeCertificateAuthority(dir);
  const hooks = await startWebhookSink({ tls: authority.issue(["localhost"]) });
  const received = new Set<string>();
  hooks.respond(({ body }) => {
    const { message_id, auth_results } = JSON.parse(body.toString());
    // A mail that was judged wrong does not count.
    if (auth_results.dkim.result === "pass" && auth_results.dmarc.result === "pass") received.add(message_id);
    hooks.requests.length = 0;
    return { status: 200 };
  });
  const stage = await setStage([["api", "clock", "hooks"], ["mx"]], { NODE_EXTRA_CA_CERTS: authority.ca_file });
  try {
    const { settings, dns } = stage;
    const { id } = await addVerifiedDomain(apiOf(settings), dns, "in.example", { type: "inbound" });
    await ask(settings, "POST", "/v1/aliases", { domain_id: id, local_part: RECIPIENT.split("@")[0] });
    await ask(settings, "POST", "/v1/webhooks", { url: `${hooks.url}/in`, domain_id: id });
    const { publish, key, message: messages } = await makeSender(WARM + COUNT);
    publish(dns);
    const port = Number(settings.env.POSTERN_MX?.split(":")[1]);
    const run = (first: number, count: number) =>
      deliverMany({ ...SENDING, port, count, recipient: () => RECIPIENT, message: (n) => messages(first + n) });
    const warm = await warmUp(stage, WARM, async () => {
      await run(0, WARM);
      await waitUntil(() => received.size >= WARM);
    });
    const [{ load, seconds }, cost] = await costOf(stage, COUNT, async () => {
      const startedAt = performance.now();
      const load = await run(WARM, COUNT);
      await waitUntil(() => received.size >= WARM + load.accepted);
      return { load, seconds: (performance.now() - startedAt) / 1000 };
    });
    const missing = isAlone() ? "none is measured" : peerMissing();
    const peer = missing
      ? null
      : await benchPostfixInbound({
          ...{ ...SENDING, count: PEER_COUNT, warm_up: PEER_WARM },
          ...{ sink: stage.sink, message: messages, key, publish },
        });
    const ours = {
      per_s: round(load.accepted / seconds),
      accepts_per_s: round(load.accepted / load.seconds),
      accepted: load.accepted,
      webhooks: received.size - WARM,
      ...cost,
      ...warm,
    };
    const peers: BenchResult["peers"] = peer ? { [PEER]: peer } : {};
    return {
      name: "inbound",
      conditions: conditions(
        {
          count: COUNT,
          peer_count: PEER_COUNT,
          warm_up: WARM,
          peer_warm_up: PEER_WARM,
          connections: CONNECTIONS,
          message_bytes: messages(0).length,
          peer: missing ?? `${postfixVersion()} with OpenDKIM and OpenDMARC`,
        },
        stage,
      ),
      ours,
      peers,
      ratio: ratioTo(peers, ours.per_s),
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

/** So many messages, each with an id, a body and a signature of its own. */
async function makeSender(count: number) {
  const { private_key_pem, public_key } = await generateDkimKey("rsa");
  const signer = loadSigningKey(private_key_pem, { domain: DOMAIN, selector: "b1" });
  const made: Buffer[] = [];
  for (let n = 0; n < count; n += 1) {
    const message = Buffer.from(
      `From: Shop <shop@${DOMAIN}>\r\nTo: ${RECIPIENT}\r\nSubject: Order ${n}\r\nDate: Fri, 20 Nov 2026 09:00:00 +0000\r\nMessage-ID: <${n}@${DOMAIN}>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n${n} ${PARAGRAPH.repeat(14)}\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>${PARAGRAPH.repeat(15)}</p>\r\n--b--\r\n`,
    );
    made.push(Buffer.concat([await signMessage(message, [signer], { now_s: Date.now() / 1000 }), message]));
  }
  const record: [string, string] = [`b1._domainkey.${DOMAIN}`, dkimRecord(public_key, "rsa")];
  return {
    key: record,
    /** The same answers for us and for the peer. */
    publish(dns: DnsServer): void {
      dns.set(DOMAIN, "TXT", ["v=spf1 ip4:127.0.0.1 -all"], 300);
      dns.set(`_dmarc.${DOMAIN}`, "TXT", ["v=DMARC1; p=reject"], 300);
      dns.set(record[0], "TXT", [record[1]], 300);
    },
    message: (n: number): Buffer => made[n % count] as Buffer,
  };
}
