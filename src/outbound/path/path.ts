// A path is one source to one site: its speed, its troubles, and whose mail waits for it. All state is plain memory, because a slot
// of a source belongs to one process. Here is what a path decides: each function changes the path alone, and answers what is to be
// done beyond it (effects.ts), or null. Its workers (worker.ts) send the mail and report what came of it.
import { isIP } from "node:net";
import type { World } from "../../platform/world.ts";
import type { Plan, PlannedHop } from "../route/tls-policy.ts";
import type { Job, Outcome } from "../types.ts";
import { type AttemptResult, deferredLocally, tooLate } from "./attempt.ts";
import type { Effect, Elsewhere, End } from "./effects.ts";
import { createFairness } from "./fairness.ts";
import { type Delivery, hopOf, type Source, type Unopened } from "./links.ts";
import type { Gate, Path } from "./path-types.ts";
import { createRefusals, rememberRefusal } from "./refusals.ts";

const START_CONNECTIONS = 5;
/** Until the site has proven to be there: a dead one is not crowded, a good one answers before the third is missed. */
export const UNPROVEN_CONNECTIONS = 2;
const FAILURES_TO_SUSPEND = 20;
const FAILING_FOR_MS = 60_000;
const FAILURE_PAUSE_MS = 1_000;
const FAILURE_PAUSE_MAX_MS = 5_000;
const SUSPEND_MIN = [1, 2, 5, 10, 15];
const SLOW_PAUSE_MS = 15_000;
const BLOCKED_MIN = 15;
/** A worker that is at one message for longer is not waited for. */
export const HELD_UP_MS = 1_000;
/** Longer than this, and than these bytes a second need, a server is slow. */
const SLOW_AFTER_MS = 10_000;
const SLOW_BYTES_S = 128 * 1024;
const BLOCKS_TO_SUSPEND = 3;

type Timed = Pick<World, "clock">;

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
    atWork: new Set(),
    dialling: 0,
    proven: false,
    pace: "new",
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
    refusals: createRefusals(),
  };
}

// --- whose turn it is -----------------------------------------------------------------------------------------------------

/**
 * Has a delivery wait for its turn on the path; or in the queue, where it was held back while it was on its way here: what was
 * in the path by then went there at once, and nobody looks through it a second time while all workers are busy.
 */
export function wait(world: Timed, gate: Gate, path: Path, delivery: Delivery): Effect | null {
  if (isHeldBack(world, gate, delivery)) return { kind: "put_back", job: delivery.job };
  path.fairness.push(delivery.lane, delivery);
  return null;
}

/** What becomes of a delivery that may not be sent although its turn has come; null: it may. */
export function turnAway(world: Timed, gate: Gate, delivery: Delivery): Effect | null {
  const { job } = delivery;
  // First: time was added in the queue to what waits by our doing.
  if (isHeldBack(world, gate, delivery)) return { kind: "put_back", job };
  return mayBeTried(job, world.clock.now()) ? null : ended(job, tooLate(job));
}

/**
 * Whether the queue is its place, by an order of the operator. Of a suspended organization nothing moves, not even what is past its
 * sender's own time: the claims leave that as well, and it ends when they take it again. To a suspended destination they
 * take it for its end, which comes now.
 */
function isHeldBack({ clock }: Timed, gate: Gate, { job, lane }: Delivery): boolean {
  if (gate.isSuspended(job.org_id)) return true;
  return gate.isHeld(lane.domain) && mayBeTried(job, clock.now());
}

/** Behind its end as well, once, unless its sender set that end: machines were suspended, lanes were late. */
function mayBeTried({ expires_at, about }: Job, nowMs: number): boolean {
  return expires_at.getTime() > nowMs || !about.has_expiry;
}

/** Until when nothing may be begun on it has not come yet; a time further ahead than any is of a clock that was set back. */
export function isSuspended({ clock }: Timed, { suspended }: Path): boolean {
  const leftMs = suspended.untilMs - clock.now();
  return leftMs > 0 && leftMs <= BLOCKED_MIN * 60_000;
}

/** While a site is failing, one worker probes; the others would only fail beside it. */
export function workersMax(path: Path): number {
  if (path.failures > 0) return 1;
  return Math.max(1, Math.min(Math.floor(path.limit), path.proven ? path.site.connections_max : UNPROVEN_CONNECTIONS));
}

/**
 * Whether one more worker is of use: those at work are soon free for what waits, and save a connection, but for those that a
 * server keeps waiting.
 */
export function wantsWorker({ clock }: Timed, path: Path): boolean {
  const waiting = path.fairness.size();
  if (waiting === 0 || path.workers >= workersMax(path)) return false;
  if (path.workers < waiting) return true;
  const heldUpSinceMs = clock.monotonic() - HELD_UP_MS;
  const heldUp = [...path.atWork].filter(({ sinceMs }) => sinceMs <= heldUpSinceMs).length;
  return path.workers - heldUp < waiting;
}

/** How long the sender's domain is to wait still. */
export function slowedForMs({ clock }: Timed, path: Path, { job }: Delivery): number {
  const waitMs = (path.slowed.get(job.about.domain_id) ?? 0) - clock.monotonic();
  if (waitMs <= 0) path.slowed.delete(job.about.domain_id);
  return Math.max(0, waitMs);
}

/** Nothing is begun on it for so long. */
export function rest({ clock }: Timed, path: Path, ms: number): void {
  path.notBeforeMs = Math.max(path.notBeforeMs, clock.monotonic() + ms);
}

/** A source with an address of its own reaches addresses of that kind only. */
export function reachable({ source: { ip } }: Path, { plan }: Delivery): PlannedHop[] {
  return plan.hops.filter(({ address }) => ip === null || isIP(ip) === isIP(address));
}

// --- what came of a connection --------------------------------------------------------------------------------------------

/** The site is there: whatever its servers say to the mail, they are not out of reach. */
export function reached(path: Path): Effect | null {
  const wasSuspended = path.suspensions > 0;
  path.failures = 0;
  path.suspensions = 0;
  if (!wasSuspended) return null;
  path.suspended.untilMs = 0;
  return { kind: "resume" };
}

/** True when it was not known before: more workers may begin. */
export function prove(path: Path): boolean {
  const isNew = !path.proven;
  path.proven = true;
  return isNew;
}

/**
 * Servers answered, but none on the terms of the domain's policy, or there is none that the source could reach: that is the
 * domain's trouble alone.
 */
export function refused({ clock }: Timed, path: Path, delivery: Delivery, failure: Unopened | undefined): Effect {
  const outcome = failure?.outcome ?? noAddress(path, delivery);
  rememberRefusal(path.refusals, delivery, outcome, clock.monotonic());
  return ended(delivery.job, outcome);
}

function noAddress({ source }: Path, { plan }: Delivery): Outcome {
  const kind = source.ip && isIP(source.ip) === 6 ? "IPv6" : "IPv4";
  const message = `no mail server of ${plan.domain} has an ${kind} address, and this mail leaves from ${source.ip}`;
  return deferredLocally(message, "4.4.1", "connection");
}

/** Says of the site that none of its servers could be connected to, where that is so. */
export function unreached(path: Path, tried: Unopened[]): Effect | null {
  const [first] = tried;
  if (!first || path.isRelay || !tried.every(({ unreachable }) => unreachable)) return null;
  // The first one: the last is an IPv6 address often enough, which a machine without IPv6 would look for in vain.
  return { kind: "unreachable", hop: hopOf(first) };
}

/** What becomes of the mail that no server was opened for. */
export function unsent(delivery: Delivery, { outcome, path_action }: Unopened): Effect {
  const otherwise = concluded(delivery.job, outcome, { path_action, counts: outcome.class === "blocked" });
  return { kind: "divert", delivery, otherwise };
}

/** The path steps back, and is suspended if the site has not been there for long, or refuses us. */
export function failed(world: Timed, path: Path, { outcome, path_action }: Unopened): Effect | null {
  const now = world.clock.monotonic();
  if (path.failures === 0) path.firstFailureAtMs = now;
  path.failures += 1;
  path.proven = false;
  path.limit = Math.max(1, path.limit - 1);
  rest(world, path, Math.min(FAILURE_PAUSE_MAX_MS, FAILURE_PAUSE_MS * path.failures));
  const asked = act(world, path, path_action, outcome.message);
  if (asked) return asked;
  const isDead = path.failures >= FAILURES_TO_SUSPEND && now - path.firstFailureAtMs >= FAILING_FOR_MS;
  if (!isDead && path.suspensions === 0) return null;
  const minutes = SUSPEND_MIN[Math.min(path.suspensions, SUSPEND_MIN.length - 1)] as number;
  path.suspensions += 1;
  return suspend(world, path, outcome.message, minutes);
}

// --- what came of a message -----------------------------------------------------------------------------------------------

type Concluding = Pick<AttemptResult, "path_action"> & { counts: boolean };

/** What becomes of the mail that a server answered to; a refusal of our address is another address's to try once more. */
export function concluded(job: Job, outcome: Outcome, { path_action, counts }: Concluding): End | Elsewhere {
  return { kind: path_action === "other_source" ? "elsewhere" : "end", job, outcome, counts };
}

/** It ends, and no server said anything of it. */
export function ended(job: Job, outcome: Outcome): End {
  return { kind: "end", job, outcome, counts: false };
}

type Answer = Pick<AttemptResult, "path_action"> & { outcome: Outcome };

/** The path learns what a server made of a message. */
export function answered(world: Timed, path: Path, { about }: Job, { outcome, path_action }: Answer): Effect | null {
  if (outcome.kind === "delivered") recovered(path);
  if (path_action === "slow_sender") path.slowed.set(about.domain_id, world.clock.monotonic() + SLOW_PAUSE_MS);
  return act(world, path, path_action, outcome.message);
}

/** How long a message held its slot: what that says of the site. An end that came at once without a server's word says nothing. */
export function timed(
  path: Path,
  { job }: Delivery,
  { took_ms, isSettled }: { took_ms: number; isSettled: boolean },
): void {
  const isSlow = took_ms > SLOW_AFTER_MS + (job.about.size / SLOW_BYTES_S) * 1000;
  if (isSlow) path.pace = "slow";
  else if (isSettled) path.pace = "quick";
}

/** Postfix's feedback: one more connection after each full cohort of successes. */
function recovered(path: Path): void {
  path.blocks = 0;
  path.limit = Math.min(path.site.connections_max, path.limit + 1 / path.limit);
}

/** Carries out what a reply asks of the path. */
function act(world: Timed, path: Path, action: AttemptResult["path_action"], reason: string): Effect | null {
  if (action === "slow") slowDown(world, path);
  if (action === "other_source") path.blocks += 1;
  // One refusal may be about the message; three in a row are about us, and every further one harms our name.
  const isBlocked = action === "other_source" && path.blocks >= BLOCKS_TO_SUSPEND;
  return action === "suspend" || isBlocked ? suspend(world, path, reason, BLOCKED_MIN) : null;
}

function slowDown(world: Timed, path: Path): void {
  path.limit = Math.max(1, path.limit / 2);
  rest(world, path, SLOW_PAUSE_MS);
}

function suspend({ clock }: Timed, path: Path, reason: string, minutes: number): Effect {
  path.suspended = { untilMs: clock.now() + minutes * 60_000, reason };
  return { kind: "suspend", minutes };
}
