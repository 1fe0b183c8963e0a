// What this process holds of received mail, by organization: who may be given more, and whose mail is next. An organization
// that is alone has half of everything, beside others as much as it leaves free, and a newcomer finds room and a place at once.
// Pure bookkeeping.
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
type Tenant = { org_id: string; waiting: Waiting[]; jobs: number; bytes: number; running: number };

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
  /** May it be given more, and does it need it? */
  isHungry(orgId: string): boolean;
};

type State = {
  limits: Limits;
  sizeOf(job: Job): number;
  tenants: Map<string, Tenant>;
  /** Those with mail that waits, in order. */
  row: Set<Tenant>;
  held: Set<Job>;
  waiting: number;
  bytes: number;
  running: number;
};

/** `sizeOf`: bytes a job keeps in memory. */
export function createShares(sizeOf: (job: Job) => number, limits: Limits = LIMITS): Shares {
  const sums = { waiting: 0, bytes: 0, running: 0 };
  const state: State = { limits, sizeOf, tenants: new Map(), row: new Set(), held: new Set(), ...sums };
  return {
    admit(jobs) {
      for (const job of jobs) hold(state, job);
      const isTooMuch = jobs.some(({ mail }) => !hasRoom(state, tenantOf(state, mail.org_id)));
      if (isTooMuch) for (const job of jobs) release(state, job);
      return !isTooMuch;
    },
    hold: (job) => hold(state, job),
    release: (job) => release(state, job),
    push(job, done) {
      const tenant = tenantOf(state, job.mail.org_id);
      tenant.waiting.push({ job, done });
      state.waiting += 1;
      state.row.add(tenant);
    },
    next: () => takeNext(state),
    drain() {
      const left = [...state.row].flatMap(({ waiting }) => waiting.splice(0));
      state.row.clear();
      state.waiting = 0;
      return left;
    },
    jobs: () => [...state.held],
    room: () => (state.bytes < limits.bytes ? limits.jobs - state.held.size : 0),
    crowded() {
      const isFull = (tenant: Tenant) => tenant.waiting.length >= limits.waiting || !hasRoom(state, tenant);
      return [...state.tenants.values()].filter(isFull).map(({ org_id }) => org_id);
    },
    isHungry(orgId) {
      const tenant = state.tenants.get(orgId);
      return !tenant || (tenant.waiting.length < limits.waiting / 2 && hasRoom(state, tenant));
    },
  };
}

function tenantOf({ tenants }: State, orgId: string): Tenant {
  const known = tenants.get(orgId);
  if (known) return known;
  const tenant = { org_id: orgId, waiting: [], jobs: 0, bytes: 0, running: 0 };
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
  return tenant.jobs <= limits.jobs - held.size && tenant.bytes <= limits.bytes - bytes;
}

function takeNext(state: State): Next | null {
  for (const tenant of state.row) {
    if (!mayStart(state, tenant)) continue;
    state.row.delete(tenant);
    const first = tenant.waiting.shift()!;
    state.waiting -= 1;
    if (tenant.waiting.length > 0) state.row.add(tenant);
    return { ...first, leave: takePlace(state, tenant) };
  }
  return null;
}

function mayStart({ limits, held, waiting, running }: State, tenant: Tenant): boolean {
  const unfinished = held.size - waiting;
  const own = tenant.jobs - tenant.waiting.length;
  return tenant.running < limits.places - running && own < limits.unfinished - unfinished;
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
