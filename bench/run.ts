// npm run bench -- <name>|all [--json] [--rows N] [--resume] [--against COMMIT [--turns N]]: N rows or events for the benches of a deep database (10,000,000), of an
// import and of a queue of scheduled mail (1,000,000).
import { chmodSync, mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { readOptions } from "../test/support/options.ts";
import { benchAccept } from "./accept.ts";
import { benchAgainst } from "./against.ts";
import { benchAll } from "./all.ts";
import { benchBatch } from "./batch.ts";
import { benchClaims } from "./claims.ts";
import { benchGrowth } from "./growth.ts";
import { benchImport } from "./import.ts";
import { benchInbound } from "./inbound.ts";
import { benchLatency } from "./latency.ts";
import { benchListen } from "./listen.ts";
import { benchLists } from "./lists.ts";
import { benchMasked } from "./masked.ts";
import { benchOutbound } from "./outbound.ts";
import { benchPooler } from "./pooler.ts";
import { benchRest } from "./rest.ts";
import { benchSchedule } from "./schedule.ts";
import { benchStats } from "./stats.ts";
import { type BenchResult, countSystemCalls, profileInto, report } from "./support/bench.ts";
import { canCountCalls } from "./support/calls.ts";
import { linesOf, sharesOf } from "./support/profile.ts";
import { benchSuppressions } from "./suppressions.ts";
import { benchWal } from "./wal.ts";
import { benchWebhooks } from "./webhooks.ts";

const USE =
  "npm run bench -- <name>|all [--json] [--rows n] [--resume] [--against commit [--turns n]] [--profile folder] [--calls] [--postgres installed] [--keep folder] [--only operation]";
const { values, positionals } = readOptions(
  {
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      rows: { type: "string" },
      resume: { type: "boolean", default: false },
      against: { type: "string" },
      turns: { type: "string", default: "2" },
      keep: { type: "string" },
      only: { type: "string" },
      profile: { type: "string" },
      calls: { type: "boolean", default: false },
      postgres: { type: "string" },
    },
  },
  USE,
);

type Bench = { run(rows?: number): Promise<BenchResult>; takesRows?: boolean };

const given = (rows: number | undefined) => (rows === undefined ? undefined : { rows });

const keptAndOnly = () => ({
  ...(values.keep === undefined ? {} : { keep: values.keep }),
  ...(values.only === undefined ? {} : { only: values.only }),
});

const BENCHES = new Map<string, Bench>([
  ["accept", { run: benchAccept }],
  ["batch", { run: benchBatch }],
  ["outbound", { run: benchOutbound }],
  ["inbound", { run: benchInbound }],
  ["masked", { run: (rows) => benchMasked(given(rows)), takesRows: true }],
  ["latency", { run: benchLatency }],
  ["listen", { run: benchListen }],
  ["webhooks", { run: (rows) => benchWebhooks(given(rows)), takesRows: true }],
  ["pooler", { run: (rows) => benchPooler(given(rows)), takesRows: true }],
  ["rest", { run: benchRest }],
  ["wal", { run: (rows) => benchWal(given(rows)), takesRows: true }],
  ["claims", { run: benchClaims }],
  ["schedule", { run: (rows) => benchSchedule(given(rows)), takesRows: true }],
  ["stats", { run: (rows) => benchStats(rows === undefined ? undefined : { events: rows }), takesRows: true }],
  ["suppressions", { run: (rows) => benchSuppressions(given(rows)), takesRows: true }],
  ["lists", { run: (rows) => benchLists({ ...given(rows), ...keptAndOnly() }), takesRows: true }],
  ["import", { run: (rows) => benchImport(given(rows)), takesRows: true }],
  ["growth", { run: (rows) => benchGrowth(given(rows)), takesRows: true }],
]);

function refuse(sentence: string): never {
  console.error(
    `${sentence}\nnpm run bench -- <name> [--json] [--rows N] [--profile DIR] [--calls] [--postgres installed]`,
  );
  console.error(
    `npm run bench -- all [--json] [--resume]\nnpm run bench -- <name>|all --against <commit> [--turns N] [--json]; there are ${[...BENCHES.keys()].join(", ")}`,
  );
  process.exit(2);
}

function readRows(name: string): number | undefined {
  if (values.rows === undefined) return undefined;
  const rows = Number(values.rows);
  if (!BENCHES.get(name)?.takesRows) refuse(`${name} takes no --rows`);
  if (!Number.isInteger(rows) || rows < 1) refuse(`--rows ${values.rows} is not a whole number above 0`);
  return rows;
}

// Whoever is interrupted leaves no servers behind: `exit` listeners end them (support/bench.ts). A second signal must not cut
// that short.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));

const [name = ""] = positionals;
const bench = BENCHES.get(name);
if (!bench && name !== "all") refuse(`there is no bench of the name ${name}`);
const rows = readRows(name);
if (values.profile !== undefined && (!bench || values.against !== undefined)) {
  refuse("--profile takes one bench of this version: neither all nor --against");
}
if (values.calls) {
  if (!bench || values.against !== undefined)
    refuse("--calls takes one bench of this version: neither all nor --against");
  if (!canCountCalls()) refuse("--calls needs strace, which is not installed (Debian: strace)");
  countSystemCalls();
}
if (values.postgres !== undefined) {
  if (values.postgres !== "installed") refuse(`--postgres ${values.postgres}: it takes "installed" alone`);
  process.env.POSTERN_BENCH_POSTGRES = values.postgres;
}
if (values.against !== undefined) {
  const turns = Number(values.turns);
  if (!Number.isInteger(turns) || turns < 1) refuse(`--turns ${values.turns} is not a whole number above 0`);
  const names = bench ? [name] : [...BENCHES.keys()];
  const { against: commit, rows: given, json } = values;
  process.exit((await benchAgainst({ names, commit, turns, json, ...(given ? { rows: given } : {}) })) ? 0 : 1);
}
if (!bench) {
  const { json, resume } = values;
  process.exit((await benchAll({ names: [...BENCHES.keys()], json, resume })) ? 0 : 1);
}
const profiles = values.profile === undefined ? null : resolve(values.profile);
if (profiles !== null) {
  mkdirSync(profiles, { recursive: true });
  chmodSync(profiles, 0o777); // started by root, Postern may go on as a user of its own
  profileInto(profiles);
}
console.log(`bench ${name}: a minute or more`);
const result = await bench.run(rows);
if (profiles !== null) console.log(`${linesOf(sharesOf(profiles)).join("\n")}\nflame graphs: ${profiles}`);
report(result, values.json);
process.exit(0);
