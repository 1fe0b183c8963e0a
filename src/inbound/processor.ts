// Processing of accepted mail: what this process accepted it works on at once from memory; what others left behind (a
// crash, a full memory) is claimed from the queue. A claim has a lease that is renewed while the work goes on, and an
// outcome counts only while its claim stands, so any number of processes may run and any may be killed.
import { isStoreTrouble } from "../platform/blobs.ts";
import { createBudget } from "../platform/budget.ts";
import { sleep } from "../platform/clock.ts";
import { isOutOfTime, isUnavailable } from "../platform/db.ts";
import { NotNow } from "../platform/not-now.ts";
import { beatOf } from "../platform/watchdog.ts";
import type { World } from "../platform/world.ts";
import type { Finisher } from "./finish.ts";
import { LARGE_BYTES_MAX } from "./limits.ts";
import * as queries from "./queries.ts";
import type { Mail, Outcome } from "./types.ts";

export const CLAIM_LEASE_MS = 30_000;
const RENEW_EVERY_MS = 8_000;
const POLL_MS = 1_000;
const SWEEP_MS = 2_000;
const CLAIMED_AT_ONCE_MAX = 100;
const CONCURRENT_MAX = 32;
/** In work or waiting for the commit of their outcome, which holds their events in memory. */
const UNFINISHED_MAX = 400;
const JOBS_MAX = 1_000;
const BYTES_MAX = 64 * 1024 * 1024;
/** Begins when the MX has stopped, which may take 30 s. */
const STOP_WITHIN_MS = 15_000;
const RETRY_MS = 10_000;
const RETRY_MS_MAX = 3_600_000;
/** A mail that fails this often for what is in it is put aside by the poison handler, so that it cannot hold up others for ever. */
const FAULTS_MAX = 3;

/** A claimed mail; `faults`: how many of the attempts before failed although nothing was away. */
export type Job = { mail: Mail; claim_id: string; attempts: number; faults: number };

export type Processor = {
  /** Makes room for jobs about to be stored as claimed by us; false: store them free. */
  reserve(jobs: readonly Job[]): boolean;
  /** Gives reserved room back: they were not stored. */
  release(jobs: readonly Job[]): void;
  /** Works on reserved jobs; resolves when each of them is finished or given up. */
  offer(jobs: readonly Job[]): Promise<void>;
  /** There may be work in the queue. */
  wake(): void;
  stop(): Promise<void>;
};

export type ProcessorParts = {
  handle(mail: Mail): Promise<Outcome>;
  /** For mail whose handling failed again and again. */
  poison(mail: Mail, error: unknown): Outcome;
  toMail(row: queries.MailRow): Mail;
  finisher: Finisher;
  /** Does this process look for work in the queue (role mx), or only do its own? */
  claims: boolean;
};

type State = {
  world: ProcessorWorld;
  parts: ProcessorParts;
  waiting: { job: Job; done: () => void }[];
  held: Map<string, Job>;
  bytes: number;
  running: number;
  stopping: boolean;
};

export type ProcessorWorld = Pick<World, "db" | "clock" | "random" | "log" | "metrics" | "config">;

/** Starts processing in this process. */
export function createProcessor(world: ProcessorWorld, parts: ProcessorParts): Processor {
  const state: State = { world, parts, waiting: [], held: new Map(), bytes: 0, running: 0, stopping: false };
  const large = createBudget(LARGE_BYTES_MAX);
  const claimer = parts.claims ? startClaiming(state, () => pump(state, large)) : null;
  const renewal = setInterval(() => renew(state), RENEW_EVERY_MS);
  return {
    reserve(jobs) {
      const bytes = jobs.reduce((sum, { mail }) => sum + inMemory(state, mail), 0);
      if (state.stopping || state.held.size + jobs.length > JOBS_MAX || state.bytes + bytes > BYTES_MAX) return false;
      for (const job of jobs) hold(state, job);
      return true;
    },
    release(jobs) {
      for (const job of jobs) letGo(state, job);
    },
    async offer(jobs) {
      const all = jobs.map((job) => new Promise<void>((done) => state.waiting.push({ job, done })));
      pump(state, large);
      await Promise.all(all);
    },
    wake: () => claimer?.wake(),
    async stop() {
      state.stopping = true;
      await claimer?.stop();
      await finishUp(state);
      clearInterval(renewal);
    },
  };
}

function inMemory(state: State, mail: Mail): number {
  return mail.size > state.world.config.body_inline_bytes_max ? 0 : mail.size;
}

function hold(state: State, job: Job): void {
  state.held.set(job.mail.id, job);
  state.bytes += inMemory(state, job.mail);
}

function letGo(state: State, job: Job): void {
  if (state.held.delete(job.mail.id)) state.bytes -= inMemory(state, job.mail);
}

function pump(state: State, large: ReturnType<typeof createBudget>): void {
  while (state.running < CONCURRENT_MAX && state.held.size - state.waiting.length < UNFINISHED_MAX) {
    const next = state.waiting.shift();
    if (!next) return;
    state.running += 1;
    work(state, next.job, large)
      .then((outcome) => {
        // Its outcome is committed with many others: that must not keep the next mail waiting.
        state.running -= 1;
        pump(state, large);
        return outcome ? finish(state, next.job, outcome) : undefined;
      })
      .finally(() => {
        letGo(state, next.job);
        next.done();
        pump(state, large);
      });
  }
}

async function work(state: State, job: Job, large: ReturnType<typeof createBudget>): Promise<Outcome | null> {
  const { mail } = job;
  const isLarge = inMemory(state, mail) === 0;
  const giveBack = isLarge ? await large.take(mail.size * 3) : null;
  try {
    return await decide(state, job);
  } finally {
    giveBack?.();
  }
}

async function finish(state: State, job: Job, outcome: Outcome): Promise<void> {
  const failure = await state.parts.finisher.finish(job, outcome).catch((error: unknown) => error);
  if (failure === null) return;
  state.world.log.error({ err: failure, inbound_id: job.mail.id }, "an outcome could not be recorded");
  await giveUp(state, job);
}

/** Null: given back to the queue for another try. */
async function decide(state: State, job: Job): Promise<Outcome | null> {
  const { world, parts } = state;
  try {
    return await parts.handle(job.mail);
  } catch (error) {
    world.log.error(
      { err: error, inbound_id: job.mail.id, attempts: job.attempts },
      "received mail could not be processed",
    );
    // A mail answered 250 waits for the database and the store as long as they take, and where its handler says so; not for a
    // statement that takes too long each time.
    const isAway = isUnavailable(error) && !isOutOfTime(error);
    const isFault = !isAway && !isStoreTrouble(error) && !(error instanceof NotNow);
    if (isFault && job.faults + 1 >= FAULTS_MAX) return parts.poison(job.mail, error);
    await giveUp(state, job, isFault ? 1 : 0);
    return null;
  }
}

async function giveUp(state: State, job: Job, faults = 0): Promise<void> {
  const at = new Date(state.world.clock.now() + Math.min(RETRY_MS * job.attempts, RETRY_MS_MAX));
  const { org_id, id } = job.mail;
  // Its lease runs out if the database cannot be reached.
  await queries
    .returnClaims(state.world.db, [{ org_id, id, claim_id: job.claim_id }], at, faults)
    .catch((err) => state.world.log.warn({ err }, "received mail could not be given back"));
}

function renew(state: State): void {
  const claims = [...state.held.values()].map(({ mail, claim_id }) => ({ org_id: mail.org_id, id: mail.id, claim_id }));
  if (claims.length === 0) return;
  queries
    .renewClaims(state.world.db, claims, CLAIM_LEASE_MS)
    .catch((err) => state.world.log.warn({ err }, "claims on received mail could not be renewed"));
}

type Claimer = { wake(): void; stop(): Promise<void> };

function startClaiming(state: State, start: () => void): Claimer {
  const { world } = state;
  let again = false;
  let sweptAtMs = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | null = null;
  const rounds = beatOf(world, "mx claims");

  async function run(): Promise<void> {
    try {
      do {
        again = false;
        rounds.beat();
        if (world.clock.monotonic() - sweptAtMs > SWEEP_MS) {
          sweptAtMs = world.clock.monotonic();
          await queries.freeAbandoned(world.db);
        }
      } while (!state.stopping && ((await claimOnce(state, start)) || again));
    } catch (err) {
      world.log.warn({ err }, "received mail could not be claimed; trying again");
    }
    running = null;
  }
  function wake(): void {
    again = true;
    if (!running && !state.stopping) running = run();
  }
  const timer = setInterval(wake, POLL_MS);
  wake();
  return {
    wake,
    async stop() {
      clearInterval(timer);
      rounds.end();
      await running;
    },
  };
}

/** True when there may be more. */
async function claimOnce(state: State, start: () => void): Promise<boolean> {
  const { world, parts } = state;
  const limit = Math.min(
    CLAIMED_AT_ONCE_MAX,
    JOBS_MAX - state.held.size,
    CLAIMED_AT_ONCE_MAX * 2 - state.waiting.length,
  );
  if (limit <= 0 || state.bytes >= BYTES_MAX) return false;
  const claim = { claim_id: world.random.uuid(), now: new Date(world.clock.now()), lease_ms: CLAIM_LEASE_MS, limit };
  const claimed = await queries.claimDue(world.db, claim);
  if (claimed.length === 0) return false;
  const rows = new Map((await queries.loadMail(world.db, claimed)).map((row) => [row.id, row]));
  for (const { id, claim_id, attempts, faults } of claimed) {
    const row = rows.get(id);
    if (!row) continue;
    const job = { mail: parts.toMail(row), claim_id, attempts, faults };
    hold(state, job);
    state.waiting.push({ job, done: () => undefined });
  }
  start();
  // Their mail is past its retention: only the place in the queue is left.
  const orphans = claimed.filter(({ id }) => !rows.has(id));
  if (orphans.length > 0) await queries.dropClaims(world.db, orphans);
  return claimed.length === limit;
}

/** What runs is finished, what waits is given back. */
async function finishUp(state: State): Promise<void> {
  const { world } = state;
  const left = state.waiting.splice(0);
  const claims = left.map(({ job }) => ({ org_id: job.mail.org_id, id: job.mail.id, claim_id: job.claim_id }));
  for (const { job, done } of left) {
    letGo(state, job);
    done();
  }
  const deadline = world.clock.monotonic() + STOP_WITHIN_MS;
  while (state.held.size > 0 && world.clock.monotonic() < deadline) await sleep(10);
  if (claims.length > 0) await queries.returnClaims(world.db, claims, new Date(0));
}
