// One seed of sending: some organizations' mail, some destinations with their moods, one to three processes, and what goes
// wrong. Played until every delivery has ended, over days of virtual time; then the verdict (outbound-verdict.ts).
import { type Chance, chanceOf } from "../faults/seeded.ts";
import { createServer, type Server } from "./database.ts";
import { accepting, type Mail } from "./intake.ts";
import { createMailNetwork, type Destination, type MailNetwork } from "./mail-network.ts";
import { createOutboundRows, type OutboundRows, outboundStatements, type Sabotage } from "./outbound-rows.ts";
import { judgeOutbound } from "./outbound-verdict.ts";
import type { Line } from "./process-world.ts";
import { createProcesses, type Machine, type Processes } from "./processes.ts";
import { createUniverse, type Life, restoreTimers, type Universe } from "./universe.ts";
import { type Watch, watchDeliveries } from "./watch.ts";

/** What may be broken on purpose, to see that the simulation notices. */
export type OutboundSabotage = Sabotage & { journal?: "forgets"; ambiguous?: "dropped" };

/** `calm`: nothing goes wrong but with destinations. `flood`: one organization has a lot of mail to a slow one. */
export type Kind = "calm" | "flood" | "faults";

export type OutboundPlay = {
  kind: Kind;
  universe: Universe;
  rows: OutboundRows;
  network: MailNetwork;
  processes: Processes;
  server: Server;
  mails: Mail[];
  lines: Line[];
  sabotage: OutboundSabotage;
  send: (inMs: number, orgId: string) => void;
  watch: Watch;
};

export type Played = {
  seed: number;
  kind: string;
  problems: string[];
  figures: Record<string, number>;
  lines: Line[];
};

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const FOREVER_MS = 1_000 * HOUR_MS;
/** Beside the beat of the processes' own timers. */
const LOOK_EVERY_MS = 473;
/** Below this nobody sleeps. */
const SLEEP_MIN_MS = 3_000;
/** Late results of processes that stood still have come by then. */
const SETTLED_AFTER_MS = 4_000;
/** How many of the seeds with faults have a clock that leaps by days, beside them. */
const LEAPS = 0.3;
const STACK_FRAMES = 10;
const EVENTS_MAX = 300_000;

/** Plays a seed. */
export async function playOutbound(seed: number, sabotage: OutboundSabotage = {}): Promise<Played> {
  Error.stackTraceLimit = 0; // thousands of lost connections a second need no stacks
  const chance = chanceOf(seed);
  const universe = createUniverse(chance);
  try {
    const play = setUp(universe, sabotage);
    let isOver = false;
    const observer: Life = { name: "observer", alive: true, stalled_until_ms: 0, calls: 0 };
    let undoneAtMs = 0;
    const look = (): void => {
      if (!isDone(play)) undoneAtMs = universe.monotonic();
      isOver = universe.monotonic() - undoneAtMs > SETTLED_AFTER_MS || play.watch.problems.length > 0;
      play.watch.look();
      if (!isOver && !isActive(play)) passTime(play);
      universe.after(LOOK_EVERY_MS, observer, look);
    };
    universe.after(LOOK_EVERY_MS, observer, look);
    await universe.run(() => isOver || universe.events() > EVENTS_MAX);
    const problems = judgeEnd(play, isOver);
    const { arrivals, starts } = play.network;
    const figures = { deliveries: play.mails.length, attempts: starts.length, arrivals: arrivals.length };
    return { seed, kind: play.kind, problems, figures: { ...figures, events: universe.events() }, lines: play.lines };
  } finally {
    restoreTimers();
    Error.stackTraceLimit = STACK_FRAMES;
  }
}

function judgeEnd(play: OutboundPlay, isOver: boolean): string[] {
  if (play.watch.problems.length > 0) return play.watch.problems;
  return isOver ? judgeOutbound(play) : [`it does not end: ${describe(play)}`];
}

function setUp(universe: Universe, sabotage: OutboundSabotage): OutboundPlay {
  const { chance } = universe;
  const kind: Kind = chance.float() < 0.15 ? "calm" : chance.float() < 0.04 ? "flood" : "faults";
  const rows = createOutboundRows();
  const server = createServer(rows.writer, outboundStatements(universe, rows, sabotage));
  const network = createMailNetwork(universe, makeDestinations(universe, kind), sabotage.ambiguous === "dropped");
  const lines: Line[] = [];
  const forgetful = sabotage.journal === "forgets";
  const processes = createProcesses({ universe, server, network, lines, forgetful });
  const watch = watchDeliveries({ universe, rows, processes });
  const parts = { kind, universe, rows, network, processes, server, mails: [], lines, sabotage, watch };
  const play: OutboundPlay = { ...parts, send: () => undefined };
  const machines = makeMachines(chance);
  for (const machine of machines) processes.start(machine);
  sendMail(play);
  if (kind === "faults") planFaults(play, [...new Set(machines)]);
  return play;
}

/** Two processes may share a machine. */
function makeMachines(chance: Chance): Machine[] {
  const make = (name: string): Machine => ({ name, boot: 1, journals: new Map() });
  const first = make("m1");
  const number = chance.pick([1, 1, 1, 2, 2, 3]);
  return [first, chance.float() < 0.5 ? first : make("m2"), make("m3")].slice(0, number);
}

// --- destinations and mail --------------------------------------------------------------------------------------------

function makeDestinations(universe: Universe, kind: Kind): Destination[] {
  const { chance } = universe;
  if (kind === "flood") return [{ ...fine("d0.example"), slowness_ms: 400 }];
  const number = chance.between(1, 3);
  return Array.from({ length: number }, (_, n) => moody(universe, fine(`d${n}.example`)));
}

function fine(domain: string): Destination {
  return {
    domain,
    slowness_ms: 50,
    dead_until_ms: 0,
    greylists_until_ms: 0,
    busy_until_ms: 0,
    dns: "fine",
    dns_until_ms: 0,
    dns_monotonic_until_ms: Number.POSITIVE_INFINITY,
    is_hopeless: false,
    says: "yes",
    breaks: 0,
    loses: 0,
  };
}

/** Most troubles pass within two hours, few last until the mail has expired. */
function moody({ chance, wall, monotonic }: Universe, destination: Destination): Destination {
  const lastsMs = chance.float() < 0.03 ? FOREVER_MS : chance.pick([1, 4, 12, 40, 100]) * MINUTE_MS;
  const until = wall() + lastsMs;
  const is_hopeless = lastsMs === FOREVER_MS;
  switch (chance.pick(["fine", "fine", "slow", "dead", "grey", "busy", "servfail", "gone", "no", "later", "flaky"])) {
    case "slow":
      return { ...destination, slowness_ms: chance.pick([500, 2_000, 12_000]) };
    case "dead":
      return { ...destination, dead_until_ms: until, is_hopeless };
    case "grey":
      return { ...destination, greylists_until_ms: until, is_hopeless };
    case "busy":
      return { ...destination, busy_until_ms: until, is_hopeless };
    case "servfail":
      return { ...destination, dns: "servfail", dns_until_ms: until, is_hopeless };
    case "gone": {
      const goneMs = chance.pick([20 * MINUTE_MS, FOREVER_MS]);
      const until = { dns_until_ms: wall() + goneMs, dns_monotonic_until_ms: monotonic() + goneMs };
      return { ...destination, dns: "nxdomain", ...until, is_hopeless: goneMs === FOREVER_MS };
    }
    case "no":
      return { ...destination, says: "no" };
    case "later":
      return chance.float() < 0.1 ? { ...destination, says: "later" } : destination;
    case "flaky":
      return { ...destination, breaks: chance.float() / 3, loses: chance.float() / 3 };
    default:
      return destination;
  }
}

const ORGANIZATIONS = ["a", "b", "c"].map((letter) => `00000000-0000-7000-8000-00000000000${letter}`);
const FLOOD = 60;

function sendMail(play: OutboundPlay): void {
  const { chance, plan } = play.universe;
  const accept = accepting(play);
  const domains = [...play.network.destinations.keys()];
  const send = (inMs: number, orgId: string): void => {
    const n = play.mails.length;
    const mail: Mail = {
      n,
      org_id: orgId,
      domain: chance.pick(domains),
      class: chance.between(0, 1),
      accepted_ms: null,
    };
    play.mails.push(mail);
    plan(inMs, () => accept(mail));
  };
  play.send = send;
  if (play.kind === "flood") {
    for (let n = 0; n < FLOOD; n += 1) send(7_000, ORGANIZATIONS[0]!);
    for (let n = 0; n < 3; n += 1) send(8_500, ORGANIZATIONS[1]!);
    return;
  }
  const spreadMs = chance.pick([1, 3_000, 12_000]);
  const number = chance.between(1, 5);
  for (let n = 0; n < number; n += 1)
    send(chance.between(0, 6_000) + chance.between(0, spreadMs), chance.pick(ORGANIZATIONS));
}

// --- what goes wrong --------------------------------------------------------------------------------------------------

function planFaults(play: OutboundPlay, machines: Machine[]): void {
  const { chance, plan } = play.universe;
  const number = chance.pick([1, 1, 2, 3]);
  for (let n = 0; n < number; n += 1) {
    const isLate = chance.float() < 0.2;
    const atMs = isLate ? chance.between(1, 100) * MINUTE_MS : chance.between(1_000, 20_000);
    const fault = chance.pick(FAULTS);
    plan(atMs, () => fault(play, machines));
  }
  if (chance.float() < LEAPS) plan(chance.pick([5_000, 30_000, 50 * MINUTE_MS]), () => leapClock(play));
}

type Fault = (play: OutboundPlay, machines: Machine[]) => void;

const FAULTS: Fault[] = [killOne, killOne, stopOne, stallOne, stallOne, cutPower, takeDatabase, loseAnswers, moveClock];

function one({ universe, processes }: OutboundPlay) {
  return processes.all.length > 0 ? universe.chance.pick(processes.all) : null;
}

function note({ universe, lines }: OutboundPlay, text: string): void {
  lines.push({ at_s: Math.round(universe.monotonic() / 1000), process: "fault", level: "", text });
}

function killOne(play: OutboundPlay): void {
  const process = one(play);
  if (!process) return;
  note(play, `kill -9 ${process.life.name}`);
  play.processes.kill(process);
}

function stopOne(play: OutboundPlay): void {
  const process = one(play);
  if (!process) return;
  note(play, `SIGTERM ${process.life.name}`);
  play.processes.stop(process);
}

function stallOne(play: OutboundPlay): void {
  const process = one(play);
  const ms = play.universe.chance.pick([500, 8_000, 25_000, 40_000]);
  if (!process) return;
  note(play, `${process.life.name} stands still for ${ms} ms`);
  play.universe.stall(process.life, ms);
}

/** Its processes are gone, and so is what they wrote without fsync. */
function cutPower(play: OutboundPlay, machines: Machine[]): void {
  const machine = play.universe.chance.pick(machines);
  note(play, `${machine.name} loses its power`);
  machine.boot += 1;
  machine.journals = new Map();
  for (const process of play.processes.all.filter((other) => other.machine === machine)) play.processes.kill(process);
}

function takeDatabase(play: OutboundPlay): void {
  const ms = play.universe.chance.pick([100, 3_000, 12_000, 35_000]);
  note(play, `the database is away for ${ms} ms`);
  play.server.away_until_ms = play.universe.monotonic() + ms;
}

function loseAnswers(play: OutboundPlay): void {
  const { server, universe } = play;
  const ms = universe.chance.between(1_000, 15_000);
  note(play, `a fifth of the statements or of their answers is lost for ${ms} ms`);
  server.loss = { request: universe.chance.float() / 5, answer: universe.chance.float() / 5 };
  server.notify.loss = 0.5;
  universe.plan(ms, () => {
    server.loss = { request: 0, answer: 0 };
  });
}

function moveClock(play: OutboundPlay): void {
  const minutes = play.universe.chance.pick([-30, -5, 1, 20, 240]);
  note(play, `all clocks are moved by ${minutes} minutes`);
  play.universe.moveWall(minutes * MINUTE_MS);
}

/**
 * Machines that were suspended, a database whose clock was set: what the clocks of schedules show is days from what they
 * showed. Servers of others do not go by it. There is mail to the same domains afterwards, soon or behind some sweeps.
 */
function leapClock(play: OutboundPlay): void {
  const { chance, plan, moveWall } = play.universe;
  const days = chance.pick([-400, -31, -8, -2, 2, 8, 31, 400]);
  note(play, `all clocks leap by ${days} days`);
  leap(play, days * DAY_MS, moveWall);
  for (let n = chance.between(1, 3); n > 0; n -= 1) {
    play.send(chance.pick([1, 45_000, 10 * MINUTE_MS]), chance.pick(ORGANIZATIONS));
  }
  // It is noticed, and put right.
  if (chance.float() < 0.5)
    plan(chance.pick([10_000, 90_000, 40 * MINUTE_MS]), () => leap(play, -days * DAY_MS, moveWall));
}

function leap({ network }: OutboundPlay, ms: number, moveWall: (ms: number) => void): void {
  moveWall(ms);
  for (const destination of network.destinations.values()) {
    for (const name of ["dead_until_ms", "greylists_until_ms", "busy_until_ms", "dns_until_ms"] as const) {
      if (destination[name] > 0) destination[name] += ms;
    }
  }
}

// --- time -------------------------------------------------------------------------------------------------------------

/** True if anybody is at work, or anything waits for time on the clocks of processes to pass. */
function isActive({ universe, processes, rows, server, watch }: OutboundPlay): boolean {
  if (watch.isAny() || server.turn.isTaken || server.away_until_ms > universe.monotonic()) return true;
  const isAtWork = processes.all.some(
    ({ life, engine }) => life.calls > 0 || engine === null || life.stalled_until_ms > universe.monotonic(),
  );
  if (isAtWork || rows.nodes.size !== processes.all.length) return true;
  for (const { owner, lane_id, due_at } of rows.deliveries.values()) {
    const lane = rows.lanes.get(lane_id);
    // Overlooked: a sweep will find it, before anything else is due.
    const isOverlooked = lane?.paused_until === null && lane.next_at > due_at;
    if (owner !== null || isOverlooked || lane?.next_at === Number.POSITIVE_INFINITY) return true;
  }
  return false;
}

/** Nothing will happen before this: everybody may sleep until then. */
function passTime({ universe, rows }: OutboundPlay): void {
  let untilMs = universe.nextPlanned();
  for (const { lane_id } of rows.deliveries.values()) {
    const lane = rows.lanes.get(lane_id);
    const dueMs = Math.max(lane?.next_at ?? 0, lane?.paused_until ?? 0);
    untilMs = Math.min(untilMs, universe.monotonic() + dueMs - universe.wall());
  }
  if (Number.isFinite(untilMs) && untilMs - universe.monotonic() > SLEEP_MIN_MS) universe.sleepUntil(untilMs - 10);
}

function isDone({ universe, rows, mails, processes }: OutboundPlay): boolean {
  const isAccepted = mails.every(({ accepted_ms }) => accepted_ms !== null);
  const isAwake = processes.all.every(({ life }) => life.stalled_until_ms <= universe.monotonic());
  return isAccepted && isAwake && rows.deliveries.size === 0 && universe.nextPlanned() === Number.POSITIVE_INFINITY;
}

function describe({ rows, processes, universe, mails }: OutboundPlay): string {
  const waiting = mails.filter(({ accepted_ms }) => accepted_ms === null).length;
  const deliveries = [...rows.deliveries.values()].slice(0, 3).map((row) => JSON.stringify(row));
  const lives = processes.all.map(({ life, engine }) => `${life.name} calls ${life.calls} ready ${engine !== null}`);
  return `${waiting} mails not accepted, deliveries ${deliveries.join(" ")}; ${lives.join(", ")}; ${universe.events()} events`;
}
