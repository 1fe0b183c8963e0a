// The embedded database as a running Postern needs it: kept alive after a crash, and shared by the processes of one data
// folder. The first supervises it, others join; when the supervisor is gone, one of them takes its place; who is the last
// to go stops it.
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../process/log.ts";
import { refuseLostDatabase } from "../storage/data-folder.ts";
import { databaseFolder, isDatabaseMade } from "./database-folder.ts";
import {
  DatabaseInUse,
  type EmbeddedPostgres,
  isMade,
  runningEmbeddedPostgres,
  startEmbeddedPostgres,
} from "./embedded-postgres.ts";
import { isAbandoned, type SupervisorWatch, watchSupervisor } from "./supervision.ts";

const LOOK_AGAIN_MS = 1_000;
const RESTART_AGAIN_MS = 500;
const JOIN_AGAIN_MS = 100;
/** Between the moments in which another process holds the database and in which it can be used. */
const JOIN_TIMEOUT_MS = 60_000;

export type OwnDatabase = { url: string; stop(): Promise<void> };

type State = { server: EmbeddedPostgres | null; stopped: boolean; turn: Promise<void> };

/** Starts the database of `dataDir`, or joins the one that another of our processes runs there. */
export async function openOwnDatabase(dataDir: string, log: Log): Promise<OwnDatabase> {
  await refuseLostDatabase(dataDir, () => isDatabaseMade(dataDir));
  const { folder, moved, unused } = await databaseFolder(dataDir);
  if (moved) log.warn({ folder }, "the data folder cannot be reached by the database's user; its files lie elsewhere");
  if (unused) log.warn({ folder, unused }, "this data folder has a second database, which is not used");
  const state: State = { server: null, stopped: false, turn: Promise.resolve() };
  const url = await startOrJoin(folder, state, log);
  const watch = watchSupervisor(async () => (await runningEmbeddedPostgres(folder))?.admin_url ?? null);
  const timer = setInterval(() => {
    if (!state.server) state.turn = state.turn.then(() => takeOver(folder, state, watch, log));
  }, LOOK_AGAIN_MS);
  timer.unref();
  return {
    url,
    async stop() {
      state.stopped = true;
      clearInterval(timer);
      await state.turn;
      await watch.close();
      await (state.server ? state.server.leave() : stopAbandoned(folder, log));
    },
  };
}

/**
 * Processes may begin at the same moment, on a new data folder too: one of them has the database, the others wait until it
 * is made, or has to be taken over from one that ended meanwhile.
 */
async function startOrJoin(folder: string, state: State, log: Log): Promise<string> {
  const deadline = performance.now() + JOIN_TIMEOUT_MS;
  for (let times = 1; ; times += 1) {
    try {
      return await supervise(folder, state, log);
    } catch (error) {
      if (!(error instanceof DatabaseInUse)) throw error;
      const running = await runningEmbeddedPostgres(folder);
      if (running && (await isMade(running.admin_url))) return running.url;
      if (performance.now() > deadline) throw error;
    }
    if (times === 1) log.info({ folder }, "another process is starting the embedded database; waiting for it");
    await sleep(JOIN_AGAIN_MS);
  }
}

async function supervise(folder: string, state: State, log: Log): Promise<string> {
  const server = await startEmbeddedPostgres({ data_dir: folder, log: (line) => pass(log, line) });
  state.server = server;
  server.onExit((exit) => {
    log.error(exit, "the embedded database ended by itself; starting it again");
    state.turn = state.turn.then(() => restart(server, state, log));
  });
  return server.url;
}

const LEVELS: [RegExp, "error" | "warn"][] = [
  [/\bPANIC: /, "error"],
  [/\bWARNING: /, "warn"],
  // Not those of every start and stop.
  [/\bFATAL: (?!\s*(?:the database system is |terminating connection ))/, "warn"],
  [/\bLOG: .*(?:could not (?!receive data from client|send data to client)|was terminated by |invalid page)/, "warn"],
];

/** What PostgreSQL says goes where all else goes: of trouble always, the rest (statements that were refused) for who looks for it. */
function pass(log: Log, line: string): void {
  const [, level = "debug"] = LEVELS.find(([pattern]) => pattern.test(line)) ?? [];
  log[level]({ line }, "the embedded database says");
}

async function restart(server: EmbeddedPostgres, state: State, log: Log): Promise<void> {
  while (!state.stopped && !server.alive()) {
    try {
      await server.restart();
    } catch (err) {
      log.error({ err }, "the embedded database could not be started again; trying again");
      await sleep(RESTART_AGAIN_MS);
    }
  }
}

async function takeOver(folder: string, state: State, watch: SupervisorWatch, log: Log): Promise<void> {
  if (state.stopped || state.server || (await watch.isThere())) return;
  try {
    await supervise(folder, state, log);
    await watch.close();
    log.info("this process supervises the embedded database now");
  } catch (error) {
    if (!(error instanceof DatabaseInUse)) log.warn({ err: error }, "the embedded database could not be taken over");
  }
}

/** Its supervisor left it to us, and we go before we took it over. */
async function stopAbandoned(folder: string, log: Log): Promise<void> {
  const running = await runningEmbeddedPostgres(folder);
  if (!running || !(await isAbandoned(running.admin_url))) return;
  const state: State = { server: null, stopped: true, turn: Promise.resolve() };
  await supervise(folder, state, log).catch((err) => log.warn({ err }, "the embedded database could not be stopped"));
  await state.server?.leave();
}
