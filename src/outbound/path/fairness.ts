// Whose message is next on a path: round robin over organizations, then over their lanes, transactional before bulk
// 8:1. A million messages of one organization hold one turn, not the queue.
import { CLASS_BULK, type Job, type Lane } from "../types.ts";

type LaneName = Pick<Lane, "id" | "org_id" | "class" | "domain">;
type LaneQueue<J> = LaneName & { jobs: J[]; taken: number };

type Turns<J> = { organizations: Map<string, Map<number, LaneQueue<J>>> };

/** `J` is what waits: a job, with whatever belongs to it. */
export type Fairness<J> = {
  push(lane: LaneName, job: J): void;
  /** `mayTake` may pass jobs over; they keep their place in their lane. */
  next(mayTake?: (job: J) => boolean): J | null;
  size(): number;
  lanes(): number[];
  /** Takes everything out, for a path that is suspended or lost. */
  drain(): J[];
  /** Takes out what one organization has, or what of it is `wanted`. */
  drainOf(orgId: string, wanted?: (job: J) => boolean): J[];
  /** Takes out what goes to these domains; no other lane is touched. */
  drainTo(isWanted: (domain: string) => boolean): J[];
};

/** Bulk gets one turn after this many transactional ones. */
const TRANSACTIONAL_TURNS = 8;
/** So many lanes of an organization are looked at in a turn for a job that may be taken; the next turn goes on behind. */
const LANES_LOOKED_AT = 8;

/** An empty schedule; all operations O(1) amortized. */
export function createFairness<J = Job>(): Fairness<J> {
  const classes: Turns<J>[] = [{ organizations: new Map() }, { organizations: new Map() }];
  let size = 0;
  let turn = 0;

  function push(lane: LaneName, job: J): void {
    const { organizations } = classes[lane.class === CLASS_BULK ? 1 : 0] as Turns<J>;
    const lanes = organizations.get(lane.org_id) ?? new Map<number, LaneQueue<J>>();
    organizations.set(lane.org_id, lanes);
    const queue = lanes.get(lane.id) ?? { ...lane, jobs: [], taken: 0 };
    lanes.set(lane.id, queue);
    queue.jobs.push(job);
    size += 1;
  }

  function next(mayTake: (job: J) => boolean = () => true): J | null {
    if (size === 0) return null;
    const [first, second] = classes as [Turns<J>, Turns<J>];
    const bulkFirst = turn % (TRANSACTIONAL_TURNS + 1) === TRANSACTIONAL_TURNS;
    turn += 1;
    const job = takeTurn(bulkFirst ? second : first, mayTake) ?? takeTurn(bulkFirst ? first : second, mayTake);
    if (job) size -= 1;
    return job;
  }

  return {
    push,
    next,
    size: () => size,
    lanes: () =>
      classes.flatMap(({ organizations }) => [...organizations.values()].flatMap((lanes) => [...lanes.keys()])),
    drain() {
      const jobs: J[] = [];
      for (let job = next(); job; job = next()) jobs.push(job);
      return jobs;
    },
    drainOf(orgId, wanted = () => true) {
      const jobs = classes.flatMap((turns) => drainLanes(turns, orgId, wanted));
      size -= jobs.length;
      return jobs;
    },
    drainTo(isWanted) {
      const jobs = classes.flatMap((turns) => drainDomains(turns, isWanted));
      size -= jobs.length;
      return jobs;
    },
  };
}

/** The first lane of the first organization that has a job to take gives it; both then go to the end of their line. */
function takeTurn<J>({ organizations }: Turns<J>, mayTake: (job: J) => boolean): J | null {
  for (const [orgId, lanes] of organizations) {
    const taken = takeOf(lanes, mayTake);
    if (taken === null) continue;
    organizations.delete(orgId);
    if (lanes.size > 0) organizations.set(orgId, lanes);
    return taken;
  }
  return null;
}

function takeOf<J>(lanes: Map<number, LaneQueue<J>>, mayTake: (job: J) => boolean): J | null {
  let looks = Math.min(lanes.size, LANES_LOOKED_AT);
  for (const [laneId, lane] of lanes) {
    if (looks === 0) return null;
    looks -= 1;
    lanes.delete(laneId);
    const job = mayTake(lane.jobs[lane.taken] as J) ? shift(lane) : null;
    if (!isEmpty(lane)) lanes.set(laneId, lane);
    if (job !== null) return job;
  }
  return null;
}

/** What stays keeps its place. */
function drainLanes<J>({ organizations }: Turns<J>, orgId: string, wanted: (job: J) => boolean): J[] {
  const lanes = organizations.get(orgId);
  if (!lanes) return [];
  const drained: J[] = [];
  for (const [laneId, lane] of lanes) {
    const [out, left] = [
      lane.jobs.slice(lane.taken).filter(wanted),
      lane.jobs.slice(lane.taken).filter((job) => !wanted(job)),
    ];
    drained.push(...out);
    Object.assign(lane, { jobs: left, taken: 0 });
    if (left.length === 0) lanes.delete(laneId);
  }
  if (lanes.size === 0) organizations.delete(orgId);
  return drained;
}

function drainDomains<J>({ organizations }: Turns<J>, isWanted: (domain: string) => boolean): J[] {
  const drained: J[] = [];
  for (const [orgId, lanes] of organizations) {
    for (const [laneId, { domain, jobs, taken }] of lanes) {
      if (!isWanted(domain)) continue;
      drained.push(...jobs.slice(taken));
      lanes.delete(laneId);
    }
    if (lanes.size === 0) organizations.delete(orgId);
  }
  return drained;
}

function shift<J>(lane: LaneQueue<J>): J {
  const job = lane.jobs[lane.taken] as J;
  lane.taken += 1;
  if (lane.taken > 64 && lane.taken * 2 > lane.jobs.length) {
    lane.jobs = lane.jobs.slice(lane.taken);
    lane.taken = 0;
  }
  return job;
}

function isEmpty(lane: LaneQueue<unknown>): boolean {
  return lane.taken >= lane.jobs.length;
}
