// Workers send what waits on a path: each takes the next message by fairness, reuses a session or opens one, makes the attempt, and
// reports to the path what came of it (path.ts). What the path answers is carried out before the worker goes on. Where to and on
// which TLS terms is each message's own plan: domains that share a site share its limits, never a server or a policy that is not
// theirs.
import { SIMULATOR } from "../../mail/simulated.ts";
import { isUnavailable } from "../../platform/database/db.ts";
import { isStoreTrouble } from "../../platform/storage/blobs.ts";
import type { PlannedHop } from "../route/tls-policy.ts";
import type { Outcome } from "../types.ts";
import { type AttemptResult, attempt, deferredLocally } from "./attempt.ts";
import type { Effect } from "./effects.ts";
import { firstOf, otherServers, reportedOfBoth } from "./fallback-mx.ts";
import { closeIdle, keepIdle, takeIdle } from "./idle.ts";
import type { Link } from "./link.ts";
import { type Delivery, fits, openLink, reportedFailure, type Unopened, useLink } from "./links.ts";
import {
  answered,
  concluded,
  ended,
  failed,
  HELD_UP_MS,
  isSuspended,
  prove,
  reachable,
  reached,
  refused,
  rest,
  slowedForMs,
  timed,
  turnAway,
  UNPROVEN_CONNECTIONS,
  unreached,
  unsent,
  wait,
  wantsWorker,
  workersMax,
} from "./path.ts";
import type { Path, PathParts, PathWorld } from "./path-types.ts";
import { knownRefusal } from "./refusals.ts";
import type { Slot } from "./shares.ts";

/** An attempt tries no more of a plan's addresses. */
const ADDRESSES_MAX = 4;
const UNRECORDED_MAX = 1_000;
const UNRECORDED_PAUSE_MS = 200;
const ALONE_MS = 60_000;
/** Most servers greet within a second; some make senders wait for five. */
const STALLED_AFTER_MS = 3_000;

/** What the work on one path needs at hand. */
export type PathContext = { world: PathWorld; parts: PathParts; path: Path };

/** Gives a delivery to the path, where it waits for its turn. */
export function add(context: PathContext, delivery: Delivery): void {
  const { world, parts, path } = context;
  carryOut(context, wait(world, parts.gate, path, delivery));
  drive(context);
}

function carryOut({ parts, path }: PathContext, effect: Effect | null): void {
  if (effect) parts.carryOut(path, effect);
}

/** Starts as many workers as mail and limits allow; cheap to call after every change. */
export function drive(context: PathContext): void {
  const { world, parts, path } = context;
  path.usedAtMs = world.clock.monotonic();
  if (parts.gate.isStopping()) return;
  if (isSuspended(world, path)) {
    if (path.fairness.size() > 0) carryOut(context, { kind: "park" });
    return;
  }
  if (mustHold(parts)) rest(world, path, UNRECORDED_PAUSE_MS);
  const waitMs = path.notBeforeMs - world.clock.monotonic();
  if (waitMs > 0) {
    driveIn(context, waitMs);
    return;
  }
  while (wantsWorker(world, path)) {
    const turn = nextTurn(context);
    if (!turn) return;
    path.workers += 1;
    runWorker(context, turn)
      .catch((err) => world.log.error({ err, path: path.key }, "a delivery worker failed"))
      .finally(() => {
        path.workers -= 1;
        if (path.fairness.size() > 0) drive(context);
      });
  }
  // A path without workers waits for a slot, which comes by itself.
  if (path.workers > 0 && path.workers < workersMax(path) && path.fairness.size() > 0) driveIn(context, HELD_UP_MS);
}

function driveIn(context: PathContext, ms: number): void {
  const { path } = context;
  path.timer ??= setTimeout(() => {
    path.timer = null;
    drive(context);
  }, ms);
}

/**
 * Outcomes that cannot be recorded (the database is away) must not pile up: each would be a duplicate after a crash. And
 * what may not be sent now is not begun: the server would see a connection dropped before the message.
 */
function mustHold({ gate, mayStart }: PathParts): boolean {
  return gate.unrecorded() > UNRECORDED_MAX || !mayStart();
}

/** Closes idle sessions and timers. */
export function closePath(path: Path): void {
  if (path.timer) clearTimeout(path.timer);
  path.timer = null;
  closeIdle(path);
}

/** A delivery, and the slot that was taken for it. */
type Turn = { delivery: Delivery; slot: Slot };

async function runWorker(context: PathContext, first: Turn): Promise<void> {
  const { world, parts, path } = context;
  let link: Link | null = null;
  for (let turn: Turn | null = first; turn; turn = nextTurn(context)) {
    const { delivery, slot } = turn;
    const held = link;
    link = null;
    const work = { sinceMs: world.clock.monotonic() };
    path.atWork.add(work);
    try {
      link = await sendOne(context, held, turn);
      timed(path, delivery, { took_ms: world.clock.monotonic() - work.sinceMs, isSettled: link !== null });
    } catch (err) {
      notMade(context, delivery, err);
    } finally {
      path.atWork.delete(work);
      slot.leave();
    }
  }
  if (link) keepIdle(parts.shares, path, link);
}

/** Nothing was said to the server; why the message could not be loaded or signed decides when it is tried again. */
function notMade(context: PathContext, delivery: Delivery, err: unknown): void {
  const { world, parts, path } = context;
  world.log.error({ err, message_id: delivery.job.message_id }, "an attempt could not be made");
  const defer = (reported: string): void =>
    carryOut(context, ended(delivery.job, deferredLocally(reported, "4.3.0", "local")));
  // First: what a store says of its connection reads as what the database says of its own, and may last for hours.
  if (isStoreTrouble(err)) defer("the stored message cannot be read at the moment; trying again");
  else if (isUnavailable(err)) {
    // The database was away while the message was loaded: no fault of it, and soon over.
    carryOut(context, wait(world, parts.gate, path, delivery));
    rest(world, path, UNRECORDED_PAUSE_MS);
  } else defer("an internal error; trying again");
}

function nextTurn(context: PathContext): Turn | null {
  const { world, parts, path } = context;
  if (parts.gate.isStopping() || mustHold(parts) || isSuspended(world, path)) return null;
  if (path.workers > workersMax(path) || path.notBeforeMs > world.clock.monotonic()) return null;
  let slot: Slot | null = null;
  const enter = (delivery: Delivery): boolean => {
    slot = isSlowed(context, delivery) ? null : parts.shares.enter(path, delivery);
    return slot !== null;
  };
  for (let delivery = path.fairness.next(enter); delivery; delivery = path.fairness.next(enter)) {
    const turn: Turn = { delivery, slot: slot as unknown as Slot };
    const away = turnAway(world, parts.gate, delivery);
    if (!away) return turn;
    turn.slot.leave();
    carryOut(context, away);
  }
  return null;
}

/** Whether the sender's domain is to wait still; the path is looked at again then. */
function isSlowed(context: PathContext, delivery: Delivery): boolean {
  const waitMs = slowedForMs(context.world, context.path, delivery);
  if (waitMs > 0) driveIn(context, waitMs);
  return waitMs > 0;
}

/**
 * Sends one message, opening a session where none will do; returns the link to go on with, or null without one. The link
 * held is this call's from here on, whatever becomes of it.
 */
async function sendOne(context: PathContext, held: Link | null, turn: Turn): Promise<Link | null> {
  const { parts, path } = context;
  const { delivery } = turn;
  const looking = parts.recheck.findAgain(delivery);
  if (held && (looking || !fits(held, delivery))) {
    keepIdle(parts.shares, path, held);
    held = null;
  }
  const end = looking && (await looking);
  if (end) {
    carryOut(context, ended(delivery.job, end));
    return null;
  }
  const reused = held ?? takeIdle(path, delivery);
  const link = reused ?? (await dial(context, turn));
  if (!link) return null;
  const first = await attemptOn(context, link, turn);
  if (first.lost !== null && first.outcome === null) path.proven = false;
  if (first.lost !== null && reused && parts.mayStart()) {
    // The server ended the session before it saw the message, which is not at fault: a fresh one decides.
    part(link);
    const fresh = await dial(context, turn);
    return fresh && goOn(context, fresh, turn, await attemptOn(context, fresh, turn));
  }
  return goOn(context, link, turn, first);
}

/** Settles what came of a message, once another server of the domain was asked where the trouble is this one's alone. */
async function goOn(context: PathContext, link: Link, turn: Turn, first: AttemptResult): Promise<Link | null> {
  const { world, parts, path } = context;
  const { delivery, slot } = turn;
  const mayGoOn = !parts.gate.isStopping() && parts.mayStart() && path.aloneUntilMs <= world.clock.monotonic();
  const hops = mayGoOn ? otherServers(link, first, reachable(path, delivery)) : [];
  if (hops.length === 0 || !slot.weigh()) return settle(context, link, delivery, first);
  const other = await openOne(context, delivery, firstOf(hops, ADDRESSES_MAX - 1));
  const isOpen = !Array.isArray(other);
  if (isOpen) part(link);
  const both = isOpen ? reportedOfBoth(first, await attemptOn(context, other, turn)) : first;
  // Messages by the thousand must not wait for the other ones, one by one.
  if (both.outcome === first.outcome) path.aloneUntilMs = world.clock.monotonic() + ALONE_MS;
  return settle(context, isOpen ? other : link, delivery, both);
}

/** When the attempt cannot be made, the session, on which nothing was said, serves the next one. */
async function attemptOn(context: PathContext, link: Link, { delivery, slot }: Turn): Promise<AttemptResult> {
  const { world, parts, path } = context;
  useLink(parts.results, link, fits(link, delivery) as PlannedHop, delivery);
  try {
    return await attempt(world, parts, link, { job: delivery.job, onSent: slot.lighten });
  } catch (err) {
    keepIdle(parts.shares, path, link);
    throw err;
  }
}

function settle(context: PathContext, link: Link, { job }: Delivery, result: AttemptResult): Link | null {
  const { world, path } = context;
  const { path_action } = result;
  const outcome = result.outcome ?? brokenOff(link, result.lost ?? "the connection was lost");
  carryOut(context, concluded(job, outcome, { path_action, counts: path.site.isp !== SIMULATOR }));
  carryOut(context, answered(world, path, job, { outcome, path_action }));
  if (outcome.kind === "delivered") {
    link.has_taken = true;
    driveIfNew(context);
  }
  if (link.session.usable && link.session.sent < path.site.messages_per_connection) return link;
  part(link);
  return null;
}

function part({ session }: Link): void {
  if (session.usable) void session.quit();
  else session.close();
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
async function dial(context: PathContext, { delivery, slot }: Turn): Promise<Link | null> {
  const { world, parts, path } = context;
  if (!path.proven && path.dialling >= UNPROVEN_CONNECTIONS) {
    carryOut(context, wait(world, parts.gate, path, delivery));
    return null;
  }
  path.dialling += 1;
  const late = setTimeout(slot.stall, STALLED_AFTER_MS);
  const link = await connect(context, delivery).finally(() => {
    clearTimeout(late);
    path.dialling -= 1;
  });
  if (!link) return null;
  carryOut(context, reached(path));
  driveIfNew(context);
  if (slot.weigh()) return link;
  // Others have its place by now: the session is kept for when it has one again.
  keepIdle(parts.shares, path, link);
  carryOut(context, wait(world, parts.gate, path, delivery));
  return null;
}

/** A site that has just proven to be there is given more connections. */
function driveIfNew(context: PathContext): void {
  if (prove(context.path)) drive(context);
}

/** Tries the plan's addresses in order; when no server could be opened, the path learns of it and the message has its end. */
async function connect(context: PathContext, delivery: Delivery): Promise<Link | null> {
  const { world, path } = context;
  const known = knownRefusal(path.refusals, delivery, world.clock.monotonic());
  if (known) {
    carryOut(context, ended(delivery.job, known));
    return null;
  }
  const opened = await openOne(context, delivery, firstOf(reachable(path, delivery), ADDRESSES_MAX));
  if (!Array.isArray(opened)) return opened;
  notOpened(context, delivery, opened);
  return null;
}

/** A session to the first of the hops that gives one, else what each of them said. */
async function openOne(context: PathContext, delivery: Delivery, hops: PlannedHop[]): Promise<Link | Unopened[]> {
  const { world, parts, path } = context;
  const startedAtMs = world.clock.monotonic();
  const tried: Unopened[] = [];
  const linkWorld = { clock: world.clock, config: world.config, open: parts.open };
  for (const hop of hops) {
    const opened = await openLink(linkWorld, parts.results, { source: path.source, hop, delivery, startedAtMs });
    if ("session" in opened) {
      if (!path.isRelay) carryOut(context, { kind: "connected", hop: opened.hop });
      return opened;
    }
    tried.push(opened);
    if (parts.gate.isStopping()) break;
  }
  return tried;
}

function notOpened(context: PathContext, delivery: Delivery, tried: Unopened[]): void {
  const { world, path } = context;
  const reported = reportedFailure(tried);
  if (!reported || tried.every(({ by_policy }) => by_policy)) {
    carryOut(context, refused(world, path, delivery, reported));
    return;
  }
  // In this order: where port 25 is found closed by it, all paths take their relays before this one is suspended.
  carryOut(context, unreached(path, tried));
  carryOut(context, unsent(delivery, reported));
  carryOut(context, failed(world, path, reported));
}
