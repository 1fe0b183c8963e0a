// The play: mail flows both ways in every cell while one is moved between the workers and back and is backed up, a worker is
// killed with -9 and started again, and a machine with one process of every cell is lost for good.

import { moveCell } from "../../src/platform/database/citus/cells.ts";
import { sleep } from "../faults/load.ts";
import { type Citus, startCitus } from "../support/citus.ts";
import { type BackedUp, backUp } from "./backup.ts";
import { type Cell, makeCell, placeOf, SECOND_MACHINE, workerAt } from "./cells.ts";
import { type Load, startLoad } from "./load.ts";
import type { Span } from "./timeline.ts";

export type Pauses = {
  /** Of the cells that it is about, and of all others: the longest time in which no mail was accepted. */
  longest_pause_ms: number;
  others_longest_pause_ms: number;
};

export type Moved = Pauses & { cell: string; from: string; to: string; seconds: number };
export type WorkerKilled = Pauses & { worker: string; cells: string[]; down_ms: number };
export type NodeKilled = {
  processes: number;
  left: number;
  /** E-mails that the killed processes had taken to deliver. */
  held: number;
  longest_pause_ms: number;
};

export type Played = Awaited<ReturnType<Load["end"]>> & {
  longest_pause_ms: number;
  moves: Moved[];
  backup: BackedUp;
  worker_killed: WorkerKilled;
  node_killed: NodeKilled;
};

export type ScaleOptions = { dir: string; cells: number; organizations: number; say(text: string): void };

const WORKERS = 2;
/** Mail flows so long before anything is done to it, and between two things. */
const QUIET_MS = 5_000;
const DOWN_MS = 3_000;
const LOOK_MS = 50;
const FLOWS_AGAIN_MS = 180_000;
const SETTINGS = { max_connections: "500" };

/** Plays it on a Citus of its own in this folder. */
export async function playScale(options: ScaleOptions): Promise<Played> {
  const { dir, say } = options;
  const citus = await startCitus(dir, WORKERS, SETTINGS);
  const cells: Cell[] = [];
  try {
    for (let n = 0; n < options.cells; n += 1) {
      const organizations = shareOf(options, n);
      cells.push(await makeCell(citus, { name: `cell_${n + 1}`, worker: n % WORKERS, organizations }));
      say(`cell_${n + 1} is on worker ${(n % WORKERS) + 1}: ${organizations} organizations, 2 processes`);
    }
    return await playOn(citus, cells, say);
  } finally {
    await Promise.all(cells.map(({ stage }) => stage.close()));
    await citus.stop();
  }
}

/** Of so many organizations the ones of this cell. */
function shareOf({ cells, organizations }: ScaleOptions, n: number): number {
  return Math.floor(organizations / cells) + (n < organizations % cells ? 1 : 0);
}

async function playOn(citus: Citus, cells: Cell[], say: ScaleOptions["say"]): Promise<Played> {
  const load = startLoad(cells);
  const from = performance.now();
  await flowsAgain(cells);
  await sleep(QUIET_MS);
  const [moving] = cells as [Cell];
  const moves: Moved[] = [];
  for (const worker of [1, 0]) {
    moves.push(await move(citus, cells, { moving, worker }));
    say(`moved: ${JSON.stringify(moves.at(-1))}`);
    await sleep(QUIET_MS);
  }
  const backup = await backUp(moving);
  say(`backed up and restored: ${JSON.stringify(backup)}`);
  const worker_killed = await killWorker(citus, cells);
  say(`worker killed: ${JSON.stringify(worker_killed)}`);
  await sleep(QUIET_MS);
  const node_killed = await killMachine(cells);
  say(`processes killed: ${JSON.stringify(node_killed)}`);
  await sleep(QUIET_MS);
  const span = { from, to: performance.now() };
  const verdicts = await load.end();
  return { ...verdicts, longest_pause_ms: longestPause(cells, span), moves, backup, worker_killed, node_killed };
}

async function move(citus: Citus, cells: Cell[], { moving, worker }: { moving: Cell; worker: number }): Promise<Moved> {
  const { name } = moving;
  const at = await placeOf(citus, name);
  const to = workerAt(citus, worker);
  const span = await during(cells, () => moveCell(citus.adminUrlOf(), { name, to }));
  if ((await placeOf(citus, name)).port !== to.port) throw new Error(`${name} did not move`);
  const seconds = Math.round((span.done - span.from) / 100) / 10;
  const places = { cell: name, from: `${at.host}:${at.port}`, to: `${to.host}:${to.port}` };
  return { ...places, seconds, ...pausesOf(cells, [name], span) };
}

/** The first one, as a machine does that loses its power and comes back. */
async function killWorker(citus: Citus, cells: Cell[]): Promise<WorkerKilled> {
  const { host, port } = workerAt(citus, 0);
  const [worker] = citus.workers as [Citus["coordinator"]];
  const places = await Promise.all(cells.map(async ({ name }) => ({ name, port: (await placeOf(citus, name)).port })));
  const names = places.filter((place) => place.port === port).map(({ name }) => name);
  const span = await during(cells, async () => {
    process.kill(worker.pid, "SIGKILL");
    await sleep(DOWN_MS);
    await worker.restart();
  });
  const down_ms = Math.round(span.done - span.from);
  return { worker: `${host}:${port}`, cells: names, down_ms, ...pausesOf(cells, names, span) };
}

/** The second one, with a process of each cell; it does not come back. */
async function killMachine(cells: Cell[]): Promise<NodeKilled> {
  let held = 0;
  const span = await during(cells, async () => {
    const taken = await Promise.all(cells.map(heldBySecond));
    held = taken.reduce((sum, n) => sum + n, 0);
    await Promise.all(cells.map(({ stage }) => stage.kill(SECOND_MACHINE)));
  });
  return { processes: cells.length, left: cells.length, held, longest_pause_ms: longestPause(cells, span) };
}

async function heldBySecond({ stage }: Cell): Promise<number> {
  const pid = stage.processes.get(SECOND_MACHINE)?.pid;
  const [row] = await stage.rows<{ n: number }>(
    "select count(*)::int as n from delivery d join node n on n.id = d.owner where n.pid = $1",
    [pid],
  );
  return row?.n ?? 0;
}

type Done = Span & { done: number };

/** Does the work, and waits until every cell accepts mail again, both ways. */
async function during(cells: readonly Cell[], work: () => Promise<void>): Promise<Done> {
  const from = performance.now();
  await work();
  const done = performance.now();
  await flowsAgain(cells);
  return { from, done, to: performance.now() };
}

async function flowsAgain(cells: readonly Cell[]): Promise<void> {
  const since = performance.now();
  const flows = ({ sent, received }: Cell): boolean => sent.isAfter(since) && received.isAfter(since);
  while (!cells.every(flows)) {
    if (performance.now() - since > FLOWS_AGAIN_MS) {
      const names = cells.filter((cell) => !flows(cell)).map(({ name }) => name);
      throw new Error(`no mail is accepted for three minutes by ${names.join(", ")}`);
    }
    await sleep(LOOK_MS);
  }
}

function pausesOf(cells: readonly Cell[], names: readonly string[], span: Span): Pauses {
  return {
    longest_pause_ms: longestPause(
      cells.filter(({ name }) => names.includes(name)),
      span,
    ),
    others_longest_pause_ms: longestPause(
      cells.filter(({ name }) => !names.includes(name)),
      span,
    ),
  };
}

function longestPause(cells: readonly Cell[], span: Span): number {
  return Math.max(0, ...cells.flatMap(({ sent, received }) => [sent, received].map((way) => way.longestPauseMs(span))));
}
