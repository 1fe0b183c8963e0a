// npm run bench -- <name>|all [--json] [--rows N] [--resume]: N rows or events for the benches of a deep database (10,000,000), of an
// import and of a queue of scheduled mail (1,000,000).
import { parseArgs } from "node:util";
import { benchAccept } from "./accept.ts";
import { benchAll } from "./all.ts";
import { benchBatch } from "./batch.ts";
import { benchClaims } from "./claims.ts";
import { benchGrowth } from "./growth.ts";
import { benchImport } from "./import.ts";
import { benchInbound } from "./inbound.ts";
import { benchLatency } from "./latency.ts";
import { benchMasked } from "./masked.ts";
import { benchOutbound } from "./outbound.ts";
import { benchSchedule } from "./schedule.ts";
import { benchStats } from "./stats.ts";
import { type BenchResult, report } from "./support/bench.ts";
import { benchSuppressions } from "./suppressions.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    rows: { type: "string" },
    resume: { type: "boolean", default: false },
  },
});
const rows = values.rows === undefined ? undefined : Number(values.rows);

const given = rows === undefined ? undefined : { rows };

const BENCHES = new Map<string, () => Promise<BenchResult>>([
  ["accept", benchAccept],
  ["batch", benchBatch],
  ["outbound", benchOutbound],
  ["inbound", benchInbound],
  ["masked", () => benchMasked(given)],
  ["latency", benchLatency],
  ["claims", benchClaims],
  ["schedule", () => benchSchedule(given)],
  ["stats", () => benchStats(rows === undefined ? undefined : { events: rows })],
  ["suppressions", () => benchSuppressions(given)],
  ["import", () => benchImport(given)],
  ["growth", () => benchGrowth(given)],
]);

const [name = ""] = positionals;
const bench = BENCHES.get(name);
if (!bench && name !== "all") {
  console.error(`npm run bench -- <name> [--json] [--rows N]; there are ${[...BENCHES.keys()].join(", ")}, all`);
  process.exit(2);
}
if (!bench) {
  const { json, resume } = values;
  process.exit((await benchAll({ names: [...BENCHES.keys()], rows: values.rows, json, resume })) ? 0 : 1);
}
console.log(`bench ${name}: a minute or more`);
report(await bench(), values.json);
process.exit(0);
