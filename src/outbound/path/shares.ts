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
 * in memory once while it is sent, and a second time while it is signed.
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
/** Sessions kept open for the next message; beyond it the oldest is closed. */
const IDLE_MAX = 1_000;

export type Sized = { job: Pick<Job, "org_id"> & { about: Pick<Job["about"], "size"> } };

/** How the servers of a path were when they were last met. */
export type Pace = "quick" | "new" | "slow";
export type Paced = { pace: Pace };

export type Shares<P> = {
  /**
   * Takes a slot for the delivery, and gives how to leave it, which is called once; or null where its organization has its share
   * already: then `path` is driven again when there is one.
   */
  enter(path: P, delivery: Sized): (() => void) | null;
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
export function createShares<P extends Paced>(drive: (path: P) => void, kinds: readonly Kind[] = KINDS): Shares<P> {
  const rows: Row<P>[] = kinds.map(({ slots }) => ({ slots, used: 0, byOrg: new Map(), waiting: createRotation() }));
  const open = new Set<() => void>();

  function rowOf({ job }: Sized): Row<P> {
    const at = kinds.findIndex(({ bytes_max }) => job.about.size <= bytes_max);
    return rows.at(at) as Row<P>;
  }

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

  return {
    enter(path, delivery) {
      const row = rowOf(delivery);
      const { org_id } = delivery.job;
      const { pace } = path;
      if (!hasShare(row, org_id, pace)) {
        row.waiting.add(`${pace} ${org_id}`, path);
        return null;
      }
      count(row, org_id, pace, 1);
      return () => {
        count(row, org_id, pace, -1);
        pump(row);
      };
    },
    keep(close) {
      open.add(close);
      const [oldest] = open;
      if (open.size > IDLE_MAX && oldest) {
        open.delete(oldest);
        oldest();
      }
      return () => void open.delete(close);
    },
    size: () => rows.reduce((sum, { used }) => sum + used, 0),
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

function hasShare({ slots, used, byOrg }: Row<unknown>, orgId: string, pace: Pace): boolean {
  const held = byOrg.get(orgId) ?? NOTHING;
  const own = sum(held);
  if (!mayTakeMore(own, { max: slots, taken: used })) return false;
  if (pace === "quick") return true;
  const share = Math.ceil((slots - (used - own)) / 2);
  if (own - held.quick >= portion(share, NOT_QUICK_MAX)) return false;
  return pace === "new" || held.slow < portion(share, SLOW_MAX);
}

/** At least one: nobody is left without. */
function portion(share: number, part: number): number {
  return Math.max(1, Math.floor(share * part));
}
