// One seed of webhooks: some organizations' endpoints and events, receivers with their moods, one to three dispatchers, and
// what goes wrong. Producers and dispatchers are the product's own (src/webhooks).

import type { FetchResult, SafeFetch } from "../../src/platform/net/safe-fetch.ts";
import type { World } from "../../src/platform/world.ts";
import { startHooks } from "../../src/webhooks/dispatch.ts";
import { enqueueWebhooks } from "../../src/webhooks/enqueue.ts";
import { wakeHooks } from "../../src/webhooks/wake.ts";
import { chanceOf } from "../faults/seeded.ts";
import { connect, createServer, type Server } from "./database.ts";
import type { Sabotage } from "./outbound-rows.ts";
import { createProcessWorld, type Line } from "./process-world.ts";
import { createUniverse, type Life, restoreTimers, type Universe } from "./universe.ts";
import { createWebhookRows, type WebhookRows, webhookStatements } from "./webhook-rows.ts";
import { judgeWebhooks } from "./webhook-verdict.ts";

export type Receiver = {
  id: string;
  org_id: string;
  /** By the wall. */
  down_until_ms: number;
  answers: "well" | "500" | "gone" | "slowly";
};

/** An attempt as the receiver saw it. */
export type Request = {
  webhook_id: string;
  event_id: string;
  attempt: number;
  at_ms: number;
  ended_ms: number | null;
  status: number | null;
};

export type WebhookPlay = {
  kind: "calm" | "faults";
  universe: Universe;
  rows: WebhookRows;
  server: Server;
  receivers: Receiver[];
  requests: Request[];
  dispatchers: Dispatcher[];
  /** Events that were committed, and when. */
  events: { id: string; org_id: string; at_ms: number }[];
  lines: Line[];
};

type Dispatcher = { life: Life; stop: (() => Promise<void>) | null };

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const LOOK_EVERY_MS = 473;
const SLEEP_MIN_MS = 3_000;
const SETTLED_AFTER_MS = 4_000;
const EVENTS_MAX = 200_000;
const STACK_FRAMES = 10;

/** Plays a seed. */
export async function playWebhooks(seed: number, sabotage: Sabotage = {}) {
  Error.stackTraceLimit = 0;
  const universe = createUniverse(chanceOf(seed));
  try {
    const play = setUp(universe, sabotage);
    let isOver = false;
    let undoneAtMs = 0;
    const observer: Life = { name: "observer", alive: true, stalled_until_ms: 0, calls: 0 };
    const look = (): void => {
      if (!isDone(play)) undoneAtMs = universe.monotonic();
      isOver = universe.monotonic() - undoneAtMs > SETTLED_AFTER_MS;
      if (!isOver && !isActive(play)) passTime(play);
      universe.after(LOOK_EVERY_MS, observer, look);
    };
    universe.after(LOOK_EVERY_MS, observer, look);
    await universe.run(() => isOver || universe.events() > EVENTS_MAX);
    const problems = isOver ? judgeWebhooks(play) : [`it does not end: ${describe(play)}`];
    const figures = { deliveries: play.rows.log.length, attempts: play.requests.length, events: universe.events() };
    return { seed, kind: `webhooks, ${play.kind}`, problems, figures, lines: play.lines };
  } finally {
    restoreTimers();
    Error.stackTraceLimit = STACK_FRAMES;
  }
}

function setUp(universe: Universe, sabotage: Sabotage): WebhookPlay {
  const { chance } = universe;
  const kind = chance.float() < 0.25 ? "calm" : "faults";
  const rows = createWebhookRows();
  const server = createServer(rows.writer, webhookStatements(universe, rows, sabotage));
  const receivers = makeReceivers(universe, rows);
  const play: WebhookPlay = {
    ...{ kind, universe, rows, server, receivers },
    ...{ requests: [], dispatchers: [], events: [], lines: [] },
  };
  const number = chance.pick([1, 1, 1, 2]);
  for (let n = 0; n < number; n += 1) startDispatcher(play);
  produceEvents(play);
  if (kind === "faults") planFaults(play);
  return play;
}

function makeReceivers({ chance, wall }: Universe, rows: WebhookRows): Receiver[] {
  const number = chance.between(1, 3);
  return Array.from({ length: number }, (_, n) => {
    const id = `00000000-0000-7000-8000-0000000000e${n}`;
    const org_id = `00000000-0000-7000-8000-00000000000${chance.between(1, 2)}`;
    const none = { disabled_reason: null, disabled_at: null };
    rows.endpoints.set(id, { org_id, id, enabled: true, ...none });
    rows.lanes.set(id, { org_id, webhook_id: id, next_at: Number.POSITIVE_INFINITY, consecutive_failures: 0 });
    const downForMs = chance.pick([0, 0, 0, 20_000, 20_000, 10 * MINUTE_MS, 3 * HOUR_MS, 36 * HOUR_MS]);
    const answers = chance.pick(["well", "well", "well", "well", "well", "slowly", "500", "gone"] as const);
    return { id, org_id, down_until_ms: wall() + downForMs, answers };
  });
}

// --- receivers --------------------------------------------------------------------------------------------------------

function receive(play: WebhookPlay, life: Life): SafeFetch {
  const { universe, receivers, requests } = play;
  const { chance } = universe;
  const fetch = (asked: Parameters<SafeFetch>[0]): Promise<FetchResult> => {
    const id = new URL(asked.url).hostname.split(".")[0]!;
    const receiver = receivers.find((one) => one.id === id)!;
    const isDown = universe.wall() < receiver.down_until_ms;
    const tookMs = answerTime(chance.float(), isDown, receiver);
    const request: Request = {
      webhook_id: id,
      event_id: asked.headers["X-Service-Event-ID"]!,
      attempt: Number(asked.headers["X-Service-Attempt"]),
      at_ms: universe.wall(),
      ended_ms: null,
      status: null,
    };
    requests.push(request);
    life.calls += 1;
    return new Promise((resolve) => {
      universe.after(tookMs, life, () => {
        life.calls -= 1;
        request.ended_ms = universe.wall();
        const isLate = tookMs >= asked.timeout_ms;
        request.status = isDown || isLate ? null : statusOf(receiver);
        if (request.status === null)
          resolve({ kind: "failed", code: "timeout", reason: "no answer", duration_ms: tookMs });
        else
          resolve({ kind: "answered", status: request.status, headers: new Map(), body: EMPTY, duration_ms: tookMs });
      });
    });
  };
  return Object.assign(fetch, { close: async () => undefined });
}

const EMPTY = Buffer.alloc(0);

function answerTime(float: number, isDown: boolean, { answers }: Receiver): number {
  if (isDown) return float < 0.1 ? 15_000 : 20;
  return answers === "slowly" ? 500 + 4_000 * float : 5 + 100 * float;
}

function statusOf({ answers }: Receiver): number {
  if (answers === "gone") return 410;
  return answers === "500" ? 500 : 204;
}

// --- processes --------------------------------------------------------------------------------------------------------

function startDispatcher(play: WebhookPlay): void {
  const { universe, dispatchers } = play;
  const life: Life = { name: `hooks/${dispatchers.length}`, alive: true, stalled_until_ms: 0, calls: 0 };
  const dispatcher: Dispatcher = { life, stop: null };
  dispatchers.push(dispatcher);
  universe.after(0, life, () => {
    startHooks(worldOf(play, life)).then(
      ({ stop }) => {
        dispatcher.stop = stop;
      },
      () => end(play, dispatcher, 1_000),
    );
  });
}

function worldOf(play: WebhookPlay, life: Life): World {
  const { universe, server, lines } = play;
  return createProcessWorld({ universe, life, lines, db: connect(universe, server, life), fetch: receive(play, life) });
}

function end(play: WebhookPlay, dispatcher: Dispatcher, againMs: number): void {
  const { universe, server, dispatchers } = play;
  if (!dispatcher.life.alive) return;
  universe.kill(dispatcher.life);
  server.listeners = server.listeners.filter(({ life }) => life !== dispatcher.life);
  dispatchers.splice(dispatchers.indexOf(dispatcher), 1);
  universe.plan(againMs, () => startDispatcher(play));
}

/** A process of another role, which never fails: what it commits is what has to be sent. */
function produceEvents(play: WebhookPlay): void {
  const { universe, server, lines, events } = play;
  const { chance } = universe;
  const life: Life = { name: "producer", alive: true, stalled_until_ms: 0, calls: 0 };
  const world = createProcessWorld({ universe, life, lines, db: connect(universe, server, life) });
  const produce = async (org_id: string, event_id: string): Promise<void> => {
    const at = new Date(world.clock.now());
    const event = { org_id, event_id, event: "email.delivered" as const, domain_id: null, recipient: "a@b.example" };
    const isQueued = await world.db
      .transaction((tx) => enqueueWebhooks(tx, world, [{ ...event, at, payload: {} }]))
      .then(() => true)
      .catch(() => false);
    if (isQueued) wakeHooks(world);
    const isKnown = play.rows.bodies.has(event_id);
    if (isKnown) events.push({ id: event_id, org_id, at_ms: at.getTime() });
  };
  const number = chance.between(1, 4);
  for (let n = 0; n < number; n += 1) {
    const { org_id } = chance.pick(play.receivers);
    const event_id = `00000000-0000-7000-9000-${String(n).padStart(12, "0")}`;
    universe.plan(chance.between(0, 3_000), () => {
      universe.become(life);
      void produce(org_id, event_id);
    });
  }
}

// --- what goes wrong --------------------------------------------------------------------------------------------------

function planFaults(play: WebhookPlay): void {
  const { universe, server, dispatchers, lines } = play;
  const { chance } = universe;
  const note = (text: string) =>
    lines.push({ at_s: Math.round(universe.monotonic() / 1000), process: "fault", level: "", text });
  const faults = [
    (dispatcher: Dispatcher) => {
      note(`kill -9 ${dispatcher.life.name}`);
      end(play, dispatcher, chance.between(50, 20_000));
    },
    (dispatcher: Dispatcher) => {
      note(`SIGTERM ${dispatcher.life.name}`);
      const stop = dispatcher.stop ?? (async () => undefined);
      universe.after(60_000, dispatcher.life, () => end(play, dispatcher, 100));
      universe.after(0, dispatcher.life, () => {
        stop().finally(() => end(play, dispatcher, 100));
      });
    },
    (dispatcher: Dispatcher) => {
      const ms = chance.pick([1_000, 20_000, 80_000]);
      note(`${dispatcher.life.name} stands still for ${ms} ms`);
      universe.stall(dispatcher.life, ms);
    },
    () => {
      const ms = chance.pick([500, 10_000, 40_000]);
      note(`the database is away for ${ms} ms`);
      server.away_until_ms = universe.monotonic() + ms;
    },
    () => {
      const minutes = chance.pick([-30, -5, 1, 20]);
      note(`all clocks are moved by ${minutes} minutes`);
      universe.moveWall(minutes * MINUTE_MS);
    },
    () => {
      note("answers are lost for 5 s");
      server.loss = { request: chance.float() / 5, answer: chance.float() / 5 };
      server.notify.loss = 0.5;
      universe.plan(5_000, () => {
        server.loss = { request: 0, answer: 0 };
      });
    },
  ];
  const number = chance.between(1, 3);
  for (let n = 0; n < number; n += 1) {
    const atMs = chance.float() < 0.4 ? chance.between(1, 100) * MINUTE_MS : chance.between(500, 20_000);
    universe.plan(atMs, () => {
      const [first] = dispatchers;
      if (first) chance.pick(faults)(chance.pick(dispatchers));
    });
  }
}

// --- time -------------------------------------------------------------------------------------------------------------

function isActive({ universe, dispatchers, rows, server }: WebhookPlay): boolean {
  if (server.turn.isTaken || server.away_until_ms > universe.monotonic()) return true;
  const isAtWork = dispatchers.some(
    ({ life, stop }) => life.calls > 0 || stop === null || life.stalled_until_ms > universe.monotonic(),
  );
  if (isAtWork) return true;
  for (const { claim_id } of rows.queue.values()) if (claim_id !== null) return true;
  for (const { next_at } of rows.lanes.values()) if (next_at <= universe.wall()) return true;
  return false;
}

function passTime({ universe, rows }: WebhookPlay): void {
  let untilMs = universe.nextPlanned();
  for (const { next_at } of rows.lanes.values()) {
    untilMs = Math.min(untilMs, universe.monotonic() + next_at - universe.wall());
  }
  if (Number.isFinite(untilMs) && untilMs - universe.monotonic() > SLEEP_MIN_MS) universe.sleepUntil(untilMs - 10);
}

function isDone({ universe, rows, dispatchers }: WebhookPlay): boolean {
  const isAwake = dispatchers.every(({ life }) => life.stalled_until_ms <= universe.monotonic());
  return isAwake && rows.queue.size === 0 && universe.nextPlanned() === Number.POSITIVE_INFINITY;
}

function describe({ rows, dispatchers }: WebhookPlay): string {
  const waiting = [...rows.queue.values()].slice(0, 3).map((row) => JSON.stringify(row));
  const lanes = [...rows.lanes.values()].map((row) => JSON.stringify(row));
  return [...waiting, ...lanes, ...dispatchers.map(({ life }) => `${life.name} calls ${life.calls}`)].join(" ");
}
