// Workers send what waits on a path: they take the next message by fairness, reuse sessions, and step back as one when the site
// cannot be reached. Where to and on which TLS terms is each message's own plan: domains that share a site share its limits,
// never a server or a policy that is not theirs.
import { SIMULATOR } from "../../mail/simulated.ts";
import { isUnavailable } from "../../platform/database/db.ts";
import { isStoreTrouble } from "../../platform/storage/blobs.ts";
import type { PlannedHop } from "../route/tls-policy.ts";
import type { Job, Outcome } from "../types.ts";
import { type AttemptResult, attempt, deferredLocally, tooLate } from "./attempt.ts";
import { firstOf, otherServers, reportedOfBoth } from "./fallback-mx.ts";
import { closeIdle, keepIdle, takeIdle } from "./idle.ts";
import type { Link } from "./link.ts";
import { type Delivery, fits, hopOf, openLink, reportedFailure, type Unopened, useLink } from "./links.ts";
import {
  BLOCKED_MIN,
  isSuspended,
  mayBeTried,
  noAddress,
  reachable,
  rest,
  UNPROVEN_CONNECTIONS,
  workersMax,
} from "./path.ts";
import type { Path, PathParts, PathWorld } from "./path-types.ts";
import { knownRefusal, rememberRefusal } from "./refusals.ts";

/** An attempt tries no more of a plan's addresses. */
const ADDRESSES_MAX = 4;
const FAILURES_TO_SUSPEND = 20;
const FAILING_FOR_MS = 60_000;
const FAILURE_PAUSE_MS = 1_000;
const FAILURE_PAUSE_MAX_MS = 5_000;
const SUSPEND_MIN = [1, 2, 5, 10, 15];
const SLOW_PAUSE_MS = 15_000;
const BLOCKS_TO_SUSPEND = 3;
const UNRECORDED_MAX = 1_000;
const UNRECORDED_PAUSE_MS = 200;
const ALONE_MS = 60_000;

/** What the work on one path needs at hand. */
export type PathContext = { world: PathWorld; parts: PathParts; path: Path };

/** Starts as many workers as mail and limits allow; cheap to call after every change. */
export function drive(world: PathWorld, parts: PathParts, path: Path): void {
  path.usedAtMs = world.clock.monotonic();
  if (parts.stopping()) return;
  if (isSuspended(world, path)) {
    if (path.fairness.size() > 0) parts.park(path);
    return;
  }
  if (mustHold(parts)) rest(world, path, UNRECORDED_PAUSE_MS);
  const waitMs = path.notBeforeMs - world.clock.monotonic();
  if (waitMs > 0) {
    driveIn({ world, parts, path }, waitMs);
    return;
  }
  while (path.workers < workersMax(path) && path.workers < path.fairness.size()) {
    const delivery = nextDelivery({ world, parts, path });
    if (!delivery) return;
    path.workers += 1;
    runWorker({ world, parts, path }, delivery)
      .catch((err) => world.log.error({ err, path: path.key }, "a delivery worker failed"))
      .finally(() => {
        path.workers -= 1;
        if (path.fairness.size() > 0) drive(world, parts, path);
      });
  }
}

function driveIn({ world, parts, path }: PathContext, ms: number): void {
  path.timer ??= setTimeout(() => {
    path.timer = null;
    drive(world, parts, path);
  }, ms);
}

/**
 * Outcomes that cannot be recorded (the database is away) must not pile up: each would be a duplicate after a crash. And
 * what may not be sent now is not begun: the server would see a connection dropped before the message.
 */
function mustHold({ finisher, mayStart }: PathParts): boolean {
  return finisher.pending() > UNRECORDED_MAX || !mayStart();
}

/** Closes idle sessions and timers. */
export function closePath(path: Path): void {
  if (path.timer) clearTimeout(path.timer);
  path.timer = null;
  closeIdle(path);
}

async function runWorker(context: PathContext, first: Delivery): Promise<void> {
  const { parts, path } = context;
  let link: Link | null = null;
  for (let delivery: Delivery | null = first; delivery; delivery = nextDelivery(context)) {
    const held = link;
    link = null;
    try {
      link = await sendOne(context, held, delivery);
    } catch (err) {
      notMade(context, delivery, err);
    } finally {
      parts.shares.leave(delivery);
    }
  }
  if (link) keepIdle(parts.shares, path, link);
}

/** Nothing was said to the server; why the message could not be loaded or signed decides when it is tried again. */
function notMade({ world, parts, path }: PathContext, delivery: Delivery, err: unknown): void {
  world.log.error({ err, message_id: delivery.job.message_id }, "an attempt could not be made");
  // First: what a store says of its connection reads as what the database says of its own, and may last for hours.
  if (isStoreTrouble(err)) {
    const reported = "the stored message cannot be read at the moment; trying again";
    parts.finisher.push(delivery.job, deferredLocally(reported, "4.3.0", "local"));
  } else if (isUnavailable(err)) {
    // The database was away while the message was loaded: no fault of it, and soon over.
    wait({ world, parts, path }, delivery);
    rest(world, path, UNRECORDED_PAUSE_MS);
  } else parts.finisher.push(delivery.job, deferredLocally("an internal error; trying again", "4.3.0", "local"));
}

function nextDelivery({ world, parts, path }: PathContext): Delivery | null {
  if (parts.stopping() || mustHold(parts) || isSuspended(world, path)) return null;
  if (path.workers > workersMax(path) || path.notBeforeMs > world.clock.monotonic()) return null;
  const context = { world, parts, path };
  const enter = (delivery: Delivery): boolean => !isSlowed(context, delivery) && parts.shares.enter(path, delivery);
  for (let delivery = path.fairness.next(enter); delivery; delivery = path.fairness.next(enter)) {
    // First: time was added in the queue to what waits by our doing.
    const isHeld = isHeldBack(context, delivery);
    const inTime = mayBeTried(delivery.job, world.clock.now());
    if (!isHeld && inTime) return delivery;
    parts.shares.leave(delivery);
    if (isHeld) parts.putBack(delivery.job);
    else parts.finisher.push(delivery.job, tooLate(delivery.job));
  }
  return null;
}

/**
 * Whether the queue is its place, by an order of the operator. Of a suspended organization nothing moves, not even what is past its
 * sender's own time: the claims leave that as well, and it ends when they take it again. To a suspended destination they
 * take it for its end, which comes now.
 */
function isHeldBack({ world, parts }: Pick<PathContext, "world" | "parts">, { job, lane }: Delivery): boolean {
  if (parts.isSuspended(job.org_id)) return true;
  return parts.isHeld(lane.domain) && mayBeTried(job, world.clock.now());
}

/**
 * Has a delivery wait for its turn on the path; or in the queue, where it was held back while it was on its way here: what was
 * in the path by then went there at once, and nobody looks through it a second time while all workers are busy.
 */
export function wait({ world, parts, path }: PathContext, delivery: Delivery): void {
  if (isHeldBack({ world, parts }, delivery)) parts.putBack(delivery.job);
  else path.fairness.push(delivery.lane, delivery);
}

/**
 * Sends one message, opening a session where none will do; returns the link to go on with, or null without one. The link
 * held is this call's from here on, whatever becomes of it.
 */
async function sendOne(context: PathContext, held: Link | null, delivery: Delivery): Promise<Link | null> {
  const { parts, path } = context;
  const looking = parts.lookAgain(delivery);
  if (held && (looking || !fits(held, delivery))) {
    keepIdle(parts.shares, path, held);
    held = null;
  }
  const end = looking && (await looking);
  if (end) {
    parts.finisher.push(delivery.job, end);
    return null;
  }
  const reused = held ?? takeIdle(path, delivery);
  const link = reused ?? (await dial(context, delivery));
  if (!link) return null;
  const first = await attemptOn(context, link, delivery);
  if (first.lost !== null && first.outcome === null) path.proven = false;
  if (first.lost !== null && reused && parts.mayStart()) {
    // The server ended the session before it saw the message, which is not at fault: a fresh one decides.
    link.session.close();
    const fresh = await dial(context, delivery);
    return fresh && goOn(context, fresh, delivery, await attemptOn(context, fresh, delivery));
  }
  return goOn(context, link, delivery, first);
}

/** Settles what came of a message, once another server of the domain was asked where the trouble is this one's alone. */
async function goOn(context: PathContext, link: Link, delivery: Delivery, first: AttemptResult): Promise<Link | null> {
  const { world, parts, path } = context;
  const mayGoOn = !parts.stopping() && parts.mayStart() && path.aloneUntilMs <= world.clock.monotonic();
  const hops = mayGoOn ? otherServers(link, first, reachable(path, delivery)) : [];
  if (hops.length === 0) return settle(context, link, delivery, first);
  const other = await openOne(context, delivery, firstOf(hops, ADDRESSES_MAX - 1));
  const isOpen = !Array.isArray(other);
  if (isOpen) part(link);
  const both = isOpen ? reportedOfBoth(first, await attemptOn(context, other, delivery)) : first;
  // Messages by the thousand must not wait for the other ones, one by one.
  if (both.outcome === first.outcome) path.aloneUntilMs = world.clock.monotonic() + ALONE_MS;
  return settle(context, isOpen ? other : link, delivery, both);
}

/** When the attempt cannot be made, the session, on which nothing was said, serves the next one. */
async function attemptOn(context: PathContext, link: Link, delivery: Delivery): Promise<AttemptResult> {
  const { world, parts, path } = context;
  useLink(parts.results, link, fits(link, delivery) as PlannedHop, delivery);
  try {
    return await attempt(world, parts, link, delivery.job);
  } catch (err) {
    keepIdle(parts.shares, path, link);
    throw err;
  }
}

function settle(context: PathContext, link: Link, { job }: Delivery, result: AttemptResult): Link | null {
  const { parts, path } = context;
  const seen = result.outcome ?? brokenOff(link, result.lost ?? "the connection was lost");
  const outcome = conclude(context, job, seen, result.path_action);
  if (path.site.isp !== SIMULATOR) parts.usage.count(path.source, outcome);
  if (outcome.kind === "delivered") recovered(context);
  act(context, result.path_action, outcome.message);
  if (result.path_action === "slow_sender") {
    path.slowed.set(job.about.domain_id, context.world.clock.monotonic() + SLOW_PAUSE_MS);
  }
  if (link.session.usable && link.session.sent < path.site.messages_per_connection) return link;
  part(link);
  return null;
}

function part({ session }: Link): void {
  if (session.usable) void session.quit();
  else session.close();
}

/** Hands the outcome over; one that is about our address is tried once more from another, where there is one. */
function conclude(
  { parts, path }: PathContext,
  job: Job,
  seen: Outcome,
  action: AttemptResult["path_action"],
): Outcome {
  const isAgain = action === "other_source" && parts.isForOther(job, path.source);
  const outcome: Outcome = isAgain ? { ...seen, kind: "deferred", retry_at_once: true } : seen;
  parts.finisher.push(job, outcome);
  return outcome;
}

function brokenOff(link: Link, detail: string): Outcome {
  const outcome = deferredLocally(
    `the connection was lost before the message was sent: ${detail}`,
    "4.4.2",
    "connection",
  );
  return { ...outcome, mx_host: link.hop.host, mx_ip: link.hop.address, isp: link.isp };
}

/**
 * Connects unless enough others do towards a site that may be dead: then the message waits for what comes of those, and
 * the worker ends, being one too many.
 */
async function dial(context: PathContext, delivery: Delivery): Promise<Link | null> {
  const { path } = context;
  if (!path.proven && path.dialling >= UNPROVEN_CONNECTIONS) {
    wait(context, delivery);
    return null;
  }
  path.dialling += 1;
  const link = await connect(context, delivery).finally(() => {
    path.dialling -= 1;
  });
  if (link) reached(context);
  return link;
}

/** The site is there: whatever its servers say to the mail, they are not out of reach. */
function reached(context: PathContext): void {
  const { parts, path } = context;
  const wasSuspended = path.suspensions > 0;
  path.failures = 0;
  path.suspensions = 0;
  if (wasSuspended) {
    path.suspended.untilMs = 0;
    parts.resume(path);
  }
  prove(context);
}

function prove({ world, parts, path }: PathContext): void {
  if (path.proven) return;
  path.proven = true;
  drive(world, parts, path);
}

/**
 * Tries the plan's addresses in order. When none answers the message is deferred and the path steps back; when servers
 * answered but none on the terms of the domain's policy, that is the domain's trouble alone.
 */
async function connect(context: PathContext, delivery: Delivery): Promise<Link | null> {
  const { parts, path } = context;
  const known = knownRefusal(path.refusals, delivery, context.world.clock.monotonic());
  if (known) {
    parts.finisher.push(delivery.job, known);
    return null;
  }
  const opened = await openOne(context, delivery, firstOf(reachable(path, delivery), ADDRESSES_MAX));
  if (!Array.isArray(opened)) return opened;
  notOpened(context, delivery, opened);
  return null;
}

/** A session to the first of the hops that gives one, else what each of them said. */
async function openOne(
  { world, parts, path }: PathContext,
  delivery: Delivery,
  hops: PlannedHop[],
): Promise<Link | Unopened[]> {
  const startedAtMs = world.clock.monotonic();
  const tried: Unopened[] = [];
  const linkWorld = { clock: world.clock, config: world.config, open: parts.open };
  for (const hop of hops) {
    const opened = await openLink(linkWorld, parts.results, { source: path.source, hop, delivery, startedAtMs });
    if ("session" in opened) {
      if (!path.isRelay) parts.reach.connected();
      return opened;
    }
    tried.push(opened);
    if (parts.stopping()) break;
  }
  return tried;
}

function notOpened(context: PathContext, delivery: Delivery, tried: Unopened[]): void {
  const { parts, path } = context;
  const [first] = tried;
  const word = reportedFailure(tried);
  if (!first || !word || tried.every(({ by_policy }) => by_policy)) {
    const outcome = word?.outcome ?? noAddress(path, delivery);
    parts.finisher.push(delivery.job, outcome);
    rememberRefusal(path.refusals, delivery, outcome, context.world.clock.monotonic());
    return;
  }
  // The first one: the last is an IPv6 address often enough, which a machine without IPv6 would look for in vain.
  if (!path.isRelay && tried.every(({ unreachable }) => unreachable)) {
    parts.reach.unreachable(path.site.name, hopOf(first));
  }
  if (!parts.divert(delivery)) {
    const outcome = conclude(context, delivery.job, word.outcome, word.path_action);
    if (outcome.class === "blocked") parts.usage.count(path.source, outcome);
  }
  failed(context, word);
}

/** Postfix's feedback: one more connection after each full cohort of successes. */
function recovered(context: PathContext): void {
  const { path } = context;
  path.blocks = 0;
  path.limit = Math.min(path.site.connections_max, path.limit + 1 / path.limit);
  prove(context);
}

function failed(context: PathContext, { outcome, path_action }: Unopened): void {
  const { world, path } = context;
  const now = world.clock.monotonic();
  if (path.failures === 0) path.firstFailureAtMs = now;
  path.failures += 1;
  path.proven = false;
  path.limit = Math.max(1, path.limit - 1);
  rest(world, path, Math.min(FAILURE_PAUSE_MAX_MS, FAILURE_PAUSE_MS * path.failures));
  if (act(context, path_action, outcome.message)) return;
  const isDead = path.failures >= FAILURES_TO_SUSPEND && now - path.firstFailureAtMs >= FAILING_FOR_MS;
  if (isDead || path.suspensions > 0) {
    suspend(context, outcome.message, SUSPEND_MIN[Math.min(path.suspensions, SUSPEND_MIN.length - 1)] as number);
    path.suspensions += 1;
  }
}

/** Does what a reply asks of the path; true when it is suspended for that. */
function act(context: PathContext, action: AttemptResult["path_action"], reason: string): boolean {
  const { world, path } = context;
  if (action === "slow") slowDown(world, path);
  if (action === "other_source") path.blocks += 1;
  // One refusal may be about the message; three in a row are about us, and every further one harms our name.
  const isBlocked = action === "other_source" && path.blocks >= BLOCKS_TO_SUSPEND;
  if (action !== "suspend" && !isBlocked) return false;
  suspend(context, reason, BLOCKED_MIN);
  return true;
}

/** Whether the sender's domain is to wait still; the path is looked at again then. */
function isSlowed({ world, parts, path }: PathContext, { job }: Delivery): boolean {
  const waitMs = (path.slowed.get(job.about.domain_id) ?? 0) - world.clock.monotonic();
  if (waitMs <= 0) path.slowed.delete(job.about.domain_id);
  else driveIn({ world, parts, path }, waitMs);
  return waitMs > 0;
}

function slowDown(world: PathWorld, path: Path): void {
  path.limit = Math.max(1, path.limit / 2);
  rest(world, path, SLOW_PAUSE_MS);
}

function suspend({ world, parts, path }: PathContext, reason: string, minutes: number): void {
  world.log.warn({ path: path.key, minutes }, "a destination is suspended");
  path.suspended = { untilMs: world.clock.now() + minutes * 60_000, reason };
  parts.suspend(path);
}
