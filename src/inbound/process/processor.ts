// Processing of accepted mail: what this process accepted it works on at once from memory; what others left behind (a
// crash, a full memory) is claimed from the queue. A claim has a lease that is renewed while the work goes on, and an
// outcome counts only while its claim stands, so any number of processes may run and any may be killed.

import { sleep } from "../../platform/clock.ts";
import { isOutOfTime, isUnavailable } from "../../platform/database/db.ts";
import { type Budget, createBudget } from "../../platform/fair/budget.ts";
import { NotNow } from "../../platform/not-now.ts";
import { beatOf } from "../../platform/process/watchdog.ts";
import { isStoreTrouble } from "../../platform/storage/blobs.ts";
import type { World } from "../../platform/world.ts";
import { LARGE_BYTES_MAX } from "../limits.ts";
import * as queries from "../queries.ts";
import type { Job, Mail, Outcome } from "../types.ts";
import { claimsOfThisPlace, isOfDeadProcess, newClaimId } from "./claim-ids.ts";
import type { Finisher } from "./finish.ts";
import { createShares, type Next, type Shares } from "./shares.ts";

export const CLAIM_LEASE_MS = 30_000;
const RENEW_EVERY_MS = 8_000;
const POLL_MS = 1_000;
const SWEEP_MS = 2_000;
const CLAIMED_AT_ONCE_MAX = 100;
/** A mail that takes longer waits for somebody (a stranger's name server, the store), not for us: another has its place. */
const QUICK_MS = 1_000;
/** Begins when the MX has stopped, which may take 30 s. */
const STOP_WITHIN_MS = 15_000;
const RETRY_MS = 10_000;
const RETRY_MS_MAX = 3_600_000;
/** A mail that fails this often for what is in it is put aside by the poison handler, so that it cannot hold up others for ever. */
const FAULTS_MAX = 3;

export type Processor = {
  /** Makes room for jobs about to be stored as claimed by us; false: there is none for their organization, store them free. */
  reserve(jobs: readonly Job[]): boolean;
  /** Gives reserved room back: they were not stored. */
  release(jobs: readonly Job[]): void;
  /** Works on reserved jobs; resolves when each of them is finished or given up. */
  offer(jobs: readonly Job[]): Promise<void>;
  /** To be called when there may be work in the queue. */
  wake(): void;
  stop(): Promise<void>;
};

export type ProcessorParts = {
  handle(mail: Mail): Promise<Outcome>;
  /** For mail whose handling failed again and again. */
  poison(mail: Mail, error: unknown): Outcome;
  toMail(row: queries.MailRow): Mail;
  finisher: Finisher;
  /** True if this process looks for work in the queue (role mx); else it does only what it accepted itself. */
  claims: boolean;
  /** After so long in work another mail has its place (`QUICK_MS`). */
  quick_ms?: number;
};

type State = {
  world: ProcessorWorld;
  parts: ProcessorParts;
  shares: Shares;
  claimer: Claimer | null;
  stopping: boolean;
};

export type ProcessorWorld = Pick<World, "db" | "clock" | "random" | "log" | "metrics" | "config">;

/** Starts processing in this process. */
export function createProcessor(world: ProcessorWorld, parts: ProcessorParts): Processor {
  const shares = createShares(({ mail }) => inMemory(world, mail));
  const state: State = { world, parts, shares, claimer: null, stopping: false };
  const large = createBudget(LARGE_BYTES_MAX);
  if (parts.claims) state.claimer = startClaiming(state, () => pump(state, large));
  const renewal = setInterval(() => renew(state), RENEW_EVERY_MS);
  return {
    reserve(jobs) {
      return !state.stopping && shares.admit(jobs);
    },
    release(jobs) {
      for (const job of jobs) shares.release(job);
    },
    async offer(jobs) {
      const all = jobs.map((job) => new Promise<void>((done) => shares.push(job, done)));
      pump(state, large);
      await Promise.all(all);
    },
    wake: () => state.claimer?.wake(),
    async stop() {
      state.stopping = true;
      await state.claimer?.stop();
      await finishUp(state);
      clearInterval(renewal);
    },
  };
}

function inMemory({ config }: Pick<World, "config">, mail: Mail): number {
  return mail.size > config.body_inline_bytes_max ? 0 : mail.size;
}

function pump(state: State, large: Budget): void {
  for (let next = state.shares.next(); next; next = state.shares.next()) run(state, next, large);
}

function run(state: State, { job, done, leave }: Next, large: Budget): void {
  const giveWay = (): void => {
    leave();
    pump(state, large);
  };
  const slow = setTimeout(giveWay, state.parts.quick_ms ?? QUICK_MS);
  work(state, job, large)
    .then((outcome) => {
      clearTimeout(slow);
      // Its outcome is committed with many others: that must not keep the next mail waiting.
      giveWay();
      return outcome ? finish(state, job, outcome) : undefined;
    })
    .finally(() => {
      state.shares.release(job);
      done();
      pump(state, large);
      state.claimer?.hasLess(job.mail.org_id);
    });
}

async function work(state: State, job: Job, large: Budget): Promise<Outcome | null> {
  const { mail } = job;
  const isLarge = inMemory(state.world, mail) === 0;
  const giveBack = isLarge ? await large.take(mail.size * 3, mail.org_id) : null;
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
  const claims = state.shares.jobs().map(({ mail, claim_id }) => ({ org_id: mail.org_id, id: mail.id, claim_id }));
  if (claims.length === 0) return;
  queries
    .renewClaims(state.world.db, claims, CLAIM_LEASE_MS)
    .catch((err) => state.world.log.warn({ err }, "claims on received mail could not be renewed"));
}

type Claimer = {
  wake(): void;
  /** The organization has less to do than before: it may have been passed over. */
  hasLess(orgId: string): void;
  stop(): Promise<void>;
};

/** Where claims go on, from one organization to the next. */
type Cursor = { after: string; passed_over: string[] };

const FROM_THE_FIRST = "00000000-0000-0000-0000-000000000000";

function startClaiming(state: State, start: () => void): Claimer {
  const { world } = state;
  let again = false;
  let hasTakenOver = false;
  let sweptAtMs = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | null = null;
  const cursor: Cursor = { after: FROM_THE_FIRST, passed_over: [] };
  const rounds = beatOf(world, "mx claims");

  async function run(): Promise<void> {
    try {
      do {
        again = false;
        rounds.beat();
        if (!hasTakenOver) await takeOver(world);
        hasTakenOver = true;
        if (world.clock.monotonic() - sweptAtMs > SWEEP_MS) {
          sweptAtMs = world.clock.monotonic();
          await queries.freeAbandoned(world.db);
        }
      } while (!state.stopping && ((await claimOnce(state, cursor, start)) || again));
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
    hasLess(orgId) {
      if (cursor.passed_over.includes(orgId) && state.shares.isHungry(orgId)) wake();
    },
    async stop() {
      clearInterval(timer);
      rounds.end();
      await running;
    },
  };
}

/** At the start: what processes of this machine held that were killed need not wait for its lease. */
async function takeOver(world: ProcessorWorld): Promise<void> {
  const bounds = claimsOfThisPlace();
  if (bounds === null) return;
  const found = await queries.claimsWithin(world.db, bounds);
  const dead = found.map(({ claim_id }) => claim_id).filter((id) => isOfDeadProcess(id));
  if (dead.length === 0) return;
  const mails = await queries.freeClaims(world.db, dead);
  world.log.info({ mails }, "received mail that an ended process of this machine held is taken over");
}

/** True when there may be more. */
async function claimOnce(state: State, cursor: Cursor, start: () => void): Promise<boolean> {
  const { world, parts, shares } = state;
  const limit = Math.min(CLAIMED_AT_ONCE_MAX, shares.room());
  if (limit <= 0) return false;
  const { after } = cursor;
  cursor.passed_over = shares.crowded();
  const claimed = await queries.claimDue(world.db, {
    claim_id: newClaimId(world),
    now: new Date(world.clock.now()),
    lease_ms: CLAIM_LEASE_MS,
    limit,
    after,
    passed_over: cursor.passed_over,
  });
  const isMore = claimed.length === limit;
  cursor.after = isMore ? claimed.reduce((last, { org_id }) => (org_id > last ? org_id : last), after) : FROM_THE_FIRST;
  const rows = new Map((await queries.loadMail(world.db, claimed)).map((row) => [row.id, row]));
  for (const { id, claim_id, attempts, faults } of claimed) {
    const row = rows.get(id);
    if (!row) continue;
    const job = { mail: parts.toMail(row), claim_id, attempts, faults };
    shares.hold(job);
    shares.push(job, () => undefined);
  }
  start();
  // Their mail is past its retention: only the place in the queue is left.
  const orphans = claimed.filter(({ id }) => !rows.has(id));
  if (orphans.length > 0) await queries.dropClaims(world.db, orphans);
  return isMore || after !== FROM_THE_FIRST;
}

/** What runs is finished, what waits is given back. */
async function finishUp(state: State): Promise<void> {
  const { world } = state;
  const left = state.shares.drain();
  const claims = left.map(({ job }) => ({ org_id: job.mail.org_id, id: job.mail.id, claim_id: job.claim_id }));
  for (const { job, done } of left) {
    state.shares.release(job);
    done();
  }
  const deadline = world.clock.monotonic() + STOP_WITHIN_MS;
  while (state.shares.jobs().length > 0 && world.clock.monotonic() < deadline) await sleep(10);
  if (claims.length > 0) await queries.returnClaims(world.db, claims, new Date(0));
}
