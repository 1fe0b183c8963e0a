// A path is one source to one site: its connections, its speed, its troubles. All state is plain memory, because a slot
// of a source belongs to one process. Workers take the next message by fairness, reuse sessions, and step back as one
// when the site cannot be reached. Where to and on which TLS terms is each message's own plan: domains that share a site
// share its limits, never a server or a policy that is not theirs.
import { isIP } from "node:net";
import { isUnavailable } from "../../platform/database/db.ts";
import { isStoreTrouble } from "../../platform/storage/blobs.ts";
import type { World } from "../../platform/world.ts";
import type { Plan, PlannedHop } from "../route/tls-policy.ts";
import type { Job, Outcome } from "../types.ts";
import { type AttemptResult, attempt, deferredLocally, tooLate } from "./attempt.ts";
import { createFairness } from "./fairness.ts";
import { firstOf, otherServers, wordOfBoth } from "./fallback-mx.ts";
import { closeIdle, keepIdle, takeIdle } from "./idle.ts";
import type { Link } from "./link.ts";
import { type Errand, fits, hopOf, openLink, type Source, type Unopened, useLink, wordOf } from "./links.ts";
import type { Path, PathParts, PathWorld } from "./path-types.ts";
import { knownRefusal, rememberRefusal } from "./refusals.ts";

/** An attempt tries no more of a plan's addresses. */
const ADDRESSES_MAX = 4;
const START_CONNECTIONS = 5;
/** Until the site has proven to be there: a dead one is not crowded, a good one answers before the third is missed. */
const UNPROVEN_CONNECTIONS = 2;
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
const ALONE_MS = 60_000;

/** What the work on one path needs at hand. */
type Yard = { world: PathWorld; parts: PathParts; path: Path };

/** A path without mail yet. */
export function createPath(key: string, source: Source, { site, via }: Pick<Plan, "site" | "via">): Path {
  return {
    key,
    source,
    site,
    isRelay: via !== undefined,
    fairness: createFairness(),
    limit: Math.min(START_CONNECTIONS, site.connections_max),
    workers: 0,
    dialling: 0,
    proven: false,
    idle: [],
    failures: 0,
    blocks: 0,
    firstFailureAtMs: 0,
    notBeforeMs: 0,
    aloneUntilMs: 0,
    slowed: new Map(),
    suspended: { untilMs: 0, reason: "" },
    suspensions: 0,
    timer: null,
    usedAtMs: 0,
    refusals: new Map(),
  };
}

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
    const errand = nextErrand({ world, parts, path });
    if (!errand) return;
    path.workers += 1;
    runWorker({ world, parts, path }, errand)
      .catch((err) => world.log.error({ err, path: path.key }, "a delivery worker failed"))
      .finally(() => {
        path.workers -= 1;
        if (path.fairness.size() > 0) drive(world, parts, path);
      });
  }
}

function driveIn({ world, parts, path }: Yard, ms: number): void {
  path.timer ??= setTimeout(() => {
    path.timer = null;
    drive(world, parts, path);
  }, ms);
}

/** Until when nothing may be begun on it has not come yet; a time further ahead than any is of a clock that was set back. */
export function isSuspended({ clock }: Pick<World, "clock">, { suspended }: Path): boolean {
  const leftMs = suspended.untilMs - clock.now();
  return leftMs > 0 && leftMs <= BLOCKED_MIN * 60_000;
}

/**
 * Outcomes that cannot be recorded (the database is away) must not pile up: each would be a duplicate after a crash. And
 * what may not be sent now is not begun: the server would see a connection dropped before the message.
 */
function mustHold({ finisher, mayStart }: PathParts): boolean {
  return finisher.pending() > UNRECORDED_MAX || !mayStart();
}

function rest({ clock }: Pick<World, "clock">, path: Path, ms: number): void {
  path.notBeforeMs = Math.max(path.notBeforeMs, clock.monotonic() + ms);
}

/** While a site is failing, one worker probes; the others would only fail beside it. */
function workersMax(path: Path): number {
  if (path.failures > 0) return 1;
  return Math.max(1, Math.min(Math.floor(path.limit), path.proven ? path.site.connections_max : UNPROVEN_CONNECTIONS));
}

/** Closes idle sessions and timers. */
export function closePath(path: Path): void {
  if (path.timer) clearTimeout(path.timer);
  path.timer = null;
  closeIdle(path);
}

async function runWorker(yard: Yard, first: Errand): Promise<void> {
  const { parts, path } = yard;
  let link: Link | null = null;
  for (let errand: Errand | null = first; errand; errand = nextErrand(yard)) {
    const held = link;
    link = null;
    try {
      link = await sendOne(yard, held, errand);
    } catch (err) {
      notMade(yard, errand, err);
    } finally {
      parts.shares.leave(errand);
    }
  }
  if (link) keepIdle(parts.shares, path, link);
}

/** Nothing was said to the server; why the message could not be loaded or signed decides when it is tried again. */
function notMade({ world, parts, path }: Yard, errand: Errand, err: unknown): void {
  world.log.error({ err, message_id: errand.job.message_id }, "an attempt could not be made");
  // First: what a store says of its connection reads as what the database says of its own, and may last for hours.
  if (isStoreTrouble(err)) {
    const told = "the stored message cannot be read at the moment; trying again";
    parts.finisher.push(errand.job, deferredLocally(told, "4.3.0", "local"));
  } else if (isUnavailable(err)) {
    // The database was away while the message was loaded: no fault of it, and soon over.
    path.fairness.push(errand.lane, errand);
    rest(world, path, UNRECORDED_PAUSE_MS);
  } else parts.finisher.push(errand.job, deferredLocally("an internal error; trying again", "4.3.0", "local"));
}

function nextErrand({ world, parts, path }: Yard): Errand | null {
  if (parts.stopping() || mustHold(parts) || isSuspended(world, path)) return null;
  if (path.workers > workersMax(path) || path.notBeforeMs > world.clock.monotonic()) return null;
  const yard = { world, parts, path };
  const enter = (errand: Errand): boolean => !isSlowed(yard, errand) && parts.shares.enter(path, errand);
  for (let errand = path.fairness.next(enter); errand; errand = path.fairness.next(enter)) {
    const isHeld = parts.isSuspended(errand.job.org_id);
    if (!isHeld && mayBeTried(errand.job, world.clock.now())) return errand;
    parts.shares.leave(errand);
    // First: time was added in the queue to what waits by our doing.
    if (isHeld) parts.putBack(errand.job);
    else parts.finisher.push(errand.job, tooLate(errand.job));
  }
  return null;
}

/** Behind its end as well, once, unless its sender set that end: machines were suspended, lanes were late. */
function mayBeTried({ expires_at, about }: Job, nowMs: number): boolean {
  return expires_at.getTime() > nowMs || !about.has_expiry;
}

/**
 * Sends one message, opening a session where none will do; returns the link to go on with, or null without one. The link
 * held is this call's from here on, whatever becomes of it.
 */
async function sendOne(yard: Yard, held: Link | null, errand: Errand): Promise<Link | null> {
  const { parts, path } = yard;
  const looking = parts.lookAgain(errand);
  if (held && (looking || !fits(held, errand))) {
    keepIdle(parts.shares, path, held);
    held = null;
  }
  const end = looking && (await looking);
  if (end) {
    parts.finisher.push(errand.job, end);
    return null;
  }
  const reused = held ?? takeIdle(path, errand);
  const link = reused ?? (await dial(yard, errand));
  if (!link) return null;
  const first = await attemptOn(yard, link, errand);
  if (first.lost !== null && first.outcome === null) path.proven = false;
  if (first.lost !== null && reused && parts.mayStart()) {
    // The server ended the session before it heard of the message, which is not at fault: a fresh one decides.
    link.session.close();
    const fresh = await dial(yard, errand);
    return fresh && goOn(yard, fresh, errand, await attemptOn(yard, fresh, errand));
  }
  return goOn(yard, link, errand, first);
}

/** Settles what came of a message, once another server of the domain was asked where the trouble is this one's alone. */
async function goOn(yard: Yard, link: Link, errand: Errand, first: AttemptResult): Promise<Link | null> {
  const { world, parts, path } = yard;
  const mayGoOn = !parts.stopping() && parts.mayStart() && path.aloneUntilMs <= world.clock.monotonic();
  const hops = mayGoOn ? otherServers(link, first, reachable(path, errand)) : [];
  if (hops.length === 0) return settle(yard, link, errand, first);
  const other = await openOne(yard, errand, firstOf(hops, ADDRESSES_MAX - 1));
  const isOpen = !Array.isArray(other);
  if (isOpen) part(link);
  const both = isOpen ? wordOfBoth(first, await attemptOn(yard, other, errand)) : first;
  // Messages by the thousand must not wait for the other ones, one by one.
  if (both.outcome === first.outcome) path.aloneUntilMs = world.clock.monotonic() + ALONE_MS;
  return settle(yard, isOpen ? other : link, errand, both);
}

/** When the attempt cannot be made, the session, on which nothing was said, serves the next one. */
async function attemptOn(yard: Yard, link: Link, errand: Errand): Promise<AttemptResult> {
  const { world, parts, path } = yard;
  useLink(parts.results, link, fits(link, errand) as PlannedHop, errand);
  try {
    return await attempt(world, parts, link, errand.job);
  } catch (err) {
    keepIdle(parts.shares, path, link);
    throw err;
  }
}

function settle(yard: Yard, link: Link, { job }: Errand, result: AttemptResult): Link | null {
  const { parts, path } = yard;
  const seen = result.outcome ?? brokenOff(link, result.lost ?? "the connection was lost");
  const outcome = conclude(yard, job, seen, result.path_action);
  parts.usage.count(path.source, outcome);
  if (outcome.kind === "delivered") recovered(yard);
  act(yard, result.path_action, outcome.message);
  if (result.path_action === "slow_sender") {
    path.slowed.set(job.about.domain_id, yard.world.clock.monotonic() + SLOW_PAUSE_MS);
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
function conclude({ parts, path }: Yard, job: Job, seen: Outcome, action: AttemptResult["path_action"]): Outcome {
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
async function dial(yard: Yard, errand: Errand): Promise<Link | null> {
  const { path } = yard;
  if (!path.proven && path.dialling >= UNPROVEN_CONNECTIONS) {
    path.fairness.push(errand.lane, errand);
    return null;
  }
  path.dialling += 1;
  const link = await connect(yard, errand).finally(() => {
    path.dialling -= 1;
  });
  if (link) reached(yard);
  return link;
}

/** The site is there: whatever its servers say to the mail, they are not out of reach. */
function reached(yard: Yard): void {
  const { parts, path } = yard;
  const wasSuspended = path.suspensions > 0;
  path.failures = 0;
  path.suspensions = 0;
  if (wasSuspended) {
    path.suspended.untilMs = 0;
    parts.resume(path);
  }
  prove(yard);
}

function prove({ world, parts, path }: Yard): void {
  if (path.proven) return;
  path.proven = true;
  drive(world, parts, path);
}

/**
 * Tries the plan's addresses in order. When none answers the message is deferred and the path steps back; when servers
 * answered but none on the terms of the domain's policy, that is the domain's trouble alone.
 */
async function connect(yard: Yard, errand: Errand): Promise<Link | null> {
  const { parts, path } = yard;
  const known = knownRefusal(path.refusals, errand, yard.world.clock.monotonic());
  if (known) {
    parts.finisher.push(errand.job, known);
    return null;
  }
  const opened = await openOne(yard, errand, firstOf(reachable(path, errand), ADDRESSES_MAX));
  if (!Array.isArray(opened)) return opened;
  notOpened(yard, errand, opened);
  return null;
}

/** A session to the first of the hops that gives one, else what each of them said. */
async function openOne({ world, parts, path }: Yard, errand: Errand, hops: PlannedHop[]): Promise<Link | Unopened[]> {
  const startedAtMs = world.clock.monotonic();
  const tried: Unopened[] = [];
  const linkWorld = { clock: world.clock, config: world.config, open: parts.open };
  for (const hop of hops) {
    const opened = await openLink(linkWorld, parts.results, { source: path.source, hop, errand, startedAtMs });
    if ("session" in opened) {
      if (!path.isRelay) parts.reach.connected();
      return opened;
    }
    tried.push(opened);
    if (parts.stopping()) break;
  }
  return tried;
}

function notOpened(yard: Yard, errand: Errand, tried: Unopened[]): void {
  const { parts, path } = yard;
  const [first] = tried;
  const word = wordOf(tried);
  if (!first || !word || tried.every(({ by_policy }) => by_policy)) {
    const outcome = word?.outcome ?? noAddress(path, errand);
    parts.finisher.push(errand.job, outcome);
    rememberRefusal(path.refusals, errand, outcome, yard.world.clock.monotonic());
    return;
  }
  // The first one: the last is an IPv6 address often enough, which a machine without IPv6 would look for in vain.
  if (!path.isRelay && tried.every(({ unreachable }) => unreachable)) {
    parts.reach.unreachable(path.site.name, hopOf(first));
  }
  if (!parts.divert(errand)) {
    const outcome = conclude(yard, errand.job, word.outcome, word.path_action);
    if (outcome.class === "blocked") parts.usage.count(path.source, outcome);
  }
  failed(yard, word);
}

/** A source with an address of its own reaches addresses of that kind only. */
function reachable({ source: { ip } }: Path, { plan }: Errand): PlannedHop[] {
  return plan.hops.filter(({ address }) => ip === null || isIP(ip) === isIP(address));
}

function noAddress({ source }: Path, { plan }: Errand): Outcome {
  const kind = source.ip && isIP(source.ip) === 6 ? "IPv6" : "IPv4";
  const message = `no mail server of ${plan.domain} has an ${kind} address, and this mail leaves from ${source.ip}`;
  return deferredLocally(message, "4.4.1", "connection");
}

/** Postfix's feedback: one more connection after each full cohort of successes. */
function recovered(yard: Yard): void {
  const { path } = yard;
  path.blocks = 0;
  path.limit = Math.min(path.site.connections_max, path.limit + 1 / path.limit);
  prove(yard);
}

function failed(yard: Yard, { outcome, path_action }: Unopened): void {
  const { world, path } = yard;
  const now = world.clock.monotonic();
  if (path.failures === 0) path.firstFailureAtMs = now;
  path.failures += 1;
  path.proven = false;
  path.limit = Math.max(1, path.limit - 1);
  rest(world, path, Math.min(FAILURE_PAUSE_MAX_MS, FAILURE_PAUSE_MS * path.failures));
  if (act(yard, path_action, outcome.message)) return;
  const isDead = path.failures >= FAILURES_TO_SUSPEND && now - path.firstFailureAtMs >= FAILING_FOR_MS;
  if (isDead || path.suspensions > 0) {
    suspend(yard, outcome.message, SUSPEND_MIN[Math.min(path.suspensions, SUSPEND_MIN.length - 1)] as number);
    path.suspensions += 1;
  }
}

/** Does what a reply asks of the path; true when it is suspended for that. */
function act(yard: Yard, action: AttemptResult["path_action"], reason: string): boolean {
  const { world, path } = yard;
  if (action === "slow") slowDown(world, path);
  if (action === "other_source") path.blocks += 1;
  // One refusal may be about the message; three in a row are about us, and every further one harms our name.
  const isBlocked = action === "other_source" && path.blocks >= BLOCKS_TO_SUSPEND;
  if (action !== "suspend" && !isBlocked) return false;
  suspend(yard, reason, BLOCKED_MIN);
  return true;
}

/** Whether the sender's domain is to wait still; the path is looked at again then. */
function isSlowed({ world, parts, path }: Yard, { job }: Errand): boolean {
  const waitMs = (path.slowed.get(job.about.domain_id) ?? 0) - world.clock.monotonic();
  if (waitMs <= 0) path.slowed.delete(job.about.domain_id);
  else driveIn({ world, parts, path }, waitMs);
  return waitMs > 0;
}

function slowDown(world: PathWorld, path: Path): void {
  path.limit = Math.max(1, path.limit / 2);
  rest(world, path, SLOW_PAUSE_MS);
}

function suspend({ world, parts, path }: Yard, reason: string, minutes: number): void {
  world.log.warn({ path: path.key, minutes }, "a destination is suspended");
  path.suspended = { untilMs: world.clock.now() + minutes * 60_000, reason };
  parts.suspend(path);
}
