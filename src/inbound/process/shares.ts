// What this process holds of received mail, by organization: who may be given more, and whose mail is next. An organization
// that is alone has half of everything, beside others as much as it leaves free, and a newcomer finds room and a place at once.
// Pure bookkeeping.
import { createRotation, type Rotation } from "../../platform/fair/rotation.ts";
import { isWithinShare, mayTakeMore } from "../../platform/fair/share.ts";
import type { Job } from "../types.ts";

export type Limits = {
  /** Held at all. */
  jobs: number;
  bytes: number;
  /** In work or waiting for the commit of their outcome, which holds their events in memory. */
  unfinished: number;
  places: number;
  /** An organization that has so much waiting gets nothing more from the queue until it is down to half. */
  waiting: number;
};
const LIMITS: Limits = { jobs: 2_000, bytes: 96 * 1024 * 1024, unfinished: 800, places: 64, waiting: 100 };

type Waiting = { job: Job; done: () => void };
type Tenant = { org_id: string; jobs: number; bytes: number; running: number };

export type Next = Waiting & {
  /** Gives the place to the next mail; the job is held still. */
  leave(): void;
};

export type Shares = {
  /** Counts the jobs, unless one of their organizations would have more than its share; all or none. */
  admit(jobs: readonly Job[]): boolean;
  /** Counts jobs that are claimed already. */
  hold(job: Job): void;
  release(job: Job): void;
  /** A job that is held waits for its place. */
  push(job: Job, done: () => void): void;
  /** One of each organization in turn; null when nobody who waits may have a place. */
  next(): Next | null;
  /** Everything that waits, which waits no longer. */
  drain(): Waiting[];
  jobs(): Job[];
  /** How many may be claimed from the queue. */
  room(): number;
  /** Organizations that are to be given nothing more from the queue. */
  crowded(): string[];
  /** True if the organization may be given more, and few of its mails wait here. */
  isHungry(orgId: string): boolean;
};

type State = {
  limits: Limits;
  sizeOf(job: Job): number;
  tenants: Map<string, Tenant>;
  waiting: Rotation<Waiting>;
  held: Set<Job>;
  bytes: number;
  running: number;
};

/** `sizeOf`: bytes a job keeps in memory. */
export function createShares(sizeOf: (job: Job) => number, limits: Limits = LIMITS): Shares {
  const waiting = createRotation<Waiting>();
  const state: State = { limits, sizeOf, tenants: new Map(), waiting, held: new Set(), bytes: 0, running: 0 };
  return {
    admit(jobs) {
      for (const job of jobs) hold(state, job);
      const isTooMuch = jobs.some(({ mail }) => !hasRoom(state, tenantOf(state, mail.org_id)));
      if (isTooMuch) for (const job of jobs) release(state, job);
      return !isTooMuch;
    },
    hold: (job) => hold(state, job),
    release: (job) => release(state, job),
    push: (job, done) => waiting.add(job.mail.org_id, { job, done }),
    next: () => takeNext(state),
    drain() {
      const left: Waiting[] = [];
      for (let next = waiting.next(); next !== null; next = waiting.next()) left.push(next);
      return left;
    },
    jobs: () => [...state.held],
    room: () => (state.bytes < limits.bytes ? limits.jobs - state.held.size : 0),
    crowded() {
      const isFull = (tenant: Tenant) => waiting.sizeOf(tenant.org_id) >= limits.waiting || !hasRoom(state, tenant);
      return [...state.tenants.values()].filter(isFull).map(({ org_id }) => org_id);
    },
    isHungry(orgId) {
      const tenant = state.tenants.get(orgId);
      return !tenant || (waiting.sizeOf(orgId) < limits.waiting / 2 && hasRoom(state, tenant));
    },
  };
}

function tenantOf({ tenants }: State, orgId: string): Tenant {
  const known = tenants.get(orgId);
  if (known) return known;
  const tenant = { org_id: orgId, jobs: 0, bytes: 0, running: 0 };
  tenants.set(orgId, tenant);
  return tenant;
}

function hold(state: State, job: Job): void {
  const tenant = tenantOf(state, job.mail.org_id);
  const bytes = state.sizeOf(job);
  state.held.add(job);
  tenant.jobs += 1;
  tenant.bytes += bytes;
  state.bytes += bytes;
}

function release(state: State, job: Job): void {
  if (!state.held.delete(job)) return;
  const tenant = tenantOf(state, job.mail.org_id);
  const bytes = state.sizeOf(job);
  tenant.jobs -= 1;
  tenant.bytes -= bytes;
  state.bytes -= bytes;
  forget(state, tenant);
}

function forget({ tenants }: State, { org_id, jobs, running }: Tenant): void {
  if (jobs === 0 && running === 0) tenants.delete(org_id);
}

function hasRoom({ limits, held, bytes }: State, tenant: Tenant): boolean {
  const isFew = isWithinShare(tenant.jobs, { max: limits.jobs, taken: held.size });
  return isFew && isWithinShare(tenant.bytes, { max: limits.bytes, taken: bytes });
}

function takeNext(state: State): Next | null {
  const next = state.waiting.next((orgId) => mayStart(state, tenantOf(state, orgId)));
  return next && { ...next, leave: takePlace(state, tenantOf(state, next.job.mail.org_id)) };
}

function mayStart({ limits, held, waiting, running }: State, tenant: Tenant): boolean {
  const unfinished = { max: limits.unfinished, taken: held.size - waiting.items() };
  const own = tenant.jobs - waiting.sizeOf(tenant.org_id);
  return mayTakeMore(tenant.running, { max: limits.places, taken: running }) && mayTakeMore(own, unfinished);
}

function takePlace(state: State, tenant: Tenant): () => void {
  tenant.running += 1;
  state.running += 1;
  let isTaken = true;
  return () => {
    if (!isTaken) return;
    isTaken = false;
    tenant.running -= 1;
    state.running -= 1;
    forget(state, tenant);
  };
}
