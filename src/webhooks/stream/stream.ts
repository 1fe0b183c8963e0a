// Events as programs read them from the API instead of getting them posted: what is kept for them, and waiting for more. Every
// event is read in the order in which it was committed, with the bytes that a webhook gets.
import { ownNumber } from "../../platform/database/citus/transaction-numbers.ts";
import type { Tx } from "../../platform/database/db.ts";
import { type Memory, remember } from "../../platform/fair/remember.ts";
import { uuidFloor } from "../../platform/random.ts";
import { Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { bodyOf } from "../event-body.ts";
import { EVENT_TYPES, type OutgoingEvent, type WebhookEventType } from "../types.ts";
import { type Bell, CHANNEL, createBell, listenInProcess } from "../wake.ts";
import * as queries from "./stream-queries.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Events are kept for readers for so long after the last time that somebody read. */
const LISTENER_MS = 7 * DAY_MS;
/** Where a reader is moves on without an event, so that its age says whether somebody read. No transaction of Postern takes as long. */
const MOVES_ON = { after_ms: DAY_MS, behind_ms: HOUR_MS };
/** Processes that record events know of a new reader after this long at the latest. */
const KNOWN_MS = 1_000;
const ORGANIZATIONS_MAX = 10_000;
/** Events of other transactions that are under way, and those of processes that do not ring here. */
const LOOK_EVERY_MS = 500;
/** For a moment after a ring: what was committed may wait for an older transaction. */
const LOOK_SOON_MS = 50;
const SOON_FOR_MS = 2_000;
const WAITING_MAX = { organization: 20, process: 1_000 };

export type Reading = {
  /** An event's id; undefined: from now on. */
  after?: string | undefined;
  types?: readonly WebhookEventType[] | undefined;
  environments: readonly string[];
};
/** `next`: what the next reading is behind. `gap_until`: events behind `after` and before then may be missing; null: all are there. */
export type Batch = { events: queries.EventRow[]; next: string; gap_until: Date | null };

export type EventStream = {
  /** At most `limit` events behind `after`, oldest first; waits up to `waitMs` for the first of them. */
  read(orgId: string, reading: Reading, limits: Limits): Promise<Batch>;
  /** A place among those who wait, for longer than one reading; answers how to give it back. 503 when there is none. */
  enter(orgId: string): () => void;
  /** Ends all waiting. */
  stop(): void;
  isStopped(): boolean;
};

/** `has_place`: the one who reads has entered. */
export type Limits = { limit: number; waitMs: number; signal: AbortSignal; has_place?: boolean };

type StreamWorld = Pick<World, "db" | "clock" | "config" | "log">;

/** Reads events for the API of this process. */
export function createEventStream(world: StreamWorld): EventStream {
  const waiting = new Map<string, number>();
  const stopping = new AbortController();
  const rings = createRings(world);

  const keptMs = () => world.config.retention_days.event * DAY_MS;

  async function look(orgId: string, reading: Reading & { after: string }, limit: number) {
    return world.db.asOrg(orgId, (tx) =>
      queries.readEvents(
        tx,
        orgId,
        {
          after: reading.after,
          types: reading.types ?? EVENT_TYPES,
          environments: reading.environments,
          from_id: uuidFloor(world.clock.now() - keptMs()),
        },
        limit,
      ),
    );
  }

  /** Until when nobody read, or what was kept is deleted by now, where either is later than `after`. */
  async function gapBehind(orgId: string, after: string, nowMs: number): Promise<Date | null> {
    const since = await queries.listenedSince(world.db, orgId);
    const keptFrom = Math.max(since?.getTime() ?? 0, nowMs - keptMs());
    return timeOf(after) < keptFrom ? new Date(keptFrom) : null;
  }

  return {
    async read(orgId, { after, ...reading }, { limit, waitMs, signal, has_place = false }) {
      const nowMs = world.clock.now();
      const asked = { ...reading, after: after ?? uuidFloor(nowMs) };
      const listening = { now: new Date(nowMs), until: new Date(nowMs + LISTENER_MS) };
      const isNew = (await queries.noteListener(world.db, orgId, listening)) > 0;
      const gap_until = after === undefined ? null : await gapBehind(orgId, after, nowMs);
      const batch = (events: queries.EventRow[]) => ({
        ...{ events, gap_until },
        next: events.at(-1)?.id ?? movedOn(asked.after, nowMs, gap_until),
      });
      const first = await look(orgId, asked, limit);
      if (first.length > 0 || (waitMs === 0 && !isNew)) return batch(first);
      const leave = has_place ? () => undefined : enter(waiting, orgId);
      const until = world.clock.monotonic() + Math.max(waitMs, isNew ? KNOWN_MS : 0);
      const ended = AbortSignal.any([signal, stopping.signal]);
      const bell = rings.enter();
      try {
        while (!ended.aborted && world.clock.monotonic() < until) {
          await bell.next(until - world.clock.monotonic(), ended);
          const events = await look(orgId, asked, limit);
          if (events.length > 0) return batch(events);
        }
        return batch([]);
      } finally {
        bell.leave();
        leave();
      }
    },
    enter: (orgId) => enter(waiting, orgId),
    stop() {
      stopping.abort();
      rings.stop();
    },
    isStopped: () => stopping.signal.aborted,
  };
}

/** Milliseconds at which an id stands in the order of events, whatever kind of UUID it is: the nil UUID before all. */
function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** Where a reader is to whom nothing came: behind the gap, and at an hour ago where the last event is older than a day. */
function movedOn(after: string, nowMs: number, gapUntil: Date | null): string {
  if (gapUntil === null && timeOf(after) >= nowMs - MOVES_ON.after_ms) return after;
  return uuidFloor(Math.max(gapUntil?.getTime() ?? 0, nowMs - MOVES_ON.behind_ms));
}

function enter(waiting: Map<string, number>, orgId: string): () => void {
  const mine = waiting.get(orgId) ?? 0;
  const all = [...waiting.values()].reduce((sum, count) => sum + count, 0);
  if (mine >= WAITING_MAX.organization || all >= WAITING_MAX.process) {
    throw new Refusal("unavailable", "too many requests wait for events; end some of them, or read without 'wait'", {
      retry_after_seconds: 5,
    });
  }
  waiting.set(orgId, mine + 1);
  return () => {
    const left = (waiting.get(orgId) ?? 1) - 1;
    if (left > 0) waiting.set(orgId, left);
    else waiting.delete(orgId);
  };
}

/** When to look: at each ring of this process or of others, soon after one, and now and then in any case. */
function createRings(world: StreamWorld) {
  const bells = new Set<Bell>();
  let rungAtMs = Number.NEGATIVE_INFINITY;
  const ring = (): void => {
    rungAtMs = world.clock.monotonic();
    for (const bell of bells) bell.ring();
  };
  const own: Bell = { ring, rang: async () => false };
  const stopInProcess = listenInProcess(world.db, own, "reader");
  let others: Promise<{ close(): Promise<void> }> | null = null;
  return {
    enter() {
      others ??= world.db.listen([CHANNEL], ring);
      others.catch((err) => {
        others = null;
        world.log.debug({ err }, "other processes cannot ring for new events; they are looked for every half second");
      });
      const bell = createBell();
      bells.add(bell);
      return {
        async next(leftMs: number, signal: AbortSignal): Promise<void> {
          const isSoon = world.clock.monotonic() - rungAtMs < SOON_FOR_MS;
          const end = () => bell.ring();
          signal.addEventListener("abort", end, { once: true });
          await bell.rang(Math.max(0, Math.min(leftMs, isSoon ? LOOK_SOON_MS : LOOK_EVERY_MS)));
          signal.removeEventListener("abort", end);
        },
        leave: () => void bells.delete(bell),
      };
    },
    stop() {
      stopInProcess();
      others?.then(
        (open) => open.close(),
        () => undefined,
      );
    },
  };
}

const known = new WeakMap<object, Memory<boolean>>();

/**
 * Keeps these events for the organizations that read theirs. To be called in the transaction that records what they tell of,
 * run in `withPartitions`.
 */
export async function keepForReaders(
  tx: Tx,
  { clock }: Pick<World, "clock">,
  events: readonly OutgoingEvent[],
  at: Date,
): Promise<void> {
  const read = await readersOf(tx, clock, [...new Set(events.map(({ org_id }) => org_id))], at);
  const kept = events.filter(({ org_id }) => read.has(org_id));
  if (kept.length === 0) return;
  const toRow = (event: OutgoingEvent): queries.ListenedBody => ({
    org_id: event.org_id,
    id: event.event_id,
    event: event.event,
    environment: String(event.payload.environment),
    body: bodyOf(event),
  });
  await queries.insertListened(tx, kept.map(toRow), { at, listened: await ownNumber(tx) });
}

/** True if somebody reads this organization's events. */
export async function isRead(world: Pick<World, "db" | "clock">, orgId: string): Promise<boolean> {
  return (await readersOf(world.db, world.clock, [orgId], new Date(world.clock.now()))).has(orgId);
}

async function readersOf(
  db: Pick<Tx, "query" | "execute">,
  clock: World["clock"],
  orgIds: readonly string[],
  at: Date,
): Promise<Set<string>> {
  const memory = known.get(clock) ?? remember<boolean>(clock, { for_ms: KNOWN_MS, names_max: ORGANIZATIONS_MAX });
  known.set(clock, memory);
  const asked = orgIds.filter((orgId) => memory.get(orgId) === undefined);
  if (asked.length > 0) {
    const found = new Set((await queries.findListeners(db, asked, at)).map(({ org_id }) => org_id));
    for (const orgId of asked) memory.set(orgId, found.has(orgId));
  }
  return new Set(orgIds.filter((orgId) => memory.get(orgId)));
}
