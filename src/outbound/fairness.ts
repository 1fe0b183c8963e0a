// Whose message is next on a path: round robin over organizations, then over their lanes, transactional before bulk
// 8:1. A million messages of one organization hold one turn, not the queue.
import { CLASS_BULK, type Job } from "./types.ts";

export type LaneQueue = { id: number; org_id: string; class: number; jobs: Job[]; taken: number };

type Turns = { organizations: Map<string, Map<number, LaneQueue>> };

export type Fairness = {
  push(lane: Pick<LaneQueue, "id" | "org_id" | "class">, job: Job): void;
  next(): Job | null;
  size(): number;
  lanes(): number[];
  /** Takes everything out, for a path that is suspended or lost. */
  drain(): Job[];
};

/** Bulk gets one turn after this many transactional ones. */
const TRANSACTIONAL_TURNS = 8;

/** An empty schedule; all operations O(1) amortized. */
export function createFairness(): Fairness {
  const classes: Turns[] = [{ organizations: new Map() }, { organizations: new Map() }];
  let size = 0;
  let turn = 0;

  function push(lane: Pick<LaneQueue, "id" | "org_id" | "class">, job: Job): void {
    const { organizations } = classes[lane.class === CLASS_BULK ? 1 : 0] as Turns;
    const lanes = organizations.get(lane.org_id) ?? new Map<number, LaneQueue>();
    organizations.set(lane.org_id, lanes);
    const queue = lanes.get(lane.id) ?? { ...lane, jobs: [], taken: 0 };
    lanes.set(lane.id, queue);
    queue.jobs.push(job);
    size += 1;
  }

  function next(): Job | null {
    if (size === 0) return null;
    const [first, second] = classes as [Turns, Turns];
    const bulkFirst = turn % (TRANSACTIONAL_TURNS + 1) === TRANSACTIONAL_TURNS;
    turn += 1;
    const job = takeTurn(bulkFirst ? second : first) ?? takeTurn(bulkFirst ? first : second);
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
      const jobs: Job[] = [];
      for (let job = next(); job; job = next()) jobs.push(job);
      return jobs;
    },
  };
}

/** The first organization's first lane gives one job; both then go to the end of their line. */
function takeTurn({ organizations }: Turns): Job | null {
  for (const [orgId, lanes] of organizations) {
    organizations.delete(orgId);
    for (const [laneId, lane] of lanes) {
      lanes.delete(laneId);
      const job = shift(lane);
      if (!isEmpty(lane)) lanes.set(laneId, lane);
      if (lanes.size > 0) organizations.set(orgId, lanes);
      return job;
    }
  }
  return null;
}

function shift(lane: LaneQueue): Job {
  const job = lane.jobs[lane.taken] as Job;
  lane.taken += 1;
  if (lane.taken > 64 && lane.taken * 2 > lane.jobs.length) {
    lane.jobs = lane.jobs.slice(lane.taken);
    lane.taken = 0;
  }
  return job;
}

function isEmpty(lane: LaneQueue): boolean {
  return lane.taken >= lane.jobs.length;
}
