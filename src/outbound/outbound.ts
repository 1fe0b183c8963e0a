// The delivery engine: lanes → claim or hand-over → path → attempt → outcome. Face of the feature. One engine a process;
// any number of processes share a database, each driving the slots it holds a lease on.
import type { SigningKey } from "../mail/dkim/sign.ts";
import { sleep } from "../platform/clock.ts";
import type { Tx } from "../platform/db.ts";
import type { World } from "../platform/world.ts";
import { wakeHooks } from "../webhooks/webhooks.ts";
import { deferredLocally } from "./attempt.ts";
import { bodyLoader } from "./bodies.ts";
import { doubtCounter, recordInDoubt } from "./bury.ts";
import { type Claimer, createClaimer } from "./claims.ts";
import { createFinisher } from "./finish.ts";
import { type Forgotten, watchForgotten } from "./forgotten.ts";
import { createIntake, type Intake } from "./intake.ts";
import type { Journal } from "./journal.ts";
import { type FindLane, laneFinder } from "./lanes.ts";
import { holdLeases, type Leases } from "./leases.ts";
import type { Errand } from "./links.ts";
import { createMemory, type Memory } from "./memory.ts";
import { type OtherSource, rememberRefused } from "./other-source.ts";
import { type OpenSession, type Outside, realOutside } from "./outside.ts";
import { createParking, type Parking } from "./parking.ts";
import { closePath, createPath, drive, isSuspended, type Path, type PathParts } from "./path.ts";
import * as queries from "./queries.ts";
import { type Reach, watchReach } from "./reach.ts";
import { createRehomer, type Rehomer } from "./rehome.ts";
import { relayFinder, relayPlanner } from "./relays.ts";
import { createRoutes } from "./routes.ts";
import { createSecondLook } from "./second-look.ts";
import { createShares } from "./shares.ts";
import { createSources, type KnownSource, type Sources } from "./sources.ts";
import { gatherTlsResults, type TlsResults } from "./tls-results.ts";
import type { Job, Lane } from "./types.ts";
import { gatherUsage, type Usage } from "./usage.ts";
import { notifier } from "./wake.ts";

export { TOKEN_CONTEXT } from "./attempt.ts";
export { type ChooseExit, type Exit, exitChooser } from "./exits.ts";
export { resumeSending } from "./guard.ts";
export { type FindLane, laneFinder } from "./lanes.ts";
export { refuseUnknownPool } from "./pools.ts";
export { KEEP_TRYING_MS } from "./retry.ts";
export type { Job, Lane, MessageAbout } from "./types.ts";
export { CLASS_BULK, CLASS_TRANSACTIONAL, DEFAULT_SOURCE_ID } from "./types.ts";
export { CHANNEL as MTA_CHANNEL, notifier } from "./wake.ts";

export type Outbound = {
  /**
   * The node id under which a delivery of `lane` may be inserted already owned, or null when it must be claimed later
   * (not this node's slot, memory full, older mail waiting). Every reservation is followed by `offer` or `release`.
   */
  reserve(lane: Lane, bytes: number): number | null;
  release(lane: Lane, bytes: number): void;
  /** Takes a committed, reserved delivery into work: no claim, no read. */
  offer(lane: Lane, job: Job): void;
  /** There may be due mail in the queue. */
  wake(): void;
  stop(): Promise<void>;
};

export type OutboundDeps = {
  signingKeys(orgId: string, domainId: string): Promise<SigningKey[]>;
  roles: string[];
  /** Absent: one of its own. */
  findLane?: FindLane;
  /** Absent: this machine. */
  outside?: Outside;
};

const PATHS_IDLE_MS = 300_000;
const STOP_WITHIN_MS = 40_000;
const STOP_LOOK_MS = 20;
const AGAIN_MS = 1_000;

type Engine = {
  world: World;
  deps: OutboundDeps;
  paths: Map<string, Path>;
  lanePaths: Map<number, Path>;
  sources: Sources;
  usage: Usage;
  otherSource: OtherSource;
  memory: Memory;
  results: TlsResults;
  leases: Leases;
  journal: Journal | null;
  claimer: Claimer;
  forgotten: Forgotten;
  reach: Reach;
  rehomer: Rehomer;
  intake: Intake;
  parts: PathParts;
  parking: Parking;
  /** Reservations whose accepting statement is under way. */
  reserved: number;
  stopping: boolean;
};

/** Starts the engine: takes leases, begins to claim. */
export async function startOutbound(world: World, deps: OutboundDeps): Promise<Outbound> {
  const engine = {
    world,
    deps,
    paths: new Map(),
    lanePaths: new Map(),
    reserved: 0,
    stopping: false,
  } as unknown as Engine;
  const outside = deps.outside ?? realOutside(world);
  const { host, open, journals } = outside;
  engine.sources = await createSources(world);
  engine.usage = gatherUsage(world);
  engine.otherSource = rememberRefused(engine.sources);
  engine.memory = createMemory();
  engine.results = gatherTlsResults(world);
  engine.reach = await watchReach({ ...world, open }, host.machine, () => divertAll(engine));
  engine.leases = await holdLeases(world, {
    roles: deps.roles,
    host,
    isIdle: (slot) => engine.memory.isIdle(slot),
    lookAround: () => engine.sources.refresh(),
    holders: (tx, node, nodes) => engine.sources.holders(tx, node, nodes),
    onRegistered: (node) => {
      engine.journal?.close();
      engine.journal = journals.open(node);
    },
    onBuried: (tx, dead) => recordInDoubt(tx, world, dead, outside),
    onForgotten({ id, machine }) {
      if (machine === host.machine) journals.remove(id);
    },
    onLost: () => forgetAll(engine),
  });
  engine.parts = pathParts(engine, open);
  engine.parking = createParking(world, {
    memory: engine.memory,
    finisher: engine.parts.finisher,
    lanesOf: (path) => lanesOf(engine, path),
    drive: (path) => drive(world, engine.parts, path),
    woken: () => engine.claimer.wake(),
  });
  engine.rehomer = rehomer(engine);
  engine.intake = createIntake(world, {
    routes: createRoutes(world, engine.results),
    relays: relayFinder(world),
    planRelay: relayPlanner(world),
    reach: engine.reach,
    rehomer: engine.rehomer,
    finisher: engine.parts.finisher,
    secondLook: createSecondLook(world),
    admit: (errand) => admit(engine, errand),
  });
  engine.claimer = createClaimer(world, {
    leases: engine.leases,
    memory: engine.memory,
    sources: engine.sources,
    take: (lane, job) => take(engine, lane, job),
  });
  engine.forgotten = watchForgotten(world, {
    node: () => engine.leases.node(),
    knows: (key) => engine.memory.holds(key) || engine.parts.finisher.holds(key),
    returned: () => engine.claimer.wake(),
  });
  gauges(engine);
  return faceOf(engine);
}

function faceOf(engine: Engine): Outbound {
  const housekeeping = setInterval(() => closeUnused(engine), PATHS_IDLE_MS);
  return {
    reserve: (lane, bytes) => reserve(engine, lane, bytes),
    release(lane, bytes) {
      engine.reserved -= 1;
      engine.memory.remove(lane, bytes);
    },
    offer(lane, job) {
      engine.reserved -= 1;
      take(engine, lane, job);
    },
    wake: () => engine.claimer.wake(),
    async stop() {
      clearInterval(housekeeping);
      await stop(engine);
    },
  };
}

/** For 409 on deleting a domain. */
export async function hasQueuedMail(tx: Tx, orgId: string, domainId: string): Promise<boolean> {
  return (await queries.hasQueuedMail(tx, orgId, domainId))[0]?.found ?? false;
}

function reserve(engine: Engine, lane: Lane, bytes: number): number | null {
  if (engine.stopping || !engine.leases.mayStart()) return null;
  if (!engine.leases.owns(lane.source_id, lane.slot) || !engine.sources.isUnlimited(lane.source_id)) return null;
  if (!engine.memory.admit(lane, bytes, engine.world.clock.now())) return null;
  engine.reserved += 1;
  return engine.leases.node();
}

function take(engine: Engine, lane: Lane, job: Job): void {
  engine.memory.hold(job);
  engine.intake.take(lane, job);
}

function admit(engine: Engine, errand: Errand): void {
  const { lane, job, plan } = errand;
  const source = sourceOf(engine, lane, job);
  if (typeof source === "string") {
    engine.parts.finisher.push(job, deferredLocally(source, "4.3.5", "local"));
    return;
  }
  if (engine.otherSource.avoids(job, source)) {
    admitElsewhere(engine, errand, source);
    return;
  }
  const path = pathOf(engine, source, plan);
  engine.lanePaths.set(lane.id, path);
  path.fairness.push(lane, errand);
  drive(engine.world, engine.parts, path);
}

/** Of its lane it is this message alone that leaves from another address. */
function admitElsewhere(engine: Engine, errand: Errand, usual: KnownSource): void {
  const { lane, job, plan } = errand;
  engine.otherSource
    .instead(job, usual)
    .then((source) => {
      const path = pathOf(engine, source, plan);
      const source_id = source === usual ? job.source_id : source.id;
      path.fairness.push(lane, { ...errand, job: { ...job, source_id } });
      drive(engine.world, engine.parts, path);
    })
    .catch((err) => {
      engine.world.log.error({ err, message_id: job.message_id }, "another address could not be chosen");
      setTimeout(() => admit(engine, errand), AGAIN_MS);
    });
}

function pathOf({ paths }: Engine, source: KnownSource, plan: Errand["plan"]): Path {
  const key = `${source.id}|${plan.site.name}`;
  const path = paths.get(key) ?? createPath(key, source, plan);
  paths.set(key, path);
  return path;
}

/** The address a message leaves from now; a text says why there is none. */
function sourceOf(engine: Engine, lane: Lane, job: Job): KnownSource | string {
  const counted = job.source_id === undefined ? undefined : engine.sources.get(job.source_id);
  if (counted) return counted;
  const departure = engine.sources.departure(lane.source_id);
  if (!("source" in departure)) return "wait" in departure ? departure.wait : departure.problem;
  return departure.source;
}

function rehomer(engine: Engine): Rehomer {
  const tellOthers = notifier(engine.world);
  return createRehomer(engine.world, {
    findLane: engine.deps.findLane ?? laneFinder(engine.world),
    done: (job) => engine.memory.finish(job),
    moved() {
      engine.claimer.wake();
      tellOthers();
    },
  });
}

/** Port 25 was found closed: what waits here for its direct way takes its relay, if it has one; parked lanes look again. */
function divertAll(engine: Engine): void {
  const direct = [...engine.paths.values()].filter(({ isRelay }) => !isRelay);
  for (const path of direct) {
    for (const { lane, job } of path.fairness.drain()) engine.intake.take(lane, job);
    if (path.suspensions === 0) continue;
    path.suspended.untilMs = 0;
    engine.parking.resume(path);
  }
}

function pathParts(engine: Engine, open: OpenSession): PathParts {
  const { world } = engine;
  return {
    open,
    loadBody: bodyLoader(world),
    signingKeys: engine.deps.signingKeys,
    mayStart: () => engine.leases.mayStart(),
    mayEnd: (job) => mayEnd(engine, job),
    stopping: () => engine.stopping,
    results: engine.results,
    usage: engine.usage,
    isForOther: (job, source) => engine.otherSource.note(job, source),
    reach: engine.reach,
    divert: ({ lane, job }) => engine.intake.divert(lane, job),
    finisher: createFinisher(world, {
      done: (job) => engine.memory.finish(job),
      committed: (rows) => {
        engine.journal?.settle(rows);
        wakeHooks(world);
        if (engine.memory.hasBacklog()) engine.claimer.wake();
      },
    }),
    suspend: (path) => engine.parking.suspend(path),
    park: (path) => engine.parking.park(path),
    resume: (path) => engine.parking.resume(path),
    shares: createShares((path) => drive(world, engine.parts, path)),
  };
}

/** What another node owns by now is not ended, and what the journal cannot note is not either: it would be sent twice. */
function mayEnd({ world, leases, journal }: Engine, job: Job): boolean {
  if (!leases.mayStart() || job.owner !== leases.node() || !journal) return false;
  try {
    journal.note(job);
    return true;
  } catch (err) {
    world.log.error({ err }, "the journal of what is in flight cannot be written");
    return false;
  }
}

function lanesOf({ lanePaths }: Engine, path: Path): number[] {
  return [...lanePaths].filter(([, other]) => other === path).map(([id]) => id);
}

/** Declared dead: others own the deliveries now. What is on the wire ends by itself; its results touch no row. */
function forgetAll(engine: Engine): void {
  for (const path of engine.paths.values()) {
    for (const { job } of path.fairness.drain()) engine.memory.finish(job);
  }
}

/** A suspended path is kept as long, counted from when it is tried again: what it knows of its site is not to be forgotten. */
function closeUnused(engine: Engine): void {
  const { clock } = engine.world;
  const oldest = clock.monotonic() - PATHS_IDLE_MS;
  engine.memory.dropPauses(clock.now());
  for (const [key, path] of engine.paths) {
    if (path.workers > 0 || path.fairness.size() > 0 || path.usedAtMs > oldest) continue;
    if (path.suspended.untilMs + PATHS_IDLE_MS > clock.now()) continue;
    closePath(path);
    engine.paths.delete(key);
    for (const [id, other] of engine.lanePaths) if (other === path) engine.lanePaths.delete(id);
  }
}

/**
 * Finishes what is on the wire, gives the rest back, leaves the leases to others. Who accepts mail may go on meanwhile: what
 * was reserved is waited for, so that no row is written in the name of a node that has left.
 */
async function stop(engine: Engine): Promise<void> {
  const { world, parts, leases } = engine;
  engine.stopping = true;
  await engine.claimer.stop();
  await engine.forgotten.stop();
  const deadline = world.clock.monotonic() + STOP_WITHIN_MS;
  while (isBusy(engine) && world.clock.monotonic() < deadline) await sleep(STOP_LOOK_MS);
  const held: Job[] = [];
  for (const path of engine.paths.values()) held.push(...path.fairness.drain().map(({ job }) => job));
  for (const path of engine.paths.values()) closePath(path);
  await engine.reach.stop();
  await parts.finisher.drain();
  await engine.rehomer.drain();
  await engine.parking.drain();
  await Promise.all([engine.results.stop(), engine.usage.stop()]);
  if (held.length > 0) await queries.returnDeliveries(world.db, held, new Date(0));
  await leases.stop();
  engine.journal?.close();
}

function isBusy({ paths, reserved }: Engine): boolean {
  return reserved > 0 || [...paths.values()].some(({ workers }) => workers > 0);
}

function gauges(engine: Engine): void {
  const inMemory = engine.world.metrics.gauge("postern_queue_in_memory", "Deliveries in this process's hands");
  const slots = engine.world.metrics.gauge("postern_slots_held", "Slots this process holds a lease on");
  const unrecorded = engine.world.metrics.gauge("postern_unrecorded_outcomes", "Outcomes that wait for the database");
  const suspended = engine.world.metrics.gauge(
    "postern_sites_suspended",
    "Destinations that do not answer or block us",
  );
  doubtCounter(engine.world);
  const timer = setInterval(() => {
    inMemory.set(engine.memory.size());
    slots.set(engine.leases.slots().length);
    unrecorded.set(engine.parts.finisher.pending());
    suspended.set(
      [...engine.paths.values()].filter((path) => path.suspensions > 0 || isSuspended(engine.world, path)).length,
    );
  }, 5_000);
  timer.unref();
}
