// What every peer of the outbound benchmark is given: mail from Postfix's smtp-source over 20 connections, counted at the
// same sink as ours.
import { spawn } from "node:child_process";
import type { BenchSink } from "./sink.ts";

export type PeerLoad = { sink: BenchSink; count: number; signed: boolean; body_bytes: number; recipient?: string };

const CONNECTIONS = 20;
const WARM_UP = 200;

/** Messages a second from the first connection to the peer at `port` to the last final dot at the sink. */
export async function feedPeer(port: number, load: PeerLoad): Promise<number> {
  const { sink, count, signed } = load;
  await sink.reset();
  await send(port, { ...load, count: WARM_UP });
  await sink.waitFor(WARM_UP, "received");
  await sink.reset();
  const startedAt = performance.now();
  const sending = send(port, load);
  const endedAt = await sink.waitFor(count, "received");
  await sending;
  await checkSigned(sink, signed);
  return count / ((endedAt - startedAt) / 1000);
}

async function checkSigned(sink: BenchSink, signed: boolean): Promise<void> {
  const [sample] = await sink.samples();
  const hasSignature = /^dkim-signature:/im.test(sample?.toString("latin1") ?? "");
  if (hasSignature !== signed)
    throw new Error(`the peer's mail is ${signed ? "not " : ""}signed: nothing was compared`);
}

function send(port: number, { count, body_bytes, recipient = "customer@customer.example" }: PeerLoad): Promise<void> {
  const size = ["-s", String(CONNECTIONS), "-m", String(count), "-l", String(body_bytes)];
  const args = [...size, "-f", "orders@shop.example", "-t", recipient, `127.0.0.1:${port}`];
  const child = spawn("smtp-source", args, { stdio: "pipe" });
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`smtp-source ended with ${code}`))));
  });
}
