// What one dispatcher holds in memory: the lanes it works on, and which of them may start the next attempt. Healthy
// receivers and suspect ones (failing or slow) have slots of their own, so that no number of dead receivers takes a slot
// from a live one; within each, organizations take turns, then their lanes. An organization has as much as it leaves free, so
// half of it where it is alone: any number of new receivers that never answer, which are not suspect yet, leaves slots, room
// for bodies and places in memory to the others. Pure: no clock, no database.
import { createRotation, type Rotation } from "../platform/fair/rotation.ts";
import { isWithinShare, mayTakeMore } from "../platform/fair/share.ts";
import type { DueLane, LaneKey, Want } from "./queue-queries.ts";
import type { ClaimedRow } from "./types.ts";

/** Attempts at once to one endpoint: where it starts, and where it is again after any failure. */
export const CONCURRENCY = 4;
/** A receiver that answers well and fast earns more, one further attempt at once for each full round of successes. */
export const CONCURRENCY_MAX = 32;
const FAST_MS = 1_000;
const SLOW_MS = 2_000;
/** Rows claimed ahead for a healthy lane, in multiples of its concurrency. */
const AHEAD = 4;
const MIB = 1024 * 1024;

export type Held = { row: ClaimedRow; claimed_ms: number };

export type Lane = LaneKey & {
  waiting: Held[];
  in_flight: number;
  /** Attempts at once; grows by fractions. */
  limit: number;
  consecutive_failures: number;
  slow: boolean;
  pool: Pool;
  /** True if the last claim took all that it asked for: then there may be more. */
  more: boolean;
  /** When a claim first found less than asked for. */
  empty_since_ms: number | null;
  requeued_ms: number;
};

export type Pool = {
  in_flight: number;
  in_flight_max: number;
  /** The bytes of bodies that are being sent. */
  bytes: number;
  bytes_max: number;
  /** Rows claimed and not started. */
  waiting: number;
  waiting_max: number;
  ready: Rotation<Lane>;
  /** Attempts under way of each organization. */
  held: Map<string, Holding>;
};

type Holding = { in_flight: number; bytes: number };
const NOTHING: Readonly<Holding> = { in_flight: 0, bytes: 0 };

export type Board = { lanes: Map<string, Lane>; healthy: Pool; suspect: Pool };

export type Started = { lane: Lane; pool: Pool; held: Held };

/** An empty board. 400 + 200 attempts at once in the process, 64 + 32 MiB of bodies; half of it for one organization. */
export function createBoard(): Board {
  return {
    lanes: new Map(),
    healthy: createPool({ in_flight_max: 400, bytes_max: 64 * MIB, waiting_max: 4_000 }),
    suspect: createPool({ in_flight_max: 200, bytes_max: 32 * MIB, waiting_max: 100 }),
  };
}

function createPool(limits: Pick<Pool, "in_flight_max" | "bytes_max" | "waiting_max">): Pool {
  return { in_flight: 0, bytes: 0, waiting: 0, ready: createRotation<Lane>(), held: new Map(), ...limits };
}

/** The lane of a row of the database, made when new. */
export function laneFor(on: Board, due: Pick<DueLane, "org_id" | "webhook_id" | "consecutive_failures">): Lane {
  const known = on.lanes.get(due.webhook_id);
  if (known) return known;
  const lane: Lane = {
    org_id: due.org_id,
    webhook_id: due.webhook_id,
    waiting: [],
    in_flight: 0,
    limit: CONCURRENCY,
    consecutive_failures: due.consecutive_failures,
    slow: false,
    pool: due.consecutive_failures > 0 ? on.suspect : on.healthy,
    more: true,
    empty_since_ms: null,
    requeued_ms: Number.NEGATIVE_INFINITY,
  };
  on.lanes.set(lane.webhook_id, lane);
  return lane;
}

/** How many rows the lane would claim now. */
export function wantedRows(on: Board, lane: Lane): number {
  const window = lane.pool === on.suspect ? CONCURRENCY : Math.floor(lane.limit) * AHEAD;
  return Math.max(0, window - lane.waiting.length);
}

/** Lanes that have all they may hold: not to be looked for in the database. */
export function fullLanes(on: Board): string[] {
  const full: string[] = [];
  for (const lane of on.lanes.values()) if (wantedRows(on, lane) === 0) full.push(lane.webhook_id);
  return full;
}

/**
 * Shares the room of the pools and of this claim among the due lanes; organizations take turns. Lanes that were found
 * empty come last and ask for little, so that what they may not have leaves the others theirs. `cut`: some lanes were
 * left out for want of room in the claim alone.
 */
export function shareOut(on: Board, due: readonly DueLane[], rowsMax: number): { wants: Want[]; cut: boolean } {
  const room = new Map<Pool, number>();
  for (const pool of [on.healthy, on.suspect]) room.set(pool, pool.waiting_max - pool.waiting);
  const waiting = waitingRows(on);
  const lanes = due.map((key) => laneFor(on, key));
  const isEmpty = (lane: Lane) => lane.empty_since_ms !== null;
  const wants: Want[] = [];
  let rest = rowsMax;
  for (const lane of [...takeTurns(lanes.filter((lane) => !isEmpty(lane))), ...takeTurns(lanes.filter(isEmpty))]) {
    if (rest === 0) return { wants, cut: true };
    const left = room.get(lane.pool) ?? 0;
    const held = waiting.get(lane.pool)!.get(lane.org_id) ?? 0;
    const asked = Math.min(wantedRows(on, lane), isEmpty(lane) ? CONCURRENCY : Number.POSITIVE_INFINITY);
    // With these it holds as much as it leaves free.
    const rows = Math.min(asked, Math.ceil((left - held) / 2), rest);
    if (rows <= 0) continue;
    wants.push({ org_id: lane.org_id, webhook_id: lane.webhook_id, rows });
    waiting.get(lane.pool)!.set(lane.org_id, held + rows);
    room.set(lane.pool, left - rows);
    rest -= rows;
  }
  return { wants, cut: false };
}

/** For each pool, how many rows each organization has claimed and not started. */
function waitingRows(on: Board): Map<Pool, Map<string, number>> {
  const waiting = new Map([on.healthy, on.suspect].map((pool) => [pool, new Map<string, number>()]));
  for (const { pool, org_id, waiting: rows } of on.lanes.values()) {
    const of = waiting.get(pool)!;
    if (rows.length > 0) of.set(org_id, (of.get(org_id) ?? 0) + rows.length);
  }
  return waiting;
}

/** The first lane of each organization, then the second of each, … */
function takeTurns<K extends LaneKey>(lanes: readonly K[]): K[] {
  const groups = [...Map.groupBy(lanes, (lane) => lane.org_id).values()];
  const longest = Math.max(0, ...groups.map((group) => group.length));
  const turns: K[] = [];
  for (let turn = 0; turn < longest; turn += 1) {
    for (const group of groups) if (group[turn]) turns.push(group[turn]!);
  }
  return turns;
}

/** Puts claimed rows into their lane. */
export function addRows(lane: Lane, rows: readonly Held[]): void {
  lane.waiting.push(...rows);
  lane.pool.waiting += rows.length;
  offer(lane);
}

function offer(lane: Lane): void {
  if (lane.waiting.length > 0 && lane.in_flight < Math.floor(lane.limit)) lane.pool.ready.add(lane.org_id, lane);
}

/** Lanes whose bodies do not fit now that are passed over for others at a time. */
const PASSED_OVER_MAX = 100;

/** The next attempt to start, or null when no lane may start one. */
export function startNext(on: Board): Started | null {
  for (const pool of [on.healthy, on.suspect]) {
    for (let looks = 0; looks < PASSED_OVER_MAX; looks += 1) {
      const slots = { max: pool.in_flight_max, taken: pool.in_flight };
      const lane = pool.ready.next((orgId) => mayTakeMore(holdingOf(pool, orgId).in_flight, slots));
      const held = lane?.waiting[0];
      if (!lane || !held) break;
      if (hasRoom(pool, lane.org_id, held.row.body_bytes)) return start(pool, lane, held);
      offer(lane);
    }
  }
  return null;
}

function holdingOf(pool: Pool, orgId: string): Readonly<Holding> {
  return pool.held.get(orgId) ?? NOTHING;
}

/** A single body always goes, and an organization's first one wherever it fits. */
function hasRoom(pool: Pool, orgId: string, bytes: number): boolean {
  const held = holdingOf(pool, orgId).bytes;
  return pool.bytes === 0 || isWithinShare(held + bytes, { max: pool.bytes_max, taken: pool.bytes });
}

function start(pool: Pool, lane: Lane, held: Held): Started {
  lane.waiting.shift();
  lane.in_flight += 1;
  pool.waiting -= 1;
  note(pool, lane.org_id, 1, held.row.body_bytes);
  offer(lane);
  return { lane, pool, held };
}

function note(pool: Pool, orgId: string, attempts: number, bytes: number): void {
  const held = holdingOf(pool, orgId);
  const now = { in_flight: held.in_flight + attempts, bytes: held.bytes + bytes };
  if (now.in_flight > 0) pool.held.set(orgId, now);
  else pool.held.delete(orgId);
  pool.in_flight += attempts;
  pool.bytes += bytes;
}

/** The attempt is over: its slot is free. */
export function endAttempt(started: Started): void {
  const { lane, pool, held } = started;
  lane.in_flight -= 1;
  note(pool, lane.org_id, -1, -held.row.body_bytes);
  offer(lane);
}

/** Learns from an attempt; returns rows that the lane should not hold any longer. */
export function learn(on: Board, lane: Lane, attempt: { failed: boolean; duration_ms: number }): Held[] {
  lane.slow = attempt.duration_ms >= SLOW_MS;
  lane.consecutive_failures = attempt.failed ? lane.consecutive_failures + 1 : 0;
  if (attempt.failed || lane.slow) lane.limit = CONCURRENCY;
  else if (attempt.duration_ms < FAST_MS) lane.limit = Math.min(CONCURRENCY_MAX, lane.limit + 1 / lane.limit);
  return classify(on, lane);
}

function classify(on: Board, lane: Lane): Held[] {
  const pool = lane.slow || lane.consecutive_failures > 0 ? on.suspect : on.healthy;
  if (pool === lane.pool) return [];
  lane.pool.ready.remove(lane.org_id, lane);
  lane.pool.waiting -= lane.waiting.length;
  lane.pool = pool;
  const surplus = pool === on.suspect ? lane.waiting.splice(CONCURRENCY) : [];
  pool.waiting += lane.waiting.length;
  if (surplus.length > 0) lane.more = true;
  offer(lane);
  return surplus;
}

/** Takes every waiting row out of the lanes, to be given back. */
export function emptyBoard(on: Board): Held[] {
  const rows: Held[] = [];
  for (const lane of on.lanes.values()) {
    lane.pool.ready.remove(lane.org_id, lane);
    lane.pool.waiting -= lane.waiting.length;
    rows.push(...lane.waiting.splice(0));
  }
  return rows;
}

/** True if nothing of this lane is in memory. */
export function isIdle(lane: Lane): boolean {
  return lane.in_flight === 0 && lane.waiting.length === 0;
}
