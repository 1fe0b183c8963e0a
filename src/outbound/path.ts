// A path is one source to one site: its connections, its speed, its troubles. All state is plain memory, because a slot
// of a source belongs to one process. Workers take the next message by fairness, reuse sessions, and step back as one
// when the site cannot be reached.
import { openSession, type Session } from "../mail/smtp/session.ts";
import type { World } from "../platform/world.ts";
import { type Attempt, attempt, deferredLocally, type Link, tooLate, unreachable } from "./attempt.ts";
import { createFairness, type Fairness } from "./fairness.ts";
import type { Finisher } from "./finish.ts";
import type { Hop, Route } from "./route.ts";
import type { Job, Outcome } from "./types.ts";

export type Source = { id: string; ip: string | null; ehlo: string };
export type ReachableRoute = Extract<Route, { kind: "route" }>;

export type PathWorld = Pick<World, "clock" | "seal" | "config" | "log" | "random">;

export type PathParts = Attempt & {
  finisher: Finisher;
  /** Parks the lanes of a dead site until `untilMs`; their jobs in memory go back to the queue. */
  suspend(path: Path, untilMs: number, reason: string): void;
  /** The site answers again after a suspension. */
  resume(path: Path): void;
  stopping(): boolean;
};

export type Path = {
  key: string;
  source: Source;
  route: ReachableRoute;
  fairness: Fairness;
  /** Connections that may be open now; grows by success, shrinks by failure. */
  limit: number;
  workers: number;
  idle: { link: Link; timer: NodeJS.Timeout }[];
  failures: number;
  /** Replies in a row that call our address blocked. */
  blocks: number;
  firstFailureAtMs: number;
  notBeforeMs: number;
  suspensions: number;
  timer: NodeJS.Timeout | null;
  usedAtMs: number;
};

const START_CONNECTIONS = 5;
const IDLE_MS = 30_000;
const FAILURES_TO_SUSPEND = 20;
const FAILING_FOR_MS = 60_000;
const FAILURE_PAUSE_MS = 1_000;
const FAILURE_PAUSE_MAX_MS = 5_000;
const SUSPEND_MIN = [1, 2, 5, 10, 15];
const SLOW_PAUSE_MS = 15_000;
const BLOCKED_MIN = 15;
const BLOCKS_TO_SUSPEND = 3;
const UNRECORDED_MAX = 1_000;
const UNRECORDED_PAUSE_MS = 200;
const CONNECT_TIMEOUT_MS = 30_000;

/** What the work on one path needs at hand. */
type Yard = { world: PathWorld; parts: PathParts; path: Path };

/** A path without mail yet. */
export function createPath(key: string, source: Source, route: ReachableRoute): Path {
  return {
    key,
    source,
    route,
    fairness: createFairness(),
    limit: Math.min(START_CONNECTIONS, route.connections_max),
    workers: 0,
    idle: [],
    failures: 0,
    blocks: 0,
    firstFailureAtMs: 0,
    notBeforeMs: 0,
    suspensions: 0,
    timer: null,
    usedAtMs: 0,
  };
}

/** Starts as many workers as mail and limits allow; cheap to call after every change. */
export function drive(world: PathWorld, parts: PathParts, path: Path): void {
  path.usedAtMs = world.clock.monotonic();
  if (parts.stopping()) return;
  // Outcomes that cannot be recorded (the database is away) must not pile up: each would be a duplicate after a crash.
  if (parts.finisher.pending() > UNRECORDED_MAX) path.notBeforeMs = world.clock.monotonic() + UNRECORDED_PAUSE_MS;
  const waitMs = path.notBeforeMs - world.clock.monotonic();
  if (waitMs > 0) {
    path.timer ??= setTimeout(() => {
      path.timer = null;
      drive(world, parts, path);
    }, waitMs);
    return;
  }
  while (path.workers < workersMax(path) && path.workers < path.fairness.size()) {
    path.workers += 1;
    runWorker({ world, parts, path })
      .catch((err) => world.log.error({ err, path: path.key }, "a delivery worker failed"))
      .finally(() => {
        path.workers -= 1;
        if (path.fairness.size() > 0) drive(world, parts, path);
      });
  }
}

/** While a site is failing, one worker probes; the others would only fail beside it. */
function workersMax(path: Path): number {
  return path.failures > 0 ? 1 : Math.max(1, Math.floor(path.limit));
}

/** Closes idle sessions and timers. */
export function closePath(path: Path): void {
  if (path.timer) clearTimeout(path.timer);
  path.timer = null;
  for (const { link, timer } of path.idle.splice(0)) {
    clearTimeout(timer);
    void link.session.quit();
  }
}

async function runWorker(yard: Yard): Promise<void> {
  const { world, parts, path } = yard;
  let link: Link | null = null;
  for (let job = nextJob(yard); job; job = nextJob(yard)) {
    try {
      link = await sendOne(yard, link, job);
    } catch (err) {
      // A bug or a lost database while loading: the message keeps its place in the queue and is tried again later.
      world.log.error({ err, message_id: job.message_id }, "an attempt could not be made");
      parts.finisher.push(job, deferredLocally("an internal error; trying again", "4.3.0", "local"));
      link?.session.close();
      link = null;
    }
    if (!link) break;
  }
  if (link) keep(path, link);
}

function nextJob({ world, parts, path }: Yard): Job | null {
  if (parts.finisher.pending() > UNRECORDED_MAX) return null;
  if (parts.stopping() || path.workers > workersMax(path) || path.notBeforeMs > world.clock.monotonic()) return null;
  for (let job = path.fairness.next(); job; job = path.fairness.next()) {
    if (job.expires_at.getTime() > world.clock.now()) return job;
    parts.finisher.push(job, tooLate(job));
  }
  return null;
}

/** Sends one job, opening a session where needed; returns the link to go on with, or null when the worker should end. */
async function sendOne(yard: Yard, held: Link | null, job: Job): Promise<Link | null> {
  const { world, parts, path } = yard;
  let link = held ?? takeIdle(path);
  const wasReused = link !== null;
  link ??= await connect(yard, job);
  if (!link) return null;
  const first = await attempt(world, parts, link, job);
  if (first.lost !== null && wasReused && parts.mayStart()) {
    // The server closed an idle session while we began: no fault of the message, a fresh one decides.
    const fresh = await connect(yard, job);
    if (!fresh) return null;
    return settle(yard, fresh, job, await attempt(world, parts, fresh, job));
  }
  return settle(yard, link, job, first);
}

function settle(yard: Yard, link: Link, job: Job, result: Awaited<ReturnType<typeof attempt>>): Link | null {
  const { world, parts, path } = yard;
  const outcome = result.outcome ?? brokenOff(link, result.lost ?? "the connection was lost");
  parts.finisher.push(job, outcome);
  if (outcome.kind === "delivered") recovered(parts, path);
  if (result.path_action === "slow") slowDown(world, path);
  if (result.path_action === "suspend") suspend(yard, outcome.message, BLOCKED_MIN);
  if (result.path_action === "other_source") blocked(yard, outcome.message);
  if (!link.session.usable || link.session.sent >= path.route.messages_per_connection) {
    if (link.session.usable) void link.session.quit();
    else link.session.close();
    return path.fairness.size() > 0 ? takeIdle(path) : null;
  }
  return link;
}

function brokenOff(link: Link, detail: string): Outcome {
  const outcome = deferredLocally(
    `the connection was lost before the message was sent: ${detail}`,
    "4.4.2",
    "connection",
  );
  return { ...outcome, mx_host: link.hop.host, mx_ip: link.hop.address, isp: link.isp };
}

/** Tries the route's addresses in order; when none answers the job is deferred and the path steps back. */
async function connect(yard: Yard, job: Job): Promise<Link | null> {
  const { world, parts, path } = yard;
  const startedAt = world.clock.monotonic();
  let last: { outcome: Outcome; hop: Hop } | null = null;
  for (const hop of path.route.hops) {
    const opened = await open(world, path, hop, job.about.require_tls);
    if (opened.kind === "session") {
      return { hop, session: opened, isp: path.route.isp, source_ip: path.source.ip };
    }
    last = { hop, outcome: unreachable(opened, hop, path.route.isp, world.clock.monotonic() - startedAt) };
    if (parts.stopping()) break;
  }
  parts.finisher.push(job, last?.outcome ?? deferredLocally("no address to connect to", "4.4.1", "connection"));
  failed(yard, last?.outcome.message ?? "no address");
  return null;
}

async function open(world: PathWorld, path: Path, hop: Hop, requireTls: boolean) {
  const options = {
    host: hop.host,
    address: hop.address,
    port: world.config.testing.outbound_port ?? 25,
    local_address: path.source.ip ?? undefined,
    ehlo_name: path.source.ehlo,
    timeouts: { connect_ms: CONNECT_TIMEOUT_MS },
  };
  const opened = await openSession({ ...options, tls: { mode: requireTls ? "require" : "opportunistic" } });
  if (opened.kind === "session" || !opened.tls_failed || requireTls) return opened;
  // Opportunistic (RFC 7435): a handshake that fails is no reason not to deliver in clear.
  return openSession({ ...options, tls: { mode: "none" } });
}

function takeIdle(path: Path): Link | null {
  for (let entry = path.idle.pop(); entry; entry = path.idle.pop()) {
    clearTimeout(entry.timer);
    if (entry.link.session.usable) return entry.link;
    entry.link.session.close();
  }
  return null;
}

function keep(path: Path, link: Link): void {
  const session: Session = link.session;
  if (!session.usable) {
    session.close();
    return;
  }
  const timer = setTimeout(() => {
    path.idle = path.idle.filter((entry) => entry.link !== link);
    void session.quit();
  }, IDLE_MS);
  timer.unref();
  path.idle.push({ link, timer });
}

/** Postfix's feedback: one more connection after each full cohort of successes. */
function recovered(parts: PathParts, path: Path): void {
  const wasSuspended = path.suspensions > 0;
  path.failures = 0;
  path.blocks = 0;
  path.suspensions = 0;
  path.limit = Math.min(path.route.connections_max, path.limit + 1 / path.limit);
  if (wasSuspended) parts.resume(path);
}

function failed(yard: Yard, reason: string): void {
  const { world, path } = yard;
  const now = world.clock.monotonic();
  if (path.failures === 0) path.firstFailureAtMs = now;
  path.failures += 1;
  path.limit = Math.max(1, path.limit - 1);
  path.notBeforeMs = now + Math.min(FAILURE_PAUSE_MAX_MS, FAILURE_PAUSE_MS * path.failures);
  const isDead = path.failures >= FAILURES_TO_SUSPEND && now - path.firstFailureAtMs >= FAILING_FOR_MS;
  if (isDead || path.suspensions > 0) {
    suspend(yard, reason, SUSPEND_MIN[Math.min(path.suspensions, SUSPEND_MIN.length - 1)] as number);
    path.suspensions += 1;
  }
}

/** One refusal may be about the message; three in a row are about us, and every further one harms our name. */
function blocked(yard: Yard, reason: string): void {
  const { path } = yard;
  path.blocks += 1;
  if (path.blocks >= BLOCKS_TO_SUSPEND) suspend(yard, reason, BLOCKED_MIN);
}

function slowDown(world: PathWorld, path: Path): void {
  path.limit = Math.max(1, path.limit / 2);
  path.notBeforeMs = world.clock.monotonic() + SLOW_PAUSE_MS;
}

function suspend({ world, parts, path }: Yard, reason: string, minutes: number): void {
  world.log.warn({ path: path.key, minutes }, "a destination is suspended");
  parts.suspend(path, world.clock.now() + minutes * 60_000, reason);
}
