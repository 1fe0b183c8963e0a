// How much goes on at once in this process, over all paths: attempts by the size of their messages, and sessions that are
// kept open beside them. Each attempt holds a connection, and its message in memory. Memory.ts limits what waits; here
// is what is at work. Pure bookkeeping.
import { createRotation, type Rotation } from "../../platform/fair/rotation.ts";
import { mayTakeMore } from "../../platform/fair/share.ts";
import type { Job } from "../types.ts";

type Kind = { bytes_max: number; slots: number };

const KIB = 1024;
const MIB = 1024 * KIB;
/**
 * Slots by size: so no message waits for larger ones, and all bodies at work have some 600 MiB at the very most. A body is
 * in memory once while it is sent, and a second time while it is signed. Once it is sent, its slot is free for the next: a
 * server may look through a large message for minutes before it answers.
 */
const KINDS: readonly Kind[] = [
  { bytes_max: 128 * KIB, slots: 1_000 },
  { bytes_max: MIB, slots: 128 },
  { bytes_max: 8 * MIB, slots: 16 },
  { bytes_max: Number.POSITIVE_INFINITY, slots: 6 },
];
/**
 * What mail to quick servers is not left without: of an organization's share, servers that are new or slow have three quarters
 * at most, slow ones a half. Else the first few dead or stalling servers, each of which may hold its slot for minutes, would
 * keep all other mail of the organization waiting.
 */
const NOT_QUICK_MAX = 0.75;
const SLOW_MAX = 0.5;
/**
 * Beside the slots: attempts that wait long for a server to open a session. They hold a connection and no message, so what
 * stands behind them need not wait for them: servers that never greet hold the places of others for seconds, not for the
 * minute after which they are given up.
 */
const STALLED_MAX = 1_000;
/** Sessions kept open for the next message; beyond it the oldest is closed. */
const IDLE_MAX = 1_000;

export type Sized = { job: Pick<Job, "org_id"> & { about: Pick<Job["about"], "size"> } };

/** How the servers of a path were when they were last met. */
export type Pace = "quick" | "new" | "slow";
export type Paced = { pace: Pace };

export type Slot = {
  /** The message is not in memory any more: from here on it is a slot of the smallest ones, if there is one. */
  lighten(): void;
  /** No session was opened yet, and no message is in memory: its slot is free for the next, if not too many hang so. `weigh` undoes it. */
  stall(): void;
  /** The message is to be in memory once more: whether there is a slot of its size for it. */
  weigh(): boolean;
  /** Called once. */
  leave(): void;
};

export type Shares<P> = {
  /**
   * Takes a slot for the delivery; or null where its organization has its share already: then `path` is driven again when there
   * is one.
   */
  enter(path: P, delivery: Sized): Slot | null;
  /** Notes an open session; returns how to forget it. `close` is called when there are too many. */
  keep(close: () => void): () => void;
  /** Attempts under way. */
  size(): number;
};

type Held = Record<Pace, number>;
/** `waiting`: by organization and pace, for none waits behind slower ones. */
type Row<P> = { slots: number; used: number; byOrg: Map<string, Held>; waiting: Rotation<P> };

const NOTHING: Held = { quick: 0, new: 0, slow: 0 };

/**
 * Nothing is at work yet; `drive` starts what a path may.
 */
export function createShares<P extends Paced>(
  drive: (path: P) => void,
  kinds: readonly Kind[] = KINDS,
  stalledMax: number = STALLED_MAX,
): Shares<P> {
  const rows: Row<P>[] = kinds.map(({ slots }) => rowWith(slots));
  const stalled: Row<P> = rowWith(stalledMax);

  /** Drives those that may begin now, a path of each organization in turn; each once, for it may come back to wait. */
  function pump(row: Row<P>): void {
    let looks = row.waiting.items();
    for (; looks > 0 && row.used < row.slots; looks -= 1) {
      const path = row.waiting.next((group) => {
        const [pace, orgId] = group.split(" ") as [Pace, string];
        return hasShare(row, orgId, pace);
      });
      if (path === null) return;
      drive(path);
    }
  }

  function slotIn(own: Row<P>, orgId: string, pace: Pace): Slot {
    let row = own;
    count(row, orgId, pace, 1);
    const move = (to: Row<P>): void => {
      const from = row;
      row = to;
      count(to, orgId, pace, 1);
      count(from, orgId, pace, -1);
      pump(from);
    };
    const smallest = rows[0] as Row<P>;
    return {
      lighten() {
        if (row !== smallest && hasShare(smallest, orgId, pace)) move(smallest);
      },
      stall() {
        if (row !== stalled && hasRoom(stalled, orgId)) move(stalled);
      },
      weigh() {
        if (row === own) return true;
        const may = hasShare(own, orgId, pace);
        if (may) move(own);
        return may;
      },
      leave() {
        count(row, orgId, pace, -1);
        pump(row);
      },
    };
  }

  return {
    enter(path, delivery) {
      const { org_id, about } = delivery.job;
      const row = rows.at(kinds.findIndex(({ bytes_max }) => about.size <= bytes_max)) as Row<P>;
      const { pace } = path;
      if (!hasShare(row, org_id, pace)) {
        row.waiting.add(`${pace} ${org_id}`, path);
        return null;
      }
      return slotIn(row, org_id, pace);
    },
    keep: keeper(),
    size: () => [...rows, stalled].reduce((sum, { used }) => sum + used, 0),
  };
}

function rowWith<P>(slots: number): Row<P> {
  return { slots, used: 0, byOrg: new Map(), waiting: createRotation() };
}

/** Closes the oldest of the sessions that are kept open when they are too many. */
function keeper(): Shares<never>["keep"] {
  const open = new Set<() => void>();
  return (close) => {
    open.add(close);
    const [oldest] = open;
    if (open.size > IDLE_MAX && oldest) {
      open.delete(oldest);
      oldest();
    }
    return () => void open.delete(close);
  };
}

function count(row: Row<unknown>, orgId: string, pace: Pace, by: 1 | -1): void {
  const before = row.byOrg.get(orgId) ?? NOTHING;
  const held = { ...before, [pace]: before[pace] + by };
  row.used += by;
  if (sum(held) > 0) row.byOrg.set(orgId, held);
  else row.byOrg.delete(orgId);
}

function sum({ quick, new: unknown, slow }: Held): number {
  return quick + unknown + slow;
}

function hasRoom({ slots, used, byOrg }: Row<unknown>, orgId: string): boolean {
  return mayTakeMore(sum(byOrg.get(orgId) ?? NOTHING), { max: slots, taken: used });
}

function hasShare(row: Row<unknown>, orgId: string, pace: Pace): boolean {
  const { slots, used, byOrg } = row;
  const held = byOrg.get(orgId) ?? NOTHING;
  const own = sum(held);
  if (!hasRoom(row, orgId)) return false;
  if (pace === "quick") return true;
  const share = Math.ceil((slots - (used - own)) / 2);
  if (own - held.quick >= portion(share, NOT_QUICK_MAX)) return false;
  return pace === "new" || held.slow < portion(share, SLOW_MAX);
}

/** At least one: nobody is left without. */
function portion(share: number, part: number): number {
  return Math.max(1, Math.floor(share * part));
}
