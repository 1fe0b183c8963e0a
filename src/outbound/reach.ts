// Can this machine reach anybody's port 25? Many networks close it. When several sites in a row cannot be connected to and
// none could for a while, it is the machine, not the sites: mail with a relay to fall back on then takes that. One
// connection to anybody ends it; until then a process of the machine looks every minute. The database remembers, for the
// other processes and the next start.
import { openSession } from "../mail/smtp/session.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./relay-queries.ts";
import type { Hop } from "./route.ts";

export type Reach = {
  isClosed(): boolean;
  /** A direct connection to some server of a site was made, or could not be. */
  connected(): void;
  unreachable(site: string, hop: Hop): void;
  /** Looks now whether port 25 is open again; true when it is. */
  look(): Promise<boolean>;
  stop(): Promise<void>;
};

type ReachWorld = Pick<World, "db" | "clock" | "config" | "log">;

const SITES_MIN = 3;
const QUIET_MS = 60_000;
const SITES_MAX = 50;
const TARGETS_MAX = 8;
const LOOK_EVERY_MS = 60_000;
const LOOK_TIMEOUT_MS = 10_000;
const SYNC_EVERY_MS = 5_000;

type State = {
  /** An address of each site that failed since the last connection. */
  failing: Map<string, string>;
  connectedAtMs: number;
  closed: boolean;
  targets: string[];
  lookedAtMs: number;
};

/** `machine` is the node's name for it; `onClosed` hears of the moment, to send what can be sent another way. */
export async function watchReach(world: ReachWorld, machine: string, onClosed: () => void): Promise<Reach> {
  const state: State = {
    failing: new Map(),
    connectedAtMs: Number.NEGATIVE_INFINITY,
    closed: false,
    targets: [],
    lookedAtMs: Number.NEGATIVE_INFINITY,
  };
  const [row] = await queries.findClosed(world.db, machine);
  if (row) Object.assign(state, { closed: true, targets: row.targets });
  const say = (work: Promise<unknown>) =>
    void work.catch((err) => world.log.warn({ err }, "whether port 25 is open could not be noted"));

  function close(): void {
    Object.assign(state, { closed: true, targets: [...state.failing.values()].slice(-TARGETS_MAX) });
    state.lookedAtMs = world.clock.monotonic();
    world.log.warn({ sites: state.failing.size }, "no server's port 25 can be reached from this machine");
    say(queries.noteClosed(world.db, { machine, at: new Date(world.clock.now()), targets: state.targets }));
    onClosed();
  }

  function connected(): void {
    state.connectedAtMs = world.clock.monotonic();
    if (state.failing.size > 0) state.failing.clear();
    if (!state.closed) return;
    state.closed = false;
    world.log.info({}, "port 25 can be reached again");
    say(queries.noteOpen(world.db, machine));
  }

  async function look(): Promise<boolean> {
    state.lookedAtMs = world.clock.monotonic();
    const answered = await Promise.all(state.targets.map((address) => answers(world, address)));
    if (answered.includes(true)) {
      connected();
      return true;
    }
    await queries.noteClosed(world.db, { machine, at: new Date(world.clock.now()), targets: state.targets });
    return false;
  }

  async function sync(): Promise<void> {
    const [found] = await queries.findClosed(world.db, machine);
    if (!found) state.closed = false;
    else if (!state.closed) {
      Object.assign(state, { closed: true, targets: found.targets });
      onClosed();
    }
    if (state.closed && world.clock.monotonic() - state.lookedAtMs >= LOOK_EVERY_MS) await look();
  }

  let turn = Promise.resolve();
  const timer = setInterval(() => {
    turn = turn.then(sync).catch((err) => world.log.warn({ err }, "whether port 25 is open could not be looked up"));
  }, SYNC_EVERY_MS);
  timer.unref();

  return {
    isClosed: () => state.closed,
    connected,
    unreachable(site, { address }) {
      if (state.failing.size < SITES_MAX) state.failing.set(site, address);
      const isQuiet = world.clock.monotonic() - state.connectedAtMs >= QUIET_MS;
      if (!state.closed && isQuiet && state.failing.size >= SITES_MIN) close();
    },
    look,
    async stop() {
      clearInterval(timer);
      await turn;
    },
  };
}

/** A greeting, whatever it says, proves the way. */
async function answers(world: ReachWorld, address: string): Promise<boolean> {
  const opened = await openSession({
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
