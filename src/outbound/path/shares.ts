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
/** Sessions kept open for the next message; beyond it the oldest is closed. */
const IDLE_MAX = 1_000;

export type Sized = { job: Pick<Job, "org_id"> & { about: Pick<Job["about"], "size"> } };

export type Shares<P> = {
  /**
   * Takes a slot for the delivery, unless its organization has its share already: then `path` is driven again when there is
   * one. Each slot that was taken is followed by `leave`.
   */
  enter(path: P, delivery: Sized): boolean;
  leave(delivery: Sized): void;
  /** Notes an open session; returns how to forget it. `close` is called when there are too many. */
  keep(close: () => void): () => void;
  /** Attempts under way. */
  size(): number;
};

type Row<P> = { slots: number; used: number; byOrg: Map<string, number>; waiting: Rotation<P> };

/**
 * Nothing is at work yet; `drive` starts what a path may.
 */
export function createShares<P>(drive: (path: P) => void, kinds: readonly Kind[] = KINDS): Shares<P> {
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
      const path = row.waiting.next((orgId) => hasShare(row, orgId));
      if (path === null) return;
      drive(path);
    }
  }

  return {
    enter(path, delivery) {
      const row = rowOf(delivery);
      const { org_id } = delivery.job;
      if (!hasShare(row, org_id)) {
        row.waiting.add(org_id, path);
        return false;
      }
      row.used += 1;
      row.byOrg.set(org_id, (row.byOrg.get(org_id) ?? 0) + 1);
      return true;
    },
    leave(delivery) {
      const row = rowOf(delivery);
      const { org_id } = delivery.job;
      const left = (row.byOrg.get(org_id) ?? 0) - 1;
      row.used -= 1;
      if (left > 0) row.byOrg.set(org_id, left);
      else row.byOrg.delete(org_id);
      pump(row);
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

function hasShare({ slots, used, byOrg }: Row<unknown>, orgId: string): boolean {
  return mayTakeMore(byOrg.get(orgId) ?? 0, { max: slots, taken: used });
}
