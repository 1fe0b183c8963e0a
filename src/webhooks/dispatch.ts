// The role `hooks`: claims due deliveries, attempts them, records what came of it. Any number of processes may run it on
// one database: a delivery is claimed under a lease by one of them, and an outcome counts only while the claim holds, so
// an attempt is made twice only when a process dies in the middle of it. Every schedule is read from `world.clock`.
import { sleep } from "../platform/clock.ts";
import { coalesceByOrg } from "../platform/fair/coalesce.ts";
import type { Traces } from "../platform/process/traces.ts";
import { beatOf } from "../platform/process/watchdog.ts";
import type { World } from "../platform/world.ts";
import { ATTEMPT_TIMEOUT_MS, makeAttempt } from "./attempt.ts";
import * as board from "./board.ts";
import { closeLane } from "./close-lane.ts";
import { createFinisher, type Finisher } from "./finish.ts";
import { findEndpoints } from "./queries.ts";
import type { Outcome } from "./queue-queries.ts";
import * as queue from "./queue-queries.ts";
import { delayAfterMs } from "./schedule.ts";
import type { AttemptResult, ClaimedRow, EndpointRow } from "./types.ts";
import { type Bell, CHANNEL, createBell, listenInProcess } from "./wake.ts";

export type HooksWorld = Pick<
  World,
  "db" | "clock" | "random" | "seal" | "fetch" | "log" | "metrics" | "traces" | "moves"
>;

export type HooksOptions = {
  /** What the receiver has for its answer. */
  attempt_timeout_ms?: number;
  lease_s?: number;
  poll_ms?: number;
};

/** Without a hint: how long a due delivery, or a jump of the clock, may go unnoticed. */
const POLL_MS = 250;
/** Between two looks at the database, so that a stream of hints does not become a stream of queries. */
const ROUND_SPACING_MS = 5;
const LEASE_S = 60;
/** Not started by then: given back. Leaves time for the attempt and its commit within the lease. */
const START_WITHIN = 0.5;
const DUE_LANES_MAX = 1_000;
const CLAIM_ROWS_MAX = 1_000;
const CLOSED_PER_ROUND_MAX = 20;
const UNCOMMITTED_MAX = 5_000;
const SLEEP_AFTER_MS = 1_000;
const TIDY_EVERY_MS = 1_000;
const RECOVER_EVERY_MS = 2_000;
const EXPIRED_MAX = 5_000;
/** After so many failures in a row each further one costs its slot this much longer: a dead receiver is not hammered. */
const RESTING_FAILURES = 10;
const REST_MS = 100;
const LOOKUPS_MAX = 500;
const LOOKUP_LANES = 3;

type Hooks = {
  world: HooksWorld;
  options: Required<HooksOptions>;
  board: board.Board;
  bell: Bell;
  finisher: Finisher;
  /** Claimed rows to be given back in the next round. */
  returned: ClaimedRow[];
  in_flight: Set<Promise<void>>;
  stopping: boolean;
  tidied_ms: number;
  recovered_ms: number;
  endpointOf(orgId: string, id: string): Promise<EndpointRow | undefined>;
  bodyOf(orgId: string, eventId: string): Promise<{ body: Buffer } | undefined>;
  count(outcome: Outcome): void;
};

/** Starts dispatching. `stop` gives back what is not started, waits for what is (at most one attempt's time), commits. */
export async function startHooks(world: HooksWorld, options: HooksOptions = {}): Promise<{ stop(): Promise<void> }> {
  const hooks = build(world, {
    attempt_timeout_ms: ATTEMPT_TIMEOUT_MS,
    lease_s: LEASE_S,
    poll_ms: POLL_MS,
    ...options,
  });
  await queue.healLanes(world.db);
  const stopListening = listenInProcess(world.db, hooks.bell);
  const listener = await world.db.listen([CHANNEL], () => hooks.bell.ring());
  const running = run(hooks);
  return {
    async stop() {
      hooks.stopping = true;
      hooks.bell.ring();
      await running;
      stopListening();
      await listener.close();
      hooks.returned.push(...board.emptyBoard(hooks.board).map((held) => held.row));
      await giveBack(hooks);
      await Promise.all(hooks.in_flight);
      await giveBack(hooks);
      await hooks.finisher.drained();
    },
  };
}

function build(world: HooksWorld, options: Required<HooksOptions>): Hooks {
  const hooks: Hooks = {
    world,
    options,
    board: board.createBoard(),
    bell: createBell(),
    finisher: createFinisher(world, options.lease_s * 1000),
    returned: [],
    in_flight: new Set(),
    stopping: false,
    tidied_ms: Number.NEGATIVE_INFINITY,
    recovered_ms: Number.NEGATIVE_INFINITY,
    // Deliberate: no cache. An attempt is signed with the secrets valid when it is made; many attempts share a look-up.
    endpointOf: lookUp<EndpointRow>((orgIds, ids) => findEndpoints(world.db, orgIds, ids)),
    bodyOf: lookUp<{ org_id: string; id: string; body: Buffer }>((orgIds, ids) =>
      queue.findBodies(world.db, orgIds, ids),
    ),
    count: counters(world),
  };
  return hooks;
}

function counters(world: Pick<World, "metrics">): Hooks["count"] {
  const attempts = world.metrics.counter("postern_webhook_attempts_total", "Webhook attempts by outcome", ["outcome"]);
  const seconds = world.metrics.histogram("postern_webhook_attempt_seconds", "Time a webhook attempt took");
  return (outcome) => {
    attempts.inc({ outcome: outcome.tried ? outcome.status : "given_up" });
    if (outcome.tried && outcome.duration_ms !== null) seconds.observe(outcome.duration_ms / 1000);
  };
}

function lookUp<Row extends { org_id: string; id: string }>(
  find: (orgIds: string[], ids: string[]) => Promise<Row[]>,
): (orgId: string, id: string) => Promise<Row | undefined> {
  return coalesceByOrg<Row>({
    keys_max: LOOKUPS_MAX,
    lanes: LOOKUP_LANES,
    load: async (keys) => {
      const rows = await find(
        keys.map(({ org_id }) => org_id),
        keys.map(({ key }) => key),
      );
      return rows.map((row) => [row.org_id, row.id, row]);
    },
  });
}

// --- rounds ----------------------------------------------------------------------------------------------------------

async function run(hooks: Hooks): Promise<void> {
  const { world } = hooks;
  let troubled = false;
  const rounds = beatOf(world, "hooks");
  while (!hooks.stopping) {
    rounds.beat();
    try {
      await round(hooks);
      troubled = false;
    } catch (err) {
      if (!troubled) world.log.warn({ err }, "webhooks cannot be claimed; trying again");
      troubled = true;
    }
    await sleep(ROUND_SPACING_MS);
    await hooks.bell.rang(hooks.options.poll_ms);
  }
  rounds.end();
}

async function round(hooks: Hooks): Promise<void> {
  const now = hooks.world.clock.monotonic();
  await giveBack(hooks);
  if (now - hooks.recovered_ms >= RECOVER_EVERY_MS) {
    hooks.recovered_ms = now;
    await recover(hooks);
  }
  if (now - hooks.tidied_ms >= TIDY_EVERY_MS) {
    hooks.tidied_ms = now;
    await tidy(hooks);
  }
  const end = hooks.world.moves.begin();
  await claim(hooks).finally(end);
  pump(hooks);
}

async function claim(hooks: Hooks): Promise<void> {
  const { world } = hooks;
  if (hooks.finisher.pending() >= UNCOMMITTED_MAX) return;
  const at = new Date(world.clock.now());
  const { moving } = world.moves;
  const found = await queue.findDueLanes(world.db, at, board.fullLanes(hooks.board), DUE_LANES_MAX);
  const due = found.filter(({ org_id }) => !moving.has(org_id));
  await closeLanes(
    hooks,
    due.filter(({ closed }) => closed),
  );
  const { wants, cut } = board.shareOut(
    hooks.board,
    due.filter(({ closed }) => !closed),
    CLAIM_ROWS_MAX,
  );
  if (wants.length === 0) return;
  const claimed_ms = world.clock.monotonic();
  const id = world.random.uuid();
  const rows = await queue.claimDeliveries(world.db, wants, { id, at, lease_s: hooks.options.lease_s });
  place(hooks, wants, { rows, claimed_ms });
  await sendToTheBack(hooks, wants, at);
  if (cut) hooks.bell.ring();
}

async function closeLanes(hooks: Hooks, lanes: queue.LaneKey[]): Promise<void> {
  const { world } = hooks;
  if (lanes.length > CLOSED_PER_ROUND_MAX) hooks.bell.ring();
  for (const lane of lanes.slice(0, CLOSED_PER_ROUND_MAX)) {
    try {
      if (await closeLane(world, lane)) hooks.bell.ring();
    } catch (err) {
      // Deliberate: one endpoint that cannot be closed must not stop the others' deliveries; the next round tries again.
      world.log.error({ err, webhook_id: lane.webhook_id }, "a disabled webhook's queue cannot be closed");
    }
  }
}

function place(hooks: Hooks, wants: queue.Want[], claim: { rows: ClaimedRow[]; claimed_ms: number }): void {
  const byLane = Map.groupBy(claim.rows, (row) => row.webhook_id);
  for (const want of wants) {
    const lane = hooks.board.lanes.get(want.webhook_id);
    if (!lane) continue;
    // By id: the oldest event first. A courtesy, no promise.
    const rows = (byLane.get(want.webhook_id) ?? []).sort((a, b) => (a.id < b.id ? -1 : 1));
    lane.more = rows.length === want.rows;
    lane.empty_since_ms = lane.more ? null : (lane.empty_since_ms ?? claim.claimed_ms);
    board.addRows(
      lane,
      rows.map((row) => ({ row, claimed_ms: claim.claimed_ms })),
    );
  }
}

/** Lanes with more than they were given let others of the database's order pass, at most once a second each. */
async function sendToTheBack(hooks: Hooks, wants: queue.Want[], at: Date): Promise<void> {
  const now = hooks.world.clock.monotonic();
  const lanes = wants
    .map((want) => hooks.board.lanes.get(want.webhook_id))
    .filter((lane) => lane?.more && now - lane.requeued_ms >= 1_000) as board.Lane[];
  if (lanes.length === 0) return;
  for (const lane of lanes) lane.requeued_ms = now;
  await queue.requeueLanes(hooks.world.db, lanes, at);
}

/** Lanes without work go to sleep, and out of memory. */
async function tidy(hooks: Hooks): Promise<void> {
  const { world } = hooks;
  const now = world.clock.monotonic();
  const quiet = [...hooks.board.lanes.values()].filter(
    (lane) => lane.empty_since_ms !== null && now - lane.empty_since_ms >= SLEEP_AFTER_MS,
  );
  if (quiet.length > 0) {
    const asleep = await world.db.transaction(async (tx) => {
      const locked = await queue.lockQuietLanes(tx, quiet);
      if (locked.length > 0) await queue.sleepLanes(tx, locked);
      return new Set(locked.map((lane) => lane.webhook_id));
    });
    for (const lane of quiet) if (asleep.has(lane.webhook_id)) lane.empty_since_ms = null;
  }
  for (const [id, lane] of hooks.board.lanes) {
    if (board.isIdle(lane) && lane.empty_since_ms === null) hooks.board.lanes.delete(id);
  }
}

async function recover(hooks: Hooks): Promise<void> {
  const { world } = hooks;
  const freed = await world.db.transaction(async (tx) => {
    const rows = await queue.findExpiredClaims(tx, EXPIRED_MAX);
    if (rows.length > 0) await freeRows(tx, rows, new Date(world.clock.now()));
    return rows.length;
  });
  if (freed > 0) world.log.info({ count: freed }, "webhook deliveries of a process that died are free again");
  const gauge = world.metrics.gauge("postern_oldest_due_seconds", "How long the oldest due work has waited", ["queue"]);
  const [row] = await queue.oldestDue(world.db, new Date(world.clock.now()));
  gauge.set({ queue: "webhooks" }, row?.seconds ?? 0);
}

async function giveBack(hooks: Hooks): Promise<void> {
  if (hooks.returned.length === 0) return;
  const { world } = hooks;
  const rows = hooks.returned.splice(0);
  await world.db.transaction((tx) => freeRows(tx, rows, new Date(world.clock.now())));
}

async function freeRows(tx: Parameters<typeof queue.holdLanes>[0], rows: ClaimedRow[], at: Date): Promise<void> {
  const lanes = [...new Map(rows.map((row) => [row.webhook_id, row])).values()];
  await queue.holdLanes(tx, lanes);
  await queue.releaseDeliveries(tx, rows);
  await queue.wakeLanes(tx, lanes, at);
}

// --- attempts --------------------------------------------------------------------------------------------------------

function pump(hooks: Hooks): void {
  const latestMs = hooks.world.clock.monotonic() - hooks.options.lease_s * 1000 * START_WITHIN;
  while (!hooks.stopping && hooks.finisher.pending() < UNCOMMITTED_MAX) {
    const started = board.startNext(hooks.board);
    if (!started) return;
    if (started.held.claimed_ms < latestMs) {
      hooks.returned.push(started.held.row);
      board.endAttempt(started);
      continue;
    }
    const attempt = work(hooks, started).finally(() => {
      hooks.in_flight.delete(attempt);
      board.endAttempt(started);
      pump(hooks);
      if (wantsRows(hooks, started.lane)) hooks.bell.ring();
    });
    hooks.in_flight.add(attempt);
  }
}

function wantsRows(hooks: Hooks, lane: board.Lane): boolean {
  return hooks.returned.length > 0 || (lane.more && lane.waiting.length <= board.wantedRows(hooks.board, lane));
}

async function work(hooks: Hooks, { lane, held }: board.Started): Promise<void> {
  try {
    const outcome = await attempt(hooks, held.row);
    if (outcome === null) {
      hooks.returned.push(held.row);
      return;
    }
    hooks.finisher.add(outcome);
    hooks.count(outcome);
    if (!outcome.tried) return;
    const failed = outcome.error !== null;
    const surplus = board.learn(hooks.board, lane, { failed, duration_ms: outcome.duration_ms ?? 0 });
    hooks.returned.push(...surplus.map(({ row }) => row));
    if (failed && lane.consecutive_failures >= RESTING_FAILURES && !hooks.stopping) await sleep(REST_MS);
  } catch (err) {
    // The database could not be asked. The claim's lease frees the row.
    hooks.world.log.warn({ err, delivery_id: held.row.id }, "a webhook attempt could not be prepared");
  }
}

/** Null: nothing may be sent now, the row goes back to the queue. */
async function attempt(hooks: Hooks, row: ClaimedRow): Promise<Outcome | null> {
  const { world } = hooks;
  const [endpoint, event] = await Promise.all([
    hooks.endpointOf(row.org_id, row.webhook_id),
    hooks.bodyOf(row.org_id, row.event_id),
  ]);
  if (!endpoint?.enabled) return null;
  if (!event) return unsent(world, row, "the event's body is not kept any more");
  const result = await makeAttempt(world, endpoint, {
    event: row.event,
    event_id: row.event_id,
    body: event.body,
    attempt: row.attempt + 1,
    timeout_ms: hooks.options.attempt_timeout_ms,
  });
  if (world.traces) traceAttempt(world.traces, world.clock.now(), { row, result, body: event.body });
  return judge(world, row, result);
}

const EMAIL_ID = /"email_id":"([0-9a-f-]{36})"/;

function traceAttempt(
  traces: Traces,
  ended_ms: number,
  { row, result, body }: { row: ClaimedRow; result: AttemptResult; body: Buffer },
): void {
  const [, emailId] = EMAIL_ID.exec(body.toString("utf8", 0, 1_000)) ?? [];
  if (!emailId) return;
  traces.add(emailId, {
    ...{ name: "webhook", place: "below", kind: "client", ended_ms, duration_ms: result.duration_ms ?? 0 },
    error: result.error,
    attributes: {
      ...{ "postern.event": row.event, "postern.event.id": row.event_id, "postern.webhook.id": row.webhook_id },
      ...{ "postern.attempt": row.attempt + 1, "http.response.status_code": result.status_code ?? 0 },
    },
  });
}

function unsent(world: Pick<World, "clock">, row: ClaimedRow, error: string): Outcome {
  const nothing = { attempt_id: null, status_code: null, duration_ms: null, next_attempt_at: null };
  return { ...nothing, row, error, status: "failed", tried: false, at: new Date(world.clock.now()), gone: false };
}

/** What an attempt's result means for its delivery. */
export function judge(world: Pick<World, "clock" | "random">, row: ClaimedRow, result: AttemptResult): Outcome {
  const now = world.clock.now();
  const made = { ...result, row, tried: true, at: new Date(now), next_attempt_at: null, gone: false };
  if (result.error === null) return { ...made, status: "delivered" };
  if (result.status_code === 410) {
    return { ...made, status: "failed", gone: true, error: "the receiver answered 410: the endpoint is disabled" };
  }
  const delayMs = delayAfterMs(row.attempt + 1, world.random.float());
  if (delayMs === null) return { ...made, status: "failed" };
  return { ...made, status: "retrying", next_attempt_at: new Date(now + delayMs) };
}
