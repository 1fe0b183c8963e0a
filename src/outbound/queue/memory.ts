// What this process holds: how many deliveries and bytes, per lane and slot. Bounds hand-over and claims, and tells
// which slots are idle. Pure bookkeeping.

import { isWithinShare, mayTakeMore } from "../../platform/fair/share.ts";
import { type Job, type Lane, type Owned, ownedName } from "../types.ts";
import type { Slot } from "./leases.ts";

/** Postfix's active queue is 20,000 messages as well. */
const JOBS_MAX = 20_000;
const BYTES_MAX = 192 * 1024 * 1024;
const LANE_HANDOVER_MAX = 4_000;
const LANE_WINDOW = 500;
/** An organization that holds its share is given more once a whole claim fits again. */
const REFILL = 400;

type Held = { jobs: number; org_id: string; slot: string; backlog: boolean };
type Tenant = { jobs: number; backlogs: number; crowded: boolean };

export type Memory = {
  /** Counts a hand-over, unless there is no room or older mail of the lane waits in the queue. */
  admit(lane: Lane, bytes: number, nowMs: number): boolean;
  /** Counts claimed rows (their bodies are loaded one by one). */
  claimed(lane: Lane): void;
  remove(lane: Lane, bytes: number): void;
  /** Notes that the job, counted already, is in this process's hands until `finish`. */
  hold(job: Job): void;
  holds(key: Owned): boolean;
  finish(job: Job): void;
  /** How many rows may be claimed for a lane now. */
  room(laneId: number): number;
  roomInAll(): number;
  busyLanes(): number[];
  /** The queue holds (no) older mail of this lane: hand-over would overtake it. */
  setBacklog(laneId: number, has: boolean): void;
  /** True if the queue of some lane holds more than was taken, and its organization may hold more. */
  hasBacklog(): boolean;
  /** Organizations that hold their share. */
  crowded(): string[];
  /** Nothing of these lanes is handed over until then, whether or not any of their mail is held now. */
  pause(lanes: number[], untilMs: number): void;
  resume(lanes: number[]): void;
  /** Forgets pauses that are over. */
  dropPauses(nowMs: number): void;
  isIdle(slot: Slot): boolean;
  size(): number;
};

/** An empty memory. */
export function createMemory(): Memory {
  const lanes = new Map<number, Held>();
  const slots = new Map<string, number>();
  const tenants = new Map<string, Tenant>();
  const pauses = new Map<number, number>();
  let jobs = 0;
  let bytes = 0;

  const inHand = new Set<string>();

  const slotKey = (lane: { source_id: string; slot: number }) => `${lane.source_id}/${lane.slot}`;

  function held(lane: Lane): Held {
    let entry = lanes.get(lane.id);
    if (!entry) {
      entry = { jobs: 0, org_id: lane.org_id, slot: slotKey(lane), backlog: false };
      lanes.set(lane.id, entry);
    }
    return entry;
  }

  function tenantOf({ org_id }: Pick<Held, "org_id">): Tenant {
    const known = tenants.get(org_id) ?? { jobs: 0, backlogs: 0, crowded: false };
    tenants.set(org_id, known);
    return known;
  }

  function isCrowded(tenant: Tenant): boolean {
    const room = { max: JOBS_MAX, taken: jobs };
    tenant.crowded = !(tenant.crowded ? isWithinShare(tenant.jobs + REFILL, room) : mayTakeMore(tenant.jobs, room));
    return tenant.crowded;
  }

  function mark(entry: Held, has: boolean): void {
    if (entry.backlog !== has) tenantOf(entry).backlogs += has ? 1 : -1;
    entry.backlog = has;
  }

  function add(entry: Held, size: number): void {
    entry.jobs += 1;
    tenantOf(entry).jobs += 1;
    jobs += 1;
    bytes += size;
    slots.set(entry.slot, (slots.get(entry.slot) ?? 0) + 1);
  }

  function subtract(laneId: number, size: number): void {
    const entry = lanes.get(laneId);
    if (!entry) return;
    entry.jobs -= 1;
    const tenant = tenantOf(entry);
    tenant.jobs -= 1;
    if (tenant.jobs <= 0 && tenant.backlogs === 0) tenants.delete(entry.org_id);
    jobs -= 1;
    bytes -= size;
    slots.set(entry.slot, (slots.get(entry.slot) ?? 1) - 1);
    if (entry.jobs <= 0 && !entry.backlog) lanes.delete(laneId);
  }

  return {
    admit(lane, size, nowMs) {
      if ((pauses.get(lane.id) ?? 0) > nowMs) return false;
      const entry = held(lane);
      const isFull = isCrowded(tenantOf(entry)) || bytes + size > BYTES_MAX || entry.jobs >= LANE_HANDOVER_MAX;
      if (isFull) mark(entry, true);
      if (isFull || entry.backlog) return false;
      add(entry, size);
      return true;
    },
    claimed: (lane) => add(held(lane), 0),
    remove: (lane, size) => subtract(lane.id, size),
    hold: (job) => void inHand.add(ownedName(job)),
    holds: (key) => inHand.has(ownedName(key)),
    finish(job) {
      inHand.delete(ownedName(job));
      subtract(job.lane_id, job.mime?.length ?? 0);
    },
    room: (laneId) => Math.max(0, LANE_WINDOW - (lanes.get(laneId)?.jobs ?? 0)),
    roomInAll: () => JOBS_MAX - jobs,
    busyLanes: () => [...lanes].filter(([, entry]) => entry.jobs >= LANE_WINDOW).map(([id]) => id),
    setBacklog(laneId, has) {
      const entry = lanes.get(laneId);
      if (!entry) return;
      mark(entry, has);
      if (entry.jobs <= 0 && !has) lanes.delete(laneId);
    },
    pause(ids, untilMs) {
      for (const id of ids) pauses.set(id, untilMs);
    },
    resume(ids) {
      for (const id of ids) pauses.delete(id);
    },
    dropPauses(nowMs) {
      for (const [id, untilMs] of pauses) if (untilMs <= nowMs) pauses.delete(id);
    },
    hasBacklog: () => [...tenants.values()].some((tenant) => tenant.backlogs > 0 && !isCrowded(tenant)),
    crowded: () => [...tenants].filter(([, tenant]) => isCrowded(tenant)).map(([id]) => id),
    isIdle: (slot) => (slots.get(slotKey(slot)) ?? 0) === 0,
    size: () => jobs,
  };
}
