// A restored backup sends nothing until the operator says so (reliability rule 17): its queue holds mail that has left
// since the backup was taken, and would leave a second time. A database is taken for a restored one when it is another
// cluster than the one noted in it, or when it is behind what this machine's data folder remembers of it. Everything but
// sending goes on meanwhile. Not noticed: a copy of an external database under the same identity, on a machine that never
// sent from it.
import { readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "../platform/clock.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./guard-queries.ts";

type GuardWorld = Pick<World, "db" | "config" | "log" | "metrics">;
type Stop = () => Promise<void>;

const BEAT_MS = 60_000;
const LOOK_MS = 1_000;
/** Beats of fifty years: more than any machine can have noted. */
const LEAP_BEATS = 50 * 366 * 24 * 60;
const UNKNOWN = "unknown";

/** Calls `start` at once, or once sending was confirmed; `stop` ends what was started. */
export async function guardSending(world: GuardWorld, start: () => Promise<Stop>): Promise<{ stop: Stop }> {
  const paused = world.metrics.gauge("postern_sending_paused", "1 while nothing is sent until the operator confirms");
  const ending = new AbortController();
  const reason = await pausedBecause(world);
  paused.set(reason === null ? 0 : 1);
  if (reason === null) return { stop: await startBeating(world, ending, await start()) };
  world.log.error({ reason }, "nothing is sent: run `postern resume` when the queue may be sent");
  const running = untilResumed(world, ending.signal).then(async () => {
    if (ending.signal.aborted) return null;
    paused.set(0);
    world.log.info("sending was confirmed and goes on");
    return startBeating(world, ending, await start());
  });
  return {
    async stop() {
      ending.abort();
      await (await running)?.();
    },
  };
}

/** What `postern resume` does: the operator has looked. Answers whether sending was paused. */
export async function resumeSending({ db }: Pick<World, "db">): Promise<boolean> {
  return (await queries.resume(db, LEAP_BEATS)) === 1;
}

async function pausedBecause(world: GuardWorld): Promise<string | null> {
  const identity = await identityOf(world);
  const guard = await queries.ensureGuard(world.db, identity);
  const found = guard.reason ?? restoredBecause(guard, identity, await readMark(world));
  if (found !== null) await queries.pause(world.db, identity, found);
  return found;
}

function restoredBecause({ identity, beats }: queries.Guard, actual: string, mark: number): string | null {
  if (beats < mark) return "the database is behind what this machine has sent from it: it was restored from a backup";
  if (identity === actual || identity === UNKNOWN || actual === UNKNOWN) return null;
  return "this is another database cluster than the one its queue was written in: a copy, or restored from a backup";
}

/** A cluster that may not be asked who it is, as some providers have it, is known by its beats alone. */
async function identityOf({ db, config }: GuardWorld): Promise<string> {
  const [row] = await queries.findCluster(db).catch(unlessRefused);
  if (!row) return UNKNOWN;
  if (config.database_url) return row.cluster;
  const file = await stat(join(config.data_dir, "postgres/cluster/PG_VERSION")).catch(unlessAbsent);
  return file ? `${row.cluster}/${file.ino}` : row.cluster;
}

/** A role without the right, or a server without these functions. A lost connection is no answer: it must not end the check. */
function unlessRefused(error: { code?: string }): [] {
  if (error.code === "42501" || error.code === "42883") return [];
  throw error;
}

function unlessAbsent(error: { code?: string }): null {
  if (error.code === "ENOENT") return null;
  throw error;
}

async function untilResumed({ db }: GuardWorld, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(LOOK_MS, signal);
    const guard = await queries.ensureGuard(db, UNKNOWN).catch(() => null);
    if (guard !== null && guard.paused_at === null) return;
  }
}

// The mark ---------------------------------------------------------------------------------------------------------

async function startBeating(world: GuardWorld, ending: AbortController, stop: Stop): Promise<Stop> {
  const beatOrSay = () => beat(world).catch((err) => world.log.warn({ err }, "the sending mark could not be kept"));
  await beatOrSay();
  const timer = setInterval(beatOrSay, BEAT_MS);
  timer.unref();
  ending.signal.addEventListener("abort", () => clearInterval(timer));
  return async () => {
    ending.abort();
    await stop();
  };
}

/** First in the database, then in the folder, which so is never ahead. */
async function beat(world: GuardWorld): Promise<void> {
  const [row] = await queries.beat(world.db);
  const path = markOf(world);
  const own = `${path}.${process.pid}`; // several processes may share the folder
  await writeFile(own, `${row?.beats ?? 0}\n`, { mode: 0o600 });
  await rename(own, path);
}

async function readMark(world: GuardWorld): Promise<number> {
  const text = await readFile(markOf(world), "utf8").catch(unlessAbsent);
  return text !== null && /^\d+\n$/.test(text) ? Number(text) : 0;
}

function markOf({ config }: GuardWorld): string {
  return join(config.data_dir, "sending.mark");
}
