// npm run bench -- <name>|all [--json] [--rows N]: N rows or events for the benches of a deep database (10,000,000).
import { parseArgs } from "node:util";
import { benchAccept } from "./accept.ts";
import { benchBatch } from "./batch.ts";
import { benchClaims } from "./claims.ts";
import { benchInbound } from "./inbound.ts";
import { benchLatency } from "./latency.ts";
import { benchOutbound } from "./outbound.ts";
import { benchSchedule } from "./schedule.ts";
import { benchStats } from "./stats.ts";
import { type BenchResult, report } from "./support/bench.ts";
import { benchSuppressions } from "./suppressions.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false }, rows: { type: "string", default: "10000000" } },
});
const rows = Number(values.rows);

const BENCHES = new Map<string, () => Promise<BenchResult>>([
  ["accept", benchAccept],
  ["batch", benchBatch],
  ["outbound", benchOutbound],
  ["inbound", benchInbound],
  ["latency", benchLatency],
  ["claims", benchClaims],
  ["schedule", benchSchedule],
  ["stats", () => benchStats({ events: rows })],
  ["suppressions", () => benchSuppressions({ rows })],
]);

const [name = ""] = positionals;
const chosen = name === "all" ? [...BENCHES.keys()] : [name];
if (!chosen.every((word) => BENCHES.has(word))) {
  console.error(`npm run bench -- <name> [--json] [--rows N]; there are ${[...BENCHES.keys()].join(", ")}, all`);
  process.exit(2);
}
for (const word of chosen) {
  console.log(`bench ${word}: a minute or more`);
  report(await (BENCHES.get(word) as () => Promise<BenchResult>)(), values.json);
}
process.exit(0);
