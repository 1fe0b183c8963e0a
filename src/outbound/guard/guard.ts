// A restored backup or a copy sends nothing until the operator says so (reliability rule 17): its queue holds mail that has
// left since, or leaves from the original. docs/decisions/0017-restored-backups.md has the table of what happens when. Looked
// at before sending begins and every two seconds after that, since a database may be restored under running processes;
// between two looks every claim asks for itself (queries.ts). Everything but sending goes on meanwhile.
import { sleep } from "../../platform/clock.ts";
import type { Query } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import { giveTime } from "../queue/suspended.ts";
import type { Mark } from "../types.ts";
import { identityOf, isSame, isSameCluster } from "./database-identity.ts";
import * as queries from "./guard-queries.ts";
import { keepMark, type Marks, readMarks } from "./marks.ts";
import { findOther } from "./witness.ts";

type GuardWorld = Pick<World, "db" | "clock" | "config" | "log" | "metrics" | "seal" | "random">;
type Stop = () => Promise<void>;

const LOOK_MS = 2_000;
const FRESH_MS = 10_000;
/** How often those are asked that may hold the original. */
const ASK_EVERY_MS = 60_000;
/** More beats than any machine can have noted: a thousand a second for thirty years. */
const LEAP_BEATS = 1_000_000_000_000;

type Seen = Mark & {
  identity: string;
  lookedAtMs: number;
  askedAtMs: number;
  hasSent: boolean;
  otherAt: string | null;
  /** Its marks are written one after the other. */
  keeping: Promise<void>;
};
type State = {
  world: GuardWorld;
  start(mark: Mark): Promise<Stop>;
  ending: AbortController;
  tell(isPaused: boolean): void;
  seen: Seen | null;
};

/**
 * Calls `start` at once, or once sending was confirmed; `stop` ends what was started. It is ended as well when the database
 * turns out to have been restored meanwhile, and started again once that was confirmed.
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
    if (!signal.aborted) continue;
    await beatLast(state);
    return;
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
  const identity = await identityOf(world.db);
  const guard = await queries.ensureGuard(world.db, identity);
  const kept = await readMarks(world.config.data_dir, guard.id);
  const marks = seen?.id === guard.id ? { beats: Math.max(kept.beats, seen.beats), isOwn: true } : kept;
  const [target] = await queries.findRecoveryTarget(world.db);
  const recovered_to = target?.recovered_to ?? "";
  const facts = { marks, identity, recovered_to };
  const restored = guard.reason ?? restoredBecause(world.config, guard, facts);
  const other = restored === null ? await findElsewhere(state, guard) : null;
  if (restored !== null || other !== null) {
    const reason = restored ?? `another database under this one's identity is in use at ${other}: this is a copy of it`;
    await queries.pause(world.db, { id: guard.id, identity, reason, other });
    return reason;
  }
  const { hostname: host_name, base_url } = world.config;
  await queries.note(world.db, { id: guard.id, identity, host_name, recovered_to, base_url });
  const next = seenNow(world, guard, identity);
  state.seen = next;
  if (!(await beat(world, next))) return "it was paused by another process at this moment";
  return null;
}

function seenNow(world: GuardWorld, { id, beats }: queries.Guard, identity: string): Seen {
  const now = world.clock.monotonic();
  const seen: Seen = {
    ...{
      id,
      beats,
      identity,
      lookedAtMs: now,
      askedAtMs: now,
      hasSent: false,
      otherAt: null,
      keeping: Promise.resolve(),
    },
    isFresh: () => world.clock.monotonic() - seen.lookedAtMs < FRESH_MS,
    sending() {
      seen.hasSent = true;
    },
  };
  return seen;
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

type Facts = { marks: Marks; identity: string; recovered_to: string };

/** What tells it apart from the database that mail was sent from; null where nothing does. */
function restoredBecause(
  { database_url, hostname }: World["config"],
  guard: queries.Guard,
  { marks, identity, recovered_to }: Facts,
): string | null {
  const noted = guard.database_identity;
  if (noted === null ? !isSameCluster(guard.identity, identity) : !isSame(noted, identity))
    return "this is another database than the one its queue was written in: a copy, or restored from a dump";
  if (guard.beats < marks.beats)
    return "the database is behind what this machine has sent from it: it was restored from a backup";
  // Nothing has left from it yet, or a machine that has sent from it goes on, whatever was renamed or moved.
  if (guard.sent_at === null || marks.isOwn) return null;
  if (database_url === null)
    return "the files of the embedded database were copied here: a copy of the data folder, or restored from one";
  if ((guard.host_name ?? hostname) !== hostname)
    return `mail left from this database as ${guard.host_name}, and this machine, which never sent from it, is ${hostname}: a copy`;
  if ((guard.recovered_to ?? recovered_to) !== recovered_to)
    return "the database was recovered to a point in time, and this machine never sent from it";
  return null;
}

/** The address of another database under this identity. */
function findElsewhere({ world, ending }: State, { base_urls, ignored_urls }: queries.Guard): Promise<string | null> {
  const urls = new Set([...base_urls, world.config.base_url]);
  return findOther(world, [...urls.difference(new Set(ignored_urls))], ending.signal);
}

// While it runs ------------------------------------------------------------------------------------------------------

/** Resolves when sending must end: it is to stop, or the database is not what it was. */
async function untilOther(state: State): Promise<void> {
  const { world, ending, seen } = state;
  const { signal } = ending;
  await untilEnded(signal, async () => {
    while (!signal.aborted) {
      await sleep(LOOK_MS, signal);
      // Without an answer nothing is claimed before long, and what was seen still holds.
      const stays = await isStill(state, seen as Seen).catch((err) => {
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

/**
 * True if this is the database that it was, not behind, and not paused. One that was restored and confirmed meanwhile
 * has leapt ahead.
 */
async function isStill(state: State, seen: Seen): Promise<boolean> {
  const { world } = state;
  const startedAtMs = world.clock.monotonic();
  const [identity, guard] = [await identityOf(world.db), await queries.findGuard(world.db)];
  if (guard === null || guard.id !== seen.id || guard.paused_at !== null || seen.otherAt !== null) return false;
  if (guard.beats < seen.beats || guard.beats - seen.beats >= LEAP_BEATS || !isSame(seen.identity, identity))
    return false;
  if (seen.hasSent && !(await beat(world, seen))) return false;
  seen.lookedAtMs = startedAtMs;
  if (startedAtMs - seen.askedAtMs >= ASK_EVERY_MS) void askAgain(state, seen, guard);
  return true;
}

/** Beside the looks, which must not wait for it. What it finds, the check before sending begins again finds as well. */
async function askAgain(state: State, seen: Seen, guard: queries.Guard): Promise<void> {
  seen.askedAtMs = state.world.clock.monotonic();
  seen.otherAt = await findElsewhere(state, guard).catch(() => null);
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
  const { hasSent } = seen;
  seen.hasSent = false;
  const [row] = await queries.beat(world.db, seen, hasSent).catch((error) => {
    seen.hasSent ||= hasSent;
    throw error;
  });
  if (!row || row.beats - seen.beats >= LEAP_BEATS) return false;
  seen.beats = row.beats;
  const mark = { id: seen.id, beats: row.beats };
  seen.keeping = seen.keeping
    .then(() => keepMark(world.config.data_dir, mark))
    .catch((err) => world.log.warn({ err }, "the sending mark could not be kept"));
  await seen.keeping;
  return true;
}

/** What left since the last look is counted before the process ends. */
async function beatLast({ world, seen }: State): Promise<void> {
  if (seen?.hasSent)
    await beat(world, seen).catch((err) => world.log.warn({ err }, "the last sending mark could not be noted"));
  await seen?.keeping;
}

/** What a restore does at its end: nothing leaves until the operator has looked. */
export async function pauseRestored(db: Query, reason: string): Promise<void> {
  const identity = await identityOf(db);
  const { id } = await queries.ensureGuard(db, identity);
  await queries.pause(db, { id, identity, reason, other: null });
}

/** The id of a database: its copies have the same, a new one has another. */
export async function databaseId({ db }: Pick<World, "db">): Promise<string> {
  return (await queries.ensureGuard(db, await identityOf(db))).id;
}

/** Since when nothing is sent, and why; null where mail leaves. For those who ask whether all is well. */
export async function findPause(db: Query): Promise<{ since: Date; reason: string } | null> {
  const guard = await queries.findGuard(db);
  return guard?.paused_at ? { since: guard.paused_at, reason: guard.reason ?? "" } : null;
}
