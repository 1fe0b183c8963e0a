// The process of `neighbours` that is measured: another organization's program, a monitor and an SMTP client. A process of
// its own: that of the scenario receives all mail, the attacker's as well, and could not ask in time.
import { rawSmtp } from "../support/raw-smtp.ts";
import { type LoadResult, sendAll, sleep } from "./load.ts";
import type { Acknowledged } from "./recorder.ts";

/** Small e-mails, over as many connections as a load has. */
export type Turn = {
  base_url: string;
  live_key: string;
  mx_port: number;
  /** Distinguishes the keys of this turn. */
  name: string;
  count: number;
  from: string;
  pause_ms: number;
};

/** What the organization and the other two had of the service, in milliseconds for each request. */
export type Measured = {
  latencies_ms: number[];
  healthz_ms: number[];
  rcpt_ms: number[];
  acknowledged: Acknowledged[];
  /** Keys of requests that were answered 500. */
  broken: string[];
};

const PROBE_EVERY_MS = 50;

process.on("message", async (turn: Turn) => process.send?.(await play(turn)));
process.once("disconnect", () => process.exit());

async function play(turn: Turn): Promise<Measured> {
  const probes = startProbes(turn);
  const acknowledged: Acknowledged[] = [];
  const broken: string[] = [];
  const { latencies_ms }: LoadResult = await sendAll({
    ...turn,
    base_urls: [turn.base_url],
    recorder: { keep: async (one) => void acknowledged.push(one), noteBroken: (key) => broken.push(key) },
    recipient: (n) => `r${n}@d${n % 40}.recipients.example`,
  });
  return { latencies_ms, ...(await probes.stop()), acknowledged, broken };
}

/** Asks /healthz, and opens an SMTP session up to RCPT, again and again. */
function startProbes({ base_url, mx_port }: Turn) {
  const times = { healthz_ms: [] as number[], rcpt_ms: [] as number[] };
  let isGoing = true;
  const again = async (into: number[], ask: () => Promise<unknown>): Promise<void> => {
    while (isGoing) {
      const askedAt = performance.now();
      await ask();
      into.push(performance.now() - askedAt);
      await sleep(PROBE_EVERY_MS);
    }
  };
  const healthz = again(times.healthz_ms, async () => (await fetch(`${base_url}/healthz`)).text());
  // A session each: what only resets its transactions is let go by the server.
  const rcpt = again(times.rcpt_ms, async () => {
    const client = await rawSmtp(mx_port);
    await client.reply();
    await client.ask("EHLO probe.example");
    await client.ask("MAIL FROM:<>");
    await client.ask("RCPT TO:<postmaster@postern.example>");
    client.end();
  });
  return {
    async stop() {
      isGoing = false;
      await Promise.all([healthz, rcpt]);
      return times;
    },
  };
}
