// Can this machine reach anybody's port 25? Many networks close it. When several sites in a row cannot be connected to and
// none could for a while, those that could before included, it is the machine, not the sites: mail with a relay to fall back on then
// takes that. One connection to anybody ends it; until then a process of the machine looks every minute. The database remembers, for the
// other processes and the next start.
import type { World } from "../../platform/world.ts";
import type { OpenSession } from "../outside.ts";
import * as queries from "./relay-queries.ts";
import type { Hop } from "./route.ts";

export type Reach = {
  isClosed(): boolean;
  /** A direct connection to some server of a site was made, or could not be. */
  connected(hop: Hop): void;
  unreachable(site: string, hop: Hop): void;
  /** Looks now whether port 25 is open again; true when it is. */
  look(): Promise<boolean>;
  stop(): Promise<void>;
};

type ReachWorld = Pick<World, "db" | "clock" | "config" | "log"> & { open: OpenSession };

const SITES_MIN = 3;
const QUIET_MS = 60_000;
const SITES_MAX = 50;
const TARGETS_MAX = 8;
/** Addresses that were connected to, to be asked before all others are taken for unreachable. */
const REACHED_MAX = 4;
const LOOK_EVERY_MS = 60_000;
const LOOK_TIMEOUT_MS = 10_000;
const SYNC_EVERY_MS = 5_000;

type State = {
  /** An address of each site that failed since the last connection. */
  failing: Map<string, string>;
  /** Connected to before, the latest first. */
  reached: string[];
  /** The look that is under way; null when there is none. */
  asking: Promise<void> | null;
  /** The last connection, or the start: what waits for a start is mail to sites that are down. */
  connectedAtMs: number;
  closed: boolean;
  targets: string[];
  lookedAtMs: number;
};

/** `machine` is the node's name for it; `onClosed` hears of the moment, to send what can be sent another way. */
export async function watchReach(world: ReachWorld, machine: string, onClosed: () => void): Promise<Reach> {
  const [row] = await queries.findClosed(world.db, machine);
  const state: State = {
    failing: new Map(),
    reached: [],
    asking: null,
    connectedAtMs: world.clock.monotonic(),
    closed: row !== undefined,
    targets: row?.targets ?? [],
    lookedAtMs: Number.NEGATIVE_INFINITY,
  };
  const watch: Watch = { world, machine, state, onClosed, noted: Promise.resolve() };
  let turn = Promise.resolve();
  const timer = setInterval(() => {
    turn = turn
      .then(() => sync(watch))
      .catch((err) => world.log.warn({ err }, "whether port 25 is open could not be looked up"));
  }, SYNC_EVERY_MS);
  timer.unref();
  return {
    isClosed: () => state.closed,
    connected({ address }) {
      if (state.reached[0] !== address)
        state.reached = [address, ...state.reached.filter((one) => one !== address)].slice(0, REACHED_MAX);
      connected(watch);
    },
    unreachable(site, { address }) {
      if (state.failing.size < SITES_MAX) state.failing.set(site, address);
      if (!seemsClosed(watch)) return;
      if (state.reached.length === 0) close(watch);
      else
        state.asking ??= askReached(watch).catch((err) => world.log.warn({ err }, "other servers could not be asked"));
    },
    look: () => look(watch),
    async stop() {
      clearInterval(timer);
      await turn;
      await state.asking;
      await watch.noted;
    },
  };
}

type Watch = {
  world: ReachWorld;
  machine: string;
  state: State;
  onClosed(): void;
  /** What is being written, in order. */
  noted: Promise<unknown>;
};

function seemsClosed({ world, state }: Watch): boolean {
  const isQuiet = world.clock.monotonic() - state.connectedAtMs >= QUIET_MS;
  return !state.closed && isQuiet && state.failing.size >= SITES_MIN;
}

/**
 * Three dead sites in a row are nothing unusual where little is sent, and a session that is kept open is no new connection:
 * the machine has no way out if servers that answered before do not any more.
 */
async function askReached(watch: Watch): Promise<void> {
  const { world, state } = watch;
  const answered = await Promise.all(state.reached.map((address) => answers(world, address))).finally(() => {
    state.asking = null;
  });
  if (answered.includes(true)) connected(watch);
  else if (seemsClosed(watch)) close(watch);
}

function close(watch: Watch): void {
  const { world, machine, state } = watch;
  const failing = [...state.failing.values()].slice(state.reached.length - TARGETS_MAX);
  Object.assign(state, { closed: true, targets: [...state.reached, ...failing] });
  state.lookedAtMs = world.clock.monotonic();
  world.log.warn({ sites: state.failing.size }, "no server's port 25 can be reached from this machine");
  const closed = { machine, at: new Date(world.clock.now()), targets: state.targets };
  noteLater(watch, () => queries.noteClosed(world.db, closed));
  watch.onClosed();
}

function connected(watch: Watch): void {
  const { world, machine, state } = watch;
  state.connectedAtMs = world.clock.monotonic();
  if (state.failing.size > 0) state.failing.clear();
  if (!state.closed) return;
  state.closed = false;
  world.log.info({}, "port 25 can be reached again");
  noteLater(watch, () => queries.noteOpen(world.db, machine));
}

/** Nobody waits for it: a note that is lost is made again by whoever finds out next. */
function noteLater(watch: Watch, note: () => Promise<unknown>): void {
  watch.noted = watch.noted
    .then(note)
    .catch((err) => watch.world.log.warn({ err }, "whether port 25 is open could not be noted"));
}

async function look(watch: Watch): Promise<boolean> {
  const { world, machine, state } = watch;
  state.lookedAtMs = world.clock.monotonic();
  const answered = await Promise.all(state.targets.map((address) => answers(world, address)));
  if (answered.includes(true)) {
    connected(watch);
    return true;
  }
  await queries.noteClosed(world.db, { machine, at: new Date(world.clock.now()), targets: state.targets });
  return false;
}

/** What other processes of the machine found, and a look of our own when it is time. */
async function sync(watch: Watch): Promise<void> {
  const { world, machine, state } = watch;
  await watch.noted;
  const [found] = await queries.findClosed(world.db, machine);
  if (!found) state.closed = false;
  else if (!state.closed) {
    Object.assign(state, { closed: true, targets: found.targets });
    watch.onClosed();
  }
  if (state.closed && world.clock.monotonic() - state.lookedAtMs >= LOOK_EVERY_MS) await look(watch);
}

/** A greeting, whatever it says, proves the way. */
async function answers(world: ReachWorld, address: string): Promise<boolean> {
  const opened = await world.open({
    host: address,
    address,
    port: world.config.testing.outbound_port ?? 25,
    ehlo_name: world.config.hostname,
    tls: { mode: "none" },
    timeouts: { connect_ms: LOOK_TIMEOUT_MS, greeting_ms: LOOK_TIMEOUT_MS },
  });
  if (opened.kind === "session") void opened.quit();
  return opened.kind === "session" || opened.stage !== "connect";
}
