// From the final dot at the sink to the call at the program that `postern listen` forwards to: how long a developer waits for
// an event. The command runs as people run it, in a process of its own, with a signing secret; a sample is verified.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { SIGNATURE_HEADER, verify } from "../clients/node/src/postern.ts";
import { inheritedEnv } from "../test/support/inherited-env.ts";
import { type BenchResult, conditions, round, routeToSink, type Stage, setStage } from "./support/bench.ts";
import { percentile, sendBody } from "./support/load.ts";
import { meanBytes } from "./support/sink.ts";

const COUNT = 300;
const WARM_UP = 20;
const EVERY_MS = 100;
const ARRIVED_WITHIN_MS = 60_000;
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr";

type Call = { at: number; body: Buffer; signature: string };
type Sent = { id: string; message_id: string };

/** Runs the benchmark. */
export async function benchListen(): Promise<BenchResult> {
  const stage = await setStage();
  await using undo = new AsyncDisposableStack();
  undo.defer(() => stage.close());
  routeToSink(stage.dns, "customer.example");
  const calls = new Map<string, Call>();
  const receiver = undo.adopt(await startReceiver(calls), (server) => void server.close());
  undo.adopt(await startListening(stage, (receiver.address() as AddressInfo).port), (child) => void child.kill());
  const sent = await sendAll(stage, WARM_UP + COUNT);
  await stage.sink.waitFor(sent.length);
  await allArrived(calls, sent);
  const arrivals = await stage.sink.arrivals();
  const measured = sent.slice(WARM_UP);
  for (const { id } of measured.slice(0, 20)) verifyCall(calls.get(id) as Call);
  const times = measured.map(({ id, message_id }) => (calls.get(id) as Call).at - (arrivals.get(message_id) as number));
  const message_bytes = meanBytes(await stage.sink.samples());
  return {
    name: "listen",
    conditions: conditions({ requests_per_s: 1_000 / EVERY_MS, count: COUNT, message_bytes }, stage),
    ours: {
      p50_ms: round(percentile(times, 50), 1),
      p95_ms: round(percentile(times, 95), 1),
      p99_ms: round(percentile(times, 99), 1),
      max_ms: round(Math.max(...times), 1),
    },
    peers: {},
    ratio: {},
  };
}

async function startReceiver(calls: Map<string, Call>) {
  const server = createServer(async (request, response) => {
    const at = now();
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    response.end();
    const body = Buffer.concat(parts);
    const id = (JSON.parse(body.toString()) as { email_id: string }).email_id;
    calls.set(id, { at, body, signature: String(request.headers[SIGNATURE_HEADER.toLowerCase()]) });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return server;
}

/** The command, once it says that events go to the program. */
async function startListening({ settings }: Stage, port: number) {
  const child = spawn(
    process.execPath,
    [
      join(import.meta.dirname, "../src/main.ts"),
      "listen",
      `${port}/events`,
      ...["--events", "email.delivered", "--secret", SECRET],
    ],
    {
      env: { ...inheritedEnv(), POSTERN_API_KEY: settings.live_key, POSTERN_BASE_URL: settings.base_url },
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  let said = "";
  for await (const line of createInterface({ input: child.stderr })) {
    said += `${line}\n`;
    if (line.startsWith("Ready")) return child;
  }
  throw new Error(`postern listen ended:\n${said}`);
}

async function sendAll(stage: Stage, count: number): Promise<Sent[]> {
  const sending: Promise<Sent>[] = [];
  const startedAt = now();
  for (let n = 0; n < count; n += 1) {
    const left = startedAt + n * EVERY_MS - now();
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
    sending.push(send(stage, n));
  }
  return Promise.all(sending);
}

async function send({ settings, domain }: Stage, n: number): Promise<Sent> {
  const response = await fetch(`${settings.base_url}/v1/send`, {
    method: "POST",
    headers: { authorization: `Bearer ${settings.live_key}`, "content-type": "application/json" },
    body: sendBody(`orders@${domain}`, `customer${n}@customer.example`, n),
  });
  const body = (await response.json()) as Sent;
  if (response.status !== 202) throw new Error(`a mail was not accepted: ${JSON.stringify(body)}`);
  return body;
}

async function allArrived(calls: ReadonlyMap<string, Call>, sent: readonly Sent[]): Promise<void> {
  const deadline = now() + ARRIVED_WITHIN_MS;
  while (sent.some(({ id }) => !calls.has(id))) {
    if (now() > deadline)
      throw new Error(`${sent.filter(({ id }) => !calls.has(id)).length} events were not forwarded`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function verifyCall({ body, signature }: Call): void {
  verify(body, signature, SECRET);
}

/** Milliseconds since the epoch, finer than Date.now, as the sink's are. */
function now(): number {
  return performance.timeOrigin + performance.now();
}
