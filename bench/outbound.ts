// Signed messages a second from POST /v1/send to the sink's final 250, beside Debian's Postfix over the same sink with
// the same message, with OpenDKIM (RSA-2048) and without. Every message is counted by Message-ID; samples are verified.
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import { createResolver } from "../src/platform/dns/resolver.ts";
import { nodeStyleResolver } from "../test/support/node-resolver.ts";
import { postfixMissing, postfixVersion } from "../test/support/postfix.ts";
import {
  type BenchResult,
  conditions,
  costOf,
  isAlone,
  ratioTo,
  round,
  routeToSink,
  type Stage,
  setStage,
  throughSink,
  warmUp,
} from "./support/bench.ts";
import { benchHaraka, harakaVersion } from "./support/haraka.ts";
import { postMany, sendBody } from "./support/load.ts";
import { benchPostfix } from "./support/postfix.ts";
import { meanBytes } from "./support/sink.ts";

const COUNT = 20_000;
const PEER_COUNT = 4_000;
const WARM_UP = 12_000;
const PEER_WARM_UP = 3_000;
const CONNECTIONS = 64;
/** What smtp-source, Postfix and OpenDKIM put before a body. */
const PEER_HEADERS_BYTES = 900;

/** Runs the benchmark; peers that are not installed are left out and named in the conditions. */
export async function benchOutbound(): Promise<BenchResult> {
  const stage = await setStage();
  routeToSink(stage.dns, "customer.example");
  try {
    const warm = await warmUp(stage, WARM_UP, () => run(stage, WARM_UP));
    const [ours, cost] = await costOf(stage, COUNT, () => run(stage, COUNT));
    const { verified, message_bytes } = await verifySamples(stage);
    const peers = isAlone() ? {} : await benchPeers(stage, message_bytes);
    return {
      name: "outbound",
      conditions: conditions(
        {
          message_bytes,
          count: COUNT,
          peer_count: PEER_COUNT,
          warm_up: WARM_UP,
          peer_warm_up: PEER_WARM_UP,
          connections: CONNECTIONS,
          peers: [postfixMissing() ?? postfixVersion(), harakaVersion()],
          dkim: "RSA-2048",
        },
        stage,
      ),
      ours: { per_s: round(ours), ...cost, ...warm, verified_samples: verified },
      peers,
      ratio: ratioTo(peers, ours),
    };
  } finally {
    await stage.close();
  }
}

/** Those that are installed, signed and unsigned, with messages of about the length that ours had at the sink. */
async function benchPeers({ sink }: Stage, messageBytes: number): Promise<BenchResult["peers"]> {
  const peers: BenchResult["peers"] = {};
  const candidates = [
    { name: "postfix+opendkim", signed: true, bench: benchPostfix },
    { name: "postfix", signed: false, bench: benchPostfix },
    { name: "haraka+dkim", signed: true, bench: benchHaraka },
    { name: "haraka", signed: false, bench: benchHaraka },
  ];
  for (const { name, signed, bench } of candidates) {
    const load = { sink, count: PEER_COUNT, warm_up: PEER_WARM_UP, connections: CONNECTIONS, signed };
    const figures = await bench({ ...load, body_bytes: messageBytes - PEER_HEADERS_BYTES });
    if (figures !== null) peers[name] = figures;
  }
  return peers;
}

/** Messages a second from the first request to the last final dot; every one counted once. */
export async function run(stage: Stage, count: number): Promise<number> {
  return throughSink(stage, count, () =>
    postMany({
      base_url: stage.settings.base_url,
      path: "/v1/send",
      key: stage.settings.live_key,
      count,
      connections: CONNECTIONS,
      body: (n) => sendBody(`orders@${stage.domain}`, `customer${n}@customer.example`, n),
    }),
  );
}

/** How many samples there were, all with a signature that verifies, and their mean length. */
async function verifySamples(stage: Stage): Promise<{ verified: number; message_bytes: number }> {
  const resolver = createResolver({
    servers: [stage.dns.address],
    timeout_ms: 2_000,
    attempts: 1,
    cache_max: 100,
    validating: false,
    now: () => Date.now(),
  });
  const samples = await stage.sink.samples();
  for (const sample of samples) {
    const { results } = await dkimVerify(sample, { resolver: nodeStyleResolver(resolver) as never });
    if (results[0]?.status.result !== "pass") throw new Error("a sampled signature does not verify");
  }
  return { verified: samples.length, message_bytes: meanBytes(samples) };
}
