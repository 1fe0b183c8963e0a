// npm run demo: the main job from end to end on this machine alone, in seconds. The embedded database, a real name
// server, a real SMTP server as the recipient's MX and a real HTTPS webhook receiver, all on loopback. With --json the
// last line is one JSON object. With --keep a shop lives a month in it first (month/month.ts; --days fewer), and all of it stays up
// for requests of one's own (keep.ts).
import { styleText } from "node:util";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import PostalMime from "postal-mime";
import Stripe from "stripe";
import { createResolver } from "../../src/platform/dns/resolver.ts";
import type { DnsServer } from "../support/dns-server.ts";
import { nodeStyleResolver } from "../support/node-resolver.ts";
import { readOptions, refuse, wholeNumber } from "../support/options.ts";
import type { PosternProcess } from "../support/postern-process.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { receiveAt } from "../support/stories.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import type { WebhookSink } from "../support/webhook-sink.ts";
import { keepUp } from "./keep.ts";
import { liveMonth, setBack } from "./month/month.ts";
import { INVOICE } from "./month/texts.ts";

const WAIT_MS = 10_000;
const DAYS_MAX = 30;

type Story = {
  id: string;
  status: string;
  dkim: string;
  webhook: { event: string; signature: string; attempt: number };
};

function say(mark: string, text: string): void {
  console.log(`${styleText("green", mark.padEnd(9))} ${text}`);
}

/** On a terminal in place, else a line for every tenth day. */
function showDay(day: number): void {
  const line = `${styleText("green", "shop".padEnd(9))} day ${day} of ${days}`;
  if (process.stdout.isTTY) process.stdout.write(`\r${line}`);
  else if (day % 10 === 0) console.log(line);
}

function detail(text: string): void {
  console.log(`          ${styleText("gray", text)}`);
}

async function tell(scene: Scene): Promise<Story> {
  const { dns, sink, receiver } = scene;
  if (!isKept) await addVerifiedDomain(scene, dns, "shop.example");
  receiveAt(dns, "recipient.example");
  say("domain", "shop.example created, its records published in the name server, verified");
  const hook = await scene.ask("POST", "/v1/webhooks", {
    url: `${receiver.url}/hook`,
    events: ["email.delivered"],
  });
  if (hook.status !== 201) throw new Error(`no webhook: ${JSON.stringify(hook.body)}`);
  say("webhook", `${receiver.url}/hook subscribes to email.delivered`);

  const sent = await scene.ask("POST", "/v1/send", {
    from: "Shop <orders@shop.example>",
    to: ["Anna <anna@recipient.example>"],
    subject: "Ihre Rechnung für Größe M",
    html_body: "<h1>Danke!</h1><p>Die Rechnung liegt bei.</p>",
    attachments: [{ filename: "Rechnung Größe M.pdf", content: INVOICE.toString("base64") }],
    tags: ["invoice"],
  });
  if (sent.status !== 202) throw new Error(`not accepted: ${JSON.stringify(sent.body)}`);
  const id = String(sent.body.id);
  say("202", `POST /v1/send accepted it durably: ${id}`);
  const [received] = await sink.waitFor(1, WAIT_MS);
  if (!received) throw new Error("nothing arrived");
  await showMessage(received.bytes, received.secure);
  const dkim = await verifySignature(dns, received.bytes);
  const webhook = await showWebhook(receiver, String((hook.body as { secret?: unknown }).secret));
  const status = await showTimeline(scene, id);
  return { id, status, dkim, webhook };
}

async function showMessage(bytes: Buffer, secure: boolean): Promise<void> {
  const mail = await PostalMime.parse(bytes);
  say("SMTP", `the recipient's server has it${secure ? ", over TLS" : ""}: "${mail.subject}"`);
  for (const { filename, mimeType, content } of mail.attachments) {
    const isSame = Buffer.from(content as ArrayBuffer).equals(INVOICE);
    detail(`attachment ${filename} (${mimeType}), ${isSame ? "byte for byte" : "CHANGED"}`);
  }
}

/** mailauth reads the received bytes and asks the name server for the key; none of our code judges. */
async function verifySignature(dns: DnsServer, bytes: Buffer): Promise<string> {
  const resolver = createResolver({
    servers: [dns.address],
    timeout_ms: 2_000,
    attempts: 1,
    cache_max: 10,
    validating: false,
    now: Date.now,
  });
  const { results } = await dkimVerify(bytes, { resolver: nodeStyleResolver(resolver) as never });
  const [first] = results;
  say(
    "DKIM",
    `${first?.status.result} for ${first?.signingDomain}, selector ${first?.selector} (verified by mailauth)`,
  );
  return String(first?.status.result);
}

/** The npm package stripe checks signatures of this form. */
async function showWebhook(receiver: WebhookSink, secret: string): Promise<Story["webhook"]> {
  const request = await receiver.waitFor(({ path }) => path === "/hook", WAIT_MS);
  const signature = String(request.headers["x-service-signature"]);
  const isValid = Stripe.webhooks.signature?.verifyHeader(request.body.toString(), signature, secret, 300) === true;
  const { event } = JSON.parse(request.body.toString()) as { event: string };
  const attempt = Number(request.headers["x-service-attempt"]);
  say("webhook", `${event}, signature ${isValid ? "valid" : "INVALID"} (verified by stripe), attempt ${attempt}`);
  return { event, signature: isValid ? "valid" : "invalid", attempt };
}

async function showTimeline(scene: Scene, id: string): Promise<string> {
  const { body } = await scene.ask("GET", `/v1/emails/${id}/events`);
  say("timeline", `GET /v1/emails/${id}/events`);
  for (const event of body.events as unknown as Record<string, string>[]) {
    const where = event.mx_host
      ? ` by ${event.mx_host}: ${event.smtp_code} ${event.message} (${event.tls ?? "no TLS"})`
      : "";
    detail(`${event.timestamp} ${event.event_type}${where}`);
  }
  const email = await scene.ask("GET", `/v1/emails/${id}`);
  return String((email.body.email as { status?: string } | undefined)?.status);
}

const startedAt = performance.now();
const USE = "npm run demo -- [--keep [--days n]] [--json]";
const { values } = readOptions(
  {
    options: {
      json: { type: "boolean", default: false },
      keep: { type: "boolean", default: false },
      days: { type: "string" },
    },
  },
  USE,
);
const { keep: isKept, json: isJson } = values;
if (values.days !== undefined && !isKept)
  refuse("--days goes with --keep: only then a shop lives some days first.", USE);
/** Of a shop, lived before with --keep. */
const days = wholeNumber("days", values.days ?? String(DAYS_MAX), { least: 1, most: DAYS_MAX }, USE);
console.log("Postern demo: everything on loopback, the database included\n");
const scene = await setScene({ embedded: true, env: isKept ? { POSTERN_SIGNUP: "invite" } : {} });
let postern: PosternProcess | null = null;
try {
  if (isKept) await setBack(scene, days);
  postern = await scene.start();
  say("started", `Postern with its embedded database on ${scene.base_url}`);
  if (isKept) await liveMonth(scene, days, showDay);
  if (isKept && process.stdout.isTTY) console.log();
  const { id, status, dkim, webhook } = await tell(scene);
  const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1));
  const ok = status === "delivered" && dkim === "pass" && webhook.signature === "valid";
  console.log(
    `\n${ok ? styleText("green", "All of it works") : styleText("red", "Something is wrong")}, ${seconds} s.`,
  );
  if (!isKept) console.log("Next: npm run demo -- --keep, to send mail of your own; or npm start, then see README.md.");
  if (isJson) console.log(JSON.stringify({ ok, email: { id, status }, dkim, webhook, seconds }));
  process.exitCode = ok ? 0 : 1;
  if (isKept && ok) await keepUp(scene, postern, isJson);
} catch (error) {
  console.error(postern?.output() ?? "");
  throw error;
} finally {
  await scene.close();
}
