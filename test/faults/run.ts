// npm run faults -- <scenario>|all [--rounds n] [--seed s] [--sends n] [--rows n] [--json]: breaks things over real
// processes and a real PostgreSQL, and compares what was acknowledged with what arrived. With --json the last line is one JSON object. Exit
// code 0: passed; 1: failed; 2: not known; 3: this machine lacks what it takes (said, never passed). What each does and
// needs, with figures: README.md.
import { parseArgs } from "node:util";
import { runAll } from "./all.ts";
import { runBadMx } from "./bad-mx.ts";
import { runDeepQueue } from "./deep-queue.ts";
import { runDiskFull } from "./disk-full.ts";
import { runDnsFailures } from "./dns-failures.ts";
import { runKill } from "./kill.ts";
import { Lacking } from "./lacking.ts";
import { runLostCommit } from "./lost-commit.ts";
import { runPostgresRestart } from "./postgres-restart.ts";
import { runPowerCut } from "./power-cut.ts";
import { runReceiveKill } from "./receive-kill.ts";
import { runReceiversDown } from "./receivers-down.ts";
import { runRollingRestart } from "./rolling-restart.ts";
import { runRotation } from "./rotation.ts";
import type { ScenarioOptions } from "./round.ts";
import { runStalledNode } from "./stalled-node.ts";
import { runUpgrade } from "./upgrade.ts";

type Result = { ok: boolean } & Record<string, unknown>;

type Scenario = { rounds: number; what: string; run(options: ScenarioOptions): Promise<Result> };

const SCENARIOS: Record<string, Scenario> = {
  kill: { rounds: 1, what: "kill -9 of every process and of PostgreSQL in the middle of 5,000 sends", run: runKill },
  "postgres-restart": {
    rounds: 3,
    what: "the database stops, at once, in good order or killed",
    run: runPostgresRestart,
  },
  "lost-commit": {
    rounds: 1,
    what: "connections to the database are cut at their commits, the answers lost",
    run: runLostCommit,
  },
  "bad-mx": {
    rounds: 3,
    what: "dead, silent, slow, lying and forgetful mail servers beside a good one",
    run: runBadMx,
  },
  "dns-failures": {
    rounds: 1,
    what: "SERVFAIL, time-outs and flapping NXDOMAIN of the recipients' domains for hours (moved clock)",
    run: runDnsFailures,
  },
  "stalled-node": { rounds: 1, what: "a sending process is stopped past its lease and woken", run: runStalledNode },
  "rolling-restart": { rounds: 1, what: "20 restarts with SIGTERM under load", run: runRollingRestart },
  upgrade: { rounds: 1, what: "an old and this version side by side on one database, under load", run: runUpgrade },
  "receivers-down": {
    rounds: 1,
    what: "the webhook receiver is down for 36 hours (moved clock)",
    run: runReceiversDown,
  },
  rotation: {
    rounds: 1,
    what: "signing secrets rotated while webhooks go out, over the edges of their grace (moved clock)",
    run: runRotation,
  },
  "receive-kill": {
    rounds: 3,
    what: "kill -9 of mx and of PostgreSQL in the middle of 2,000 mails that come in",
    run: runReceiveKill,
  },
  "deep-queue": {
    rounds: 1,
    what: "a million messages of one organization are queued (--rows); a new one sends beside them",
    run: runDeepQueue,
  },
  "disk-full": { rounds: 1, what: "no room under the database and the data folder for six seconds", run: runDiskFull },
  "power-cut": { rounds: 3, what: "the disk loses its power; the control run must lose mail", run: runPowerCut },
};
const NAMES = Object.keys(SCENARIOS);
SCENARIOS.all = {
  rounds: 1,
  what: "every scenario in order, with the rounds that each has by itself",
  run: (options) => runAll(NAMES, options),
};

function usage(): never {
  console.error("npm run faults -- <scenario>|all [--rounds n] [--seed s] [--sends n] [--rows n] [--json]\n");
  for (const [name, { what }] of Object.entries(SCENARIOS)) console.error(`  ${name.padEnd(18)} ${what}`);
  process.exit(2);
}

function readArguments() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: "string" },
      seed: { type: "string" },
      sends: { type: "string" },
      rows: { type: "string" },
      json: { type: "boolean", default: false },
    },
  });
  const name = positionals[0] ?? "";
  const scenario = SCENARIOS[name];
  if (!scenario || positionals.length > 1) return usage();
  const number = (text: string | undefined, fallback: number): number => {
    const value = text === undefined ? fallback : Number(text);
    if (!Number.isInteger(value) || value < 0) usage();
    return value;
  };
  return {
    name,
    scenario,
    json: values.json,
    rounds: number(values.rounds, scenario.rounds),
    seed: number(values.seed, Date.now() % 1_000_000),
    ...(values.sends === undefined ? {} : { sends: number(values.sends, 0) }),
    ...(values.rows === undefined ? {} : { rows: number(values.rows, 0) }),
  };
}

/** Of `all`: nothing failed, and something could not be played. */
function isUnplayed({ results }: Record<string, unknown>): boolean {
  const failed = (results as { ok: boolean; skipped?: string }[] | undefined)?.filter(({ ok }) => !ok) ?? [];
  return failed.length > 0 && failed.every(({ skipped }) => skipped !== undefined);
}

// Whoever is interrupted leaves no servers, processes and mounts behind: their `exit` listeners end them. A second signal
// must not cut that short.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));

const { name, scenario, json, ...options } = readArguments();
const startedAt = performance.now();
console.log(`${name}: ${scenario.what} (${options.rounds} rounds, seed ${options.seed})`);
try {
  const result = await scenario.run({ ...options, say: (text) => console.log(`  ${text}`) });
  const seconds = Math.round((performance.now() - startedAt) / 100) / 10;
  const { ok, ...figures } = result;
  const line = { scenario: name, rounds: options.rounds, seed: options.seed, ...figures, seconds, ok };
  console.log(json ? JSON.stringify(line) : `${ok ? "passed" : "FAILED"}: ${JSON.stringify(line)}`);
  process.exitCode = ok ? 0 : isUnplayed(figures) ? 3 : 1;
} catch (error) {
  const isLacking = error instanceof Lacking;
  const { message } = error as Error;
  if (!isLacking) console.error(error);
  const line = { scenario: name, ...(isLacking ? { skipped: message } : { error: message }), ok: false };
  console.log(json ? JSON.stringify(line) : `${isLacking ? "not played" : "FAILED"}: ${message}`);
  // At once: whatever a stage that could not be set has left open would keep this process.
  process.exit(isLacking ? 3 : 1);
}
