// The scenarios: what each does, in how many rounds, and that its result has the figures which every last line has.
import { runAll } from "./all.ts";
import { runBackup } from "./backup.ts";
import { runBadMx } from "./bad-mx.ts";
import { runClocks } from "./clocks.ts";
import { runCopies } from "./copies.ts";
import { runDeepQueue } from "./deep-queue.ts";
import { runDiskFull } from "./disk-full.ts";
import { runDnsFailures } from "./dns-failures.ts";
import { runKill } from "./kill.ts";
import type { Figures } from "./line.ts";
import { runLostCommit } from "./lost-commit.ts";
import { runNeighbours } from "./neighbours.ts";
import { runPostgresRestart } from "./postgres-restart.ts";
import { runPowerCut } from "./power-cut.ts";
import { runReceiveKill } from "./receive-kill.ts";
import { runReceiversDown } from "./receivers-down.ts";
import { runRollingRestart } from "./rolling-restart.ts";
import { runRotation } from "./rotation.ts";
import type { ScenarioOptions } from "./round.ts";
import { runStalledNode } from "./stalled-node.ts";
import { runUpgrade } from "./upgrade.ts";

export type Scenario = {
  /** The default; 0 of `all`: as many as each has. */
  rounds: number;
  /** One round, whatever is asked. */
  once?: true;
  what: string;
  run(options: ScenarioOptions): Promise<Figures & Record<string, unknown>>;
};

const ONES = {
  kill: {
    rounds: 1,
    what: "kill -9 of every process and of PostgreSQL in the middle of sends, 5,000 a round by default",
    run: runKill,
  },
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
  clocks: {
    rounds: 1,
    what: "the clocks of processes and database are set forward and back by 1 s to 400 days",
    run: runClocks,
  },
  "receive-kill": {
    rounds: 3,
    what: "kill -9 of mx and of PostgreSQL in the middle of 2,000 mails that come in",
    run: runReceiveKill,
  },
  "deep-queue": {
    rounds: 1,
    once: true,
    what: "a million messages of one organization are queued (--rows); a new one sends beside them",
    run: runDeepQueue,
  },
  neighbours: {
    rounds: 1,
    once: true,
    what: "one organization sends the worst requests that a search finds; another, /healthz and RCPT are answered as ever",
    run: runNeighbours,
  },
  "disk-full": { rounds: 1, what: "no room under the database and the data folder for six seconds", run: runDiskFull },
  copies: {
    rounds: 1,
    what: "restored, copied, forked and failed-over databases: who pauses and who goes on",
    run: runCopies,
  },
  backup: {
    rounds: 1,
    what: "a backup under load, the machine is lost, the backup is restored elsewhere: every row, every body, the pause",
    run: runBackup,
  },
  "power-cut": { rounds: 3, what: "the disk loses its power; the control run must lose mail", run: runPowerCut },
} satisfies Record<string, Scenario>;

const ALL: Scenario = {
  rounds: 0,
  what: "every scenario in order, with the rounds that each has by itself",
  run: (options) => runAll(Object.keys(ONES), options),
};

/** By name, `all` included. */
export const SCENARIOS: ReadonlyMap<string, Scenario> = new Map(Object.entries({ ...ONES, all: ALL }));
