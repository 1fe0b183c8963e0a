// A restored backup sends nothing until the operator says so (reliability rule 17): its queue holds mail that has left
// since the backup was taken, and would leave a second time. A database is taken for a restored one when it is another
// cluster than the one noted in it, or when it is behind what this machine's data folder, or this process, remembers of it.
// Looked at before sending begins and every two seconds after that, since a database may be restored under running
// processes; between two looks every claim asks for itself (queries.ts). Everything but sending goes on meanwhile. Not
// noticed: a copy of an external database under the same identity, on a machine that never sent from it.
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "../platform/clock.ts";
import type { World } from "../platform/world.ts";
import { identityOf, isBeginning, isSame } from "./database-identity.ts";
import * as queries from "./guard-queries.ts";
import { giveTime } from "./suspended.ts";

type GuardWorld = Pick<World, "db" | "clock" | "config" | "log" | "metrics">;
type Stop = () => Promise<void>;

/** How far this process has seen its database come: it claims from no other, and from none that is behind. */
export type Mark = {
  id: string;
  beats: number;
  /** Was it seen of late? After an outage nothing is claimed before the next look. */
  isFresh(): boolean;
};

const BEAT_MS = 60_000;
const LOOK_MS = 2_000;
const FRESH_MS = 10_000;
/** Beats of fifty years: more than any machine can have noted. */
const LEAP_BEATS = 50 * 366 * 24 * 60;

type Seen = Mark & { identity: string; lookedAtMs: number; beatAtMs: number };
type State = {
  world: GuardWorld;
  start(mark: Mark): Promise<Stop>;
  ending: AbortController;
  tell(isPaused: boolean): void;
  seen: Seen | null;
};

/**
 * Calls `start` at once, or once sending was confirmed; `stop` ends what was started. It is ended as well when the database
 * turns out to have been restored meanwhile, and started anew once that was confirmed.
 */
export async function guardSending(
  world: GuardWorld,
  start: (mark: Mark) => Promise<Stop>,
): Promise<{ stop(): Promise<void> }> {
  const paused = world.metrics.gauge("postern_sending_paused", "1 while nothing is sent until the operator confirms");
  const tell = (isPaused: boolean) => paused.set(isPaused ? 1 : 0);
  const state: State = { world, start, ending: new AbortController(), tell, seen: null };
  const running = follow(state, await begin(state, await check(state)));
  return {
    async stop() {
      state.ending.abort();
      await running;
    },
  };
}

/**
 * What `postern resume` does: the operator has looked. Answers whether sending was paused. What waited meanwhile has a day
 * left before anything is claimed: the pause was ours.
 */
export async function resumeSending(world: Pick<World, "db" | "clock">): Promise<boolean> {
  const guard = await queries.findGuard(world.db);
  if (guard === null || guard.paused_at === null) return false;
  await giveTime(world, null);
  return (await queries.resume(world.db, LEAP_BEATS)) === 1;
}

/** From here on by itself. That the engine cannot be ended or begun surfaces, and ends the process. */
async function follow(state: State, started: Stop | null): Promise<void> {
  const { signal } = state.ending;
  for (let stop = started; ; stop = await begin(state, await checkUntilAnswered(state))) {
    await (stop ? untilOther(state) : untilResumed(state));
    await stop?.();
    if (signal.aborted) return;
  }
}

/** Sends, unless there is a reason not to. */
async function begin(state: State, reason: string | null): Promise<Stop | null> {
  const { world, seen } = state;
  if (state.ending.signal.aborted) return null;
  state.tell(reason !== null);
  if (reason === null) return state.start(seen as Seen);
  world.log.error({ reason }, "nothing is sent: run `postern resume` when the queue may be sent");
  return null;
}

// The check ----------------------------------------------------------------------------------------------------------

/** Why nothing may be sent; null once the first beat is noted. */
async function check(state: State): Promise<string | null> {
  const { world, seen } = state;
  const identity = await identityOf(world);
  const guard = await queries.ensureGuard(world.db, identity);
  const mark = Math.max(await readMark(world, guard), seen?.id === guard.id ? seen.beats : 0);
  const found = guard.reason ?? restoredBecause(guard, identity, mark);
  if (found !== null) {
    await queries.pause(world.db, { id: guard.id, identity, reason: found });
    return found;
  }
  if (isBeginning(guard.identity, identity)) await queries.noteIdentity(world.db, guard.id, identity);
  const now = world.clock.monotonic();
  const isFresh = () => world.clock.monotonic() - next.lookedAtMs < FRESH_MS;
  const next: Seen = { id: guard.id, beats: guard.beats, identity, lookedAtMs: now, beatAtMs: now, isFresh };
  state.seen = next;
  if (!(await beat(world, next))) return "it was paused by another process at this moment";
  return null;
}

async function checkUntilAnswered(state: State): Promise<string | null> {
  const { world, ending } = state;
  for (;;) {
    try {
      return await check(state);
    } catch (err) {
      world.log.warn({ err }, "whether the database was restored cannot be seen; nothing is sent until it can");
      await sleep(LOOK_MS, ending.signal);
      if (ending.signal.aborted) return null;
    }
  }
}

function restoredBecause({ identity, beats }: queries.Guard, actual: string, mark: number): string | null {
  if (beats < mark) return "the database is behind what this machine has sent from it: it was restored from a backup";
  if (isSame(identity, actual)) return null;
  return "this is another database cluster than the one its queue was written in: a copy, or restored from a backup";
}

function unlessAbsent(error: { code?: string }): null {
  if (error.code === "ENOENT") return null;
  throw error;
}

// While it runs ------------------------------------------------------------------------------------------------------

/** Resolves when sending must end: it is to stop, or the database is not what it was. */
async function untilOther({ world, ending, seen }: State): Promise<void> {
  const { signal } = ending;
  await untilEnded(signal, async () => {
    while (!signal.aborted) {
      await sleep(LOOK_MS, signal);
      // Without an answer nothing is claimed before long, and what was seen still holds.
      const stays = await isStill(world, seen as Seen).catch((err) => {
        world.log.debug({ err }, "the sending mark could not be looked at");
        return true;
      });
      if (stays) continue;
      if (!signal.aborted)
        world.log.error({}, "the database is not the one that was sent from; sending ends to look at it");
      return;
    }
  });
}

/** Is it the database it was, not behind, and not paused? One that was restored and confirmed meanwhile has leapt ahead. */
async function isStill(world: GuardWorld, seen: Seen): Promise<boolean> {
  const startedAtMs = world.clock.monotonic();
  const [identity, guard] = [await identityOf(world), await queries.findGuard(world.db)];
  if (guard === null || guard.id !== seen.id || guard.paused_at !== null) return false;
  if (guard.beats < seen.beats || guard.beats - seen.beats >= LEAP_BEATS || !isSame(seen.identity, identity))
    return false;
  if (startedAtMs - seen.beatAtMs >= BEAT_MS && !(await beat(world, seen))) return false;
  seen.lookedAtMs = startedAtMs;
  return true;
}

async function untilResumed({ world, ending }: State): Promise<void> {
  const { signal } = ending;
  await untilEnded(signal, async () => {
    while (!signal.aborted) {
      await sleep(LOOK_MS, signal);
      const guard = await queries.findGuard(world.db).catch(() => undefined);
      if (guard === undefined || (guard !== null && guard.paused_at !== null)) continue;
      world.log.info("sending was confirmed and goes on");
      return;
    }
  });
}

/** A statement that hangs holds nobody up who ends. */
async function untilEnded(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  const ended = Promise.withResolvers<void>();
  if (signal.aborted) ended.resolve();
  signal.addEventListener("abort", () => ended.resolve(), { once: true });
  await Promise.race([ended.promise, work()]);
}

// The mark ---------------------------------------------------------------------------------------------------------

/** First in the database, then in the folder, which so is never ahead. False: the database is not what was seen of it. */
async function beat(world: GuardWorld, seen: Seen): Promise<boolean> {
  const [row] = await queries.beat(world.db, seen);
  if (!row || row.beats - seen.beats >= LEAP_BEATS) return false;
  seen.beats = row.beats;
  seen.beatAtMs = world.clock.monotonic();
  await keepMark(world, seen).catch((err) => world.log.warn({ err }, "the sending mark could not be kept"));
  return true;
}

/** A folder may hold marks of several databases, each in a file of its own, and serve several processes. */
async function keepMark(world: GuardWorld, { id, beats }: Seen): Promise<void> {
  const path = markOf(world, id);
  const own = `${path}.${process.pid}`;
  await writeFile(own, `${beats}\n`, { mode: 0o600 });
  await rename(own, path);
}

/** How far this machine has seen the database come; 0 when it never sent from it. */
async function readMark(world: GuardWorld, { id }: queries.Guard): Promise<number> {
  const text = await readFile(markOf(world, id), "utf8").catch(unlessAbsent);
  return text !== null && /^\d+\n$/.test(text) ? Number(text) : 0;
}

function markOf({ config }: GuardWorld, id: string): string {
  return join(config.data_dir, `sending-${id}.mark`);
}
