// What every peer of the outbound benchmarks is given: mail from Postfix's smtp-source over as many lasting connections as
// ours has, counted at the same sink as ours, after the same warm-up. How the peers are set up, and why: bench/README.md.
import { spawn } from "node:child_process";
import { processorSeconds } from "./processor.ts";
import { type BenchSink, meanBytes } from "./sink.ts";

export type PeerLoad = {
  sink: BenchSink;
  count: number;
  /** Messages before the measuring. */
  warm_up: number;
  connections: number;
  signed: boolean;
  body_bytes: number;
  recipient?: string;
};

/** A running peer: where it listens, and the processes that work for it (their children belong to them). */
export type Peer = { port: number; pids: number[] };

/** Messages a second until the sink had them, and until the peer had taken them; its processor time a message. */
export type PeerFigures = { per_s: number; accepts_per_s: number; processor_us: number; message_bytes: number };

/** What a competent operator changes of a Postfix that hands everything to one fast host. */
export const POSTFIX_TUNED = `in_flow_delay = 0
default_destination_concurrency_limit = 100
initial_destination_concurrency = 20
`;

/** From the first connection to the peer to the last final dot at the sink. */
export async function feedPeer({ port, pids }: Peer, load: PeerLoad): Promise<PeerFigures> {
  const { sink, count, warm_up, signed } = load;
  await sink.reset();
  await send(port, { ...load, count: warm_up });
  await sink.waitFor(warm_up, "received");
  await sink.reset();
  const before = processorSeconds(pids);
  const startedAt = performance.now();
  const sending = send(port, load).then(() => performance.now());
  const endedAt = await sink.waitFor(count, "received");
  const acceptedAt = await sending;
  const used = processorSeconds(pids) - before;
  return {
    per_s: Math.round(count / ((endedAt - startedAt) / 1000)),
    accepts_per_s: Math.round(count / ((acceptedAt - startedAt) / 1000)),
    processor_us: Math.round((used * 1e6) / count),
    message_bytes: await checkSigned(sink, signed),
  };
}

/** The mean length of the samples, which are signed as they should be. */
async function checkSigned(sink: BenchSink, signed: boolean): Promise<number> {
  const samples = await sink.samples();
  for (const sample of samples) {
    const hasSignature = /^dkim-signature:/im.test(sample.toString("latin1"));
    if (hasSignature !== signed)
      throw new Error(`the peer's mail is ${signed ? "not " : ""}signed: nothing was compared`);
  }
  return meanBytes(samples);
}

/** -d: a connection is kept for the next message, as our load generators do it. */
function send(port: number, load: PeerLoad): Promise<void> {
  const { count, connections, body_bytes, recipient = "customer@customer.example" } = load;
  const size = ["-d", "-s", String(connections), "-m", String(count), "-l", String(body_bytes)];
  const args = [...size, "-f", "orders@shop.example", "-t", recipient, `127.0.0.1:${port}`];
  const child = spawn("smtp-source", args, { stdio: "pipe" });
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`smtp-source ended with ${code}`))));
  });
}
