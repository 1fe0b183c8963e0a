// The delivery engine: lanes → claim or hand-over → path → attempt → outcome. Face of the feature. One engine a process;
// any number of processes share a database, each driving the slots it holds a lease on.

import type { SigningKey } from "../mail/dkim/sign.ts";
import { sleep } from "../platform/clock.ts";
import type { Tx } from "../platform/database/db.ts";
import type { World } from "../platform/world.ts";
import { wakeHooks } from "../webhooks/webhooks.ts";
import { carryOut } from "./carry-out.ts";
import { followOrders, refreshSources } from "./operate/follow.ts";
import type { Held } from "./operate/held.ts";
import { type Outside, realOutside } from "./outside.ts";
import { deferredLocally } from "./path/attempt.ts";
import { type Complain, createFinisher, type Finisher } from "./path/finish.ts";
import type { FinishRow } from "./path/finish-queries.ts";
import { createIntake, type Intake } from "./path/intake.ts";
import type { Delivery } from "./path/links.ts";
import { type OtherSource, rememberRefused } from "./path/other-source.ts";
import { createPath, isSuspended } from "./path/path.ts";
import type { Path, PathParts } from "./path/path-types.ts";
import { createRecheck, type Leaving } from "./path/recheck.ts";
import { createSevenBitWriter, type SevenBitWriter } from "./path/seven-bit.ts";
import { createShares } from "./path/shares.ts";
import { add, closePath, drive, type PathContext } from "./path/worker.ts";
import { createSources, type KnownSource, type Sources } from "./pools/sources.ts";
import { gatherUsage, type Usage } from "./pools/usage.ts";
import * as queries from "./queries.ts";
import { bodyLoader } from "./queue/bodies.ts";
import { type Claimer, createClaimer } from "./queue/claims.ts";
import { doubtCounter, recordInDoubt } from "./queue/dead-node.ts";
import { type FindLane, laneFinder } from "./queue/lanes.ts";
import { holdLeases, type LeaseHooks, type Leases } from "./queue/leases.ts";
import { createMemory, type Memory } from "./queue/memory.ts";
import { type Forgotten, watchForgotten } from "./queue/orphans.ts";
import { createOwnJournal, mayEnd, type OwnJournal } from "./queue/own-journal.ts";
import { createParking, type Parking } from "./queue/parking.ts";
import { giveBackAttempts, isUncounted } from "./queue/ration.ts";
import { createRehomer, type Rehomer } from "./queue/rehome.ts";
import type { Suspended } from "./queue/suspended.ts";
import { notifier } from "./queue/wake.ts";
import { type Reach, watchReach } from "./route/reach.ts";
import { relayFinder, relayPlanner } from "./route/relays.ts";
import { createRoutes } from "./route/routes.ts";
import { gatherTlsResults, type TlsResults } from "./route/tls-results.ts";
import { withSimulator } from "./simulator/simulator.ts";
import type { Job, Lane, Mark } from "./types.ts";

export { databaseId, findPause, pauseRestored, resumeSending } from "./guard/guard.ts";
export { TOKEN_CONTEXT } from "./path/attempt.ts";
export { KEEP_TRYING_MS } from "./path/retry.ts";
export { type ChooseExit, type Exit, exitChooser } from "./pools/exits.ts";
export { addressesOf, poolPorts } from "./pools/pools.ts";
export { countOwned as countAtServers } from "./queries.ts";
export { giveLanes } from "./queue/homeless.ts";
export { isLaneGone } from "./queue/lane-queries.ts";
export { type FindLane, laneFinder, lanesInPlace } from "./queue/lanes.ts";
export { listNodes } from "./queue/node-queries.ts";
export { CHANNEL as MTA_CHANNEL, notifier } from "./queue/wake.ts";
export { SEALED } from "./route/relays.ts";
export type { Job, Lane, MessageAbout } from "./types.ts";
export { CLASS_BULK, CLASS_TRANSACTIONAL, DEFAULT_SOURCE_ID } from "./types.ts";

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
  /** Puts what waits here of a message, and was not begun, back into the queue for some seconds: there it can be changed. */
  withdraw(orgId: string, messageId: string): Promise<void>;
  /** This process knows that mail of the organization is to wait, and begins none of it. */
  isWaiting(orgId: string): boolean;
  stop(): Promise<void>;
};

export type OutboundDeps = {
  signingKeys(orgId: string, domainId: string): Promise<SigningKey[]>;
  roles: string[];
  /** How far the database was seen to have come (guard.ts); absent: nobody watches over it. */
  mark?: Mark;
  /** Absent: one of its own. */
  findLane?: FindLane;
  /** Absent: mail is counted nowhere when it leaves. */
  leaving?: Leaving;
  /** Records the complaint of a simulated recipient, in the transaction that records that the mail arrived. */
  complain?: Complain;
  /** Absent: this machine. */
  outside?: Outside;
};

const PATHS_IDLE_MS = 300_000;
const STOP_WITHIN_MS = 40_000;
const STOP_LOOK_MS = 20;
const AGAIN_MS = 1_000;
const WITHDRAWN_FOR_MS = 5_000;
const HASTENED_AT_ONCE = 2_000;
const FIRST_KEY = { message_id: "00000000-0000-0000-0000-000000000000", position: -1 };
const OTHERS_USED_UP = "the warm-up limit of the other addresses of the pool is reached for today";

/** The mail that this process holds, and the paths that it goes by. */
type AtHand = { paths: Map<string, Path>; lanePaths: Map<number, Path>; memory: Memory };

type Engine = AtHand & {
  world: World;
  sources: Sources;
  usage: Usage;
  otherSource: OtherSource;
  finisher: Finisher;
  results: TlsResults;
  leases: Leases;
  journal: OwnJournal;
  claimer: Claimer;
  forgotten: Forgotten;
  reach: Reach;
  rehomer: Rehomer;
  intake: Intake;
  parts: PathParts;
  parking: Parking;
  suspended: Suspended;
  held: Held;
  sevenBit: SevenBitWriter;
  /** Reservations whose accepting statement is under way. */
  reserved: number;
  stopping: boolean;
};

/**
 * Starts the engine: takes leases, begins to claim. Some parts name others that are made below them; those are used once there is
 * mail, and the first comes when all of them are made.
 */
export async function startOutbound(world: World, deps: OutboundDeps): Promise<Outbound> {
  const outside = deps.outside ?? realOutside(world);
  const open = withSimulator(outside.open);
  const atHand: AtHand = { paths: new Map(), lanePaths: new Map(), memory: createMemory() };
  const { memory } = atHand;
  const journal = createOwnJournal(world, outside.journals);
  const sources = await createSources(world);
  const finisher: Finisher = createFinisher(world, {
    concluded: journal.conclude,
    done: memory.finish,
    complain: deps.complain,
    committed: (rows) => committed(engine, rows),
  });
  const parking: Parking = createParking(world, {
    memory,
    finisher,
    lanesOf: (path) => lanesOf(atHand, path),
    drive: (path) => drive(contextOf(engine, path)),
    returned: (jobs) => giveBackAttempts(sources, jobs),
    woken: () => claimer.wake(),
  });
  const reach = await watchReach({ ...world, open }, outside.host.machine, () => {
    divertAll({ ...atHand, parking }, (lane, job) => intake.take(lane, job));
  });
  const leased: Leased = { ...atHand, journal, sources, parking };
  const leases = await holdLeases(world, leaseHooks(world, { ...deps, outside }, leased));
  const [usage, results, otherSource] = [gatherUsage(world), gatherTlsResults(world), rememberRefused(sources)];
  const rehomer: Rehomer = createRehomer(world, {
    findLane: deps.findLane ?? laneFinder(world),
    done: memory.finish,
    moved: () => claimer.wake(),
  });
  const recheck = createRecheck(world, deps.leaving);
  const intake: Intake = createIntake(world, {
    ...{ routes: createRoutes(world), relays: relayFinder(world), planRelay: relayPlanner(world) },
    ...{ reach, rehomer, finisher, recheck },
    admit: (delivery) => admit(engine, delivery),
  });
  const { suspended, orders: held } = followOrders(world, { ...atHand, parking });
  const { mark } = deps;
  const claimer: Claimer = createClaimer(world, {
    ...{ leases, memory, sources, suspended, held, mark },
    take: (lane, job) => take(engine, lane, job),
  });
  const forgotten = watchForgotten(world, {
    node: leases.node,
    knows: (key) => memory.holds(key) || finisher.holds(key),
    returned: claimer.wake,
  });
  const sevenBit = createSevenBitWriter();
  const parts: PathParts = {
    ...{ open, loadBody: bodyLoader(world), signingKeys: deps.signingKeys, results, recheck },
    toSevenBit: sevenBit.write,
    mayStart: leases.mayStart,
    mayEnd: (job) => mayEnd({ leases, journal, mark }, job),
    shares: createShares((path) => drive(contextOf(engine, path))),
    gate: {
      isStopping: () => engine.stopping,
      unrecorded: finisher.pending,
      isSuspended: suspended.has,
      isHeld: held.has,
    },
    carryOut: (path, effect) => carryOut(world, engine, path, effect),
  };
  const working = { sources, finisher, journal, leases, rehomer, intake, claimer, forgotten, parts, parking, sevenBit };
  const gathered = { usage, results, otherSource, reach, suspended, held };
  const engine: Engine = { world, ...atHand, ...working, ...gathered, reserved: 0, stopping: false };
  gauges(engine);
  return faceOf(engine);
}

type Leased = AtHand & Pick<Engine, "journal" | "sources" | "parking">;

function leaseHooks(
  world: World,
  { roles, outside }: Pick<OutboundDeps, "roles"> & { outside: Outside },
  engine: Leased,
): LeaseHooks {
  const { host, journals } = outside;
  const { memory, journal, sources } = engine;
  return {
    roles,
    host,
    isIdle: memory.isIdle,
    lookAround: () => refreshSources(sources, engine),
    holders: sources.holders,
    onRegistered: journal.begin,
    onDead: (tx, dead) => recordInDoubt(tx, world, dead, outside),
    onReleased({ id, machine }) {
      if (machine === host.machine) journals.remove(id);
    },
    onLost: () => forgetAll(engine),
  };
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
    withdraw: (orgId, messageId) => withdraw(engine, orgId, messageId),
    isWaiting: (orgId) => engine.suspended.has(orgId),
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

/**
 * Looks at mail of a sender domain that waits without an attempt: what it waits for is over, or other limits hold. Where that
 * fails it leaves when it was to leave before.
 */
export async function hastenWaiting(
  world: Pick<World, "db" | "clock" | "log">,
  orgId: string,
  domainId: string,
): Promise<void> {
  const of = { org_id: orgId, domain_id: domainId };
  const step = { now: new Date(world.clock.now()), limit: HASTENED_AT_ONCE };
  try {
    for (let after: queries.WaitingKey | undefined = FIRST_KEY; after; ) {
      const from: queries.WaitingKey = after;
      [after] = await world.db.asOrg(orgId, (tx) => queries.hastenWaiting(tx, of, { ...step, after: from }));
    }
  } catch (err) {
    world.log.warn({ err, ...of }, "mail that waits could not be hastened; it leaves when it was to leave");
  }
  notifier(world)();
}

function reserve(engine: Engine, lane: Lane, bytes: number): number | null {
  if (engine.stopping || !engine.leases.mayStart()) return null;
  if (!engine.leases.owns(lane.source_id, lane.slot) || !engine.sources.isUnlimited(lane.source_id)) return null;
  if (engine.held.has(lane.domain) || engine.suspended.has(lane.org_id)) return null;
  if (!engine.memory.admit(lane, bytes, engine.world.clock.now())) return null;
  engine.reserved += 1;
  return engine.leases.node();
}

async function withdraw({ world, paths, memory, sources }: Engine, orgId: string, messageId: string): Promise<void> {
  const isOfMessage = ({ job }: Delivery): boolean => job.message_id === messageId;
  const jobs = [...paths.values()]
    .flatMap(({ fairness }) => fairness.drainOf(orgId, isOfMessage))
    .map(({ job }) => job);
  if (jobs.length === 0) return;
  for (const job of jobs) memory.finish(job);
  await queries.returnDeliveries(world.db, jobs, new Date(world.clock.now() + WITHDRAWN_FOR_MS));
  await giveBackAttempts(sources, jobs);
}

function take(engine: Engine, lane: Lane, job: Job): void {
  engine.memory.hold(job);
  engine.intake.take(lane, job);
}

function admit(engine: Engine, admitted: Delivery): void {
  const delivery = { ...admitted, since_ms: engine.world.clock.monotonic() };
  const { lane, job, plan } = delivery;
  const source = sourceOf(engine, lane, job);
  if (typeof source === "string") {
    engine.finisher.push(job, deferredLocally(source, "4.3.5", "local"));
    return;
  }
  if (source.held_at !== null || isUncounted(engine.sources, source, job)) {
    engine.parking.putBack(job);
    return;
  }
  if (engine.otherSource.avoids(job, source)) {
    admitElsewhere(engine, delivery, source);
    return;
  }
  const path = pathOf(engine, source, plan);
  engine.lanePaths.set(lane.id, path);
  add(contextOf(engine, path), delivery);
}

function contextOf({ world, parts }: Engine, path: Path): PathContext {
  return { world, parts, path };
}

/** Admits one message to the path of another address; the rest of its lane stays with the usual one. */
function admitElsewhere(engine: Engine, delivery: Delivery, usual: KnownSource): void {
  const { job, plan } = delivery;
  engine.otherSource
    .instead(job, usual)
    .then((other) => {
      if (other === null) engine.finisher.push(job, deferredLocally(OTHERS_USED_UP, "4.3.5", "local"));
      else {
        const path = pathOf(engine, other.source, plan);
        add(contextOf(engine, path), { ...delivery, job: { ...job, counted: other.counted } });
      }
    })
    .catch((err) => {
      engine.world.log.error({ err, message_id: job.message_id }, "another address could not be chosen");
      setTimeout(() => admit(engine, delivery), AGAIN_MS);
    });
}

function pathOf({ paths }: Engine, source: KnownSource, plan: Delivery["plan"]): Path {
  const key = `${source.id}|${plan.site.name}`;
  const path = paths.get(key) ?? createPath(key, source, plan);
  paths.set(key, path);
  return path;
}

/** The address a message leaves from now; a text says why there is none. */
function sourceOf(engine: Engine, lane: Lane, job: Job): KnownSource | string {
  const counted = job.counted && engine.sources.get(job.counted.source_id);
  if (counted) return counted;
  const departure = engine.sources.departure(lane.source_id);
  if (!("source" in departure)) return "wait" in departure ? departure.wait : departure.problem;
  return departure.source;
}

/** Port 25 was found closed: what waits here for its direct way takes its relay, if it has one; parked lanes look again. */
function divertAll({ paths, parking }: Pick<Engine, "paths" | "parking">, take: Intake["take"]): void {
  const direct = [...paths.values()].filter(({ isRelay }) => !isRelay);
  for (const path of direct) {
    for (const { lane, job } of path.fairness.drain()) take(lane, job);
    if (path.suspensions === 0) continue;
    path.suspended.untilMs = 0;
    parking.resume(path);
  }
}

function committed({ world, journal, memory, claimer }: Engine, rows: FinishRow[]): void {
  journal.settle(rows);
  wakeHooks(world);
  if (memory.hasBacklog()) claimer.wake();
}

function lanesOf({ lanePaths }: AtHand, path: Path): number[] {
  return [...lanePaths].filter(([, other]) => other === path).map(([id]) => id);
}

/** Declared dead: others own the deliveries now. What is on the wire ends by itself; its results touch no row. */
function forgetAll({ paths, memory }: AtHand): void {
  for (const path of paths.values()) {
    for (const { job } of path.fairness.drain()) memory.finish(job);
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
  const { world, leases } = engine;
  engine.stopping = true;
  await engine.claimer.stop();
  await engine.forgotten.stop();
  const deadline = world.clock.monotonic() + STOP_WITHIN_MS;
  while (isBusy(engine) && world.clock.monotonic() < deadline) await sleep(STOP_LOOK_MS);
  const held: Job[] = [];
  for (const path of engine.paths.values()) held.push(...path.fairness.drain().map(({ job }) => job));
  for (const path of engine.paths.values()) closePath(path);
  await engine.reach.stop();
  await engine.finisher.drain();
  await engine.rehomer.drain();
  await engine.parking.drain();
  await Promise.all([engine.results.stop(), engine.usage.stop(), engine.sevenBit.stop()]);
  if (held.length > 0) await queries.returnDeliveries(world.db, held, new Date(0));
  await giveBackAttempts(engine.sources, held);
  await leases.stop();
  engine.journal.close();
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
    // Another engine of this process may follow.
    if (engine.stopping) clearInterval(timer);
    inMemory.set(engine.memory.size());
    slots.set(engine.leases.slots().length);
    unrecorded.set(engine.finisher.pending());
    suspended.set(
      [...engine.paths.values()].filter((path) => path.suspensions > 0 || isSuspended(engine.world, path)).length,
    );
  }, 5_000);
  timer.unref();
}
