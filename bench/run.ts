// npm run bench -- <name> [--json]
import { benchAccept } from "./accept.ts";
import { benchBatch } from "./batch.ts";
import { benchClaims } from "./claims.ts";
import { benchLatency } from "./latency.ts";
import { benchOutbound } from "./outbound.ts";
import { benchSchedule } from "./schedule.ts";
import { type BenchResult, report } from "./support/bench.ts";

const BENCHES = new Map<string, () => Promise<BenchResult>>([
  ["accept", benchAccept],
  ["batch", benchBatch],
  ["outbound", benchOutbound],
  ["latency", benchLatency],
  ["claims", benchClaims],
  ["schedule", benchSchedule],
]);

const json = process.argv.includes("--json");
const [name = ""] = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const chosen = name === "all" ? [...BENCHES.keys()] : [name];
if (!chosen.every((word) => BENCHES.has(word))) {
  console.error(`npm run bench -- <name> [--json]; there are ${[...BENCHES.keys()].join(", ")}, all`);
  process.exit(2);
}
for (const word of chosen) {
  console.log(`bench ${word}: takes about a minute`);
  report(await (BENCHES.get(word) as () => Promise<BenchResult>)(), json);
}
process.exit(0);
