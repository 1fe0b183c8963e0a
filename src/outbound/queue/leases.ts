// Which slots this process drives. A slot of a source belongs to exactly one node; heartbeat every 5 s, dead after 30 s
// by the database's clock. The node's id is the fence: a resumed sleeper finds its row gone and everything it still
// holds is dropped. `mayStart` refuses new final dots well before others may take over.
import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { beatOf } from "../../platform/process/watchdog.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "./node-queries.ts";

const HEARTBEAT_MS = 5_000;
/** One that is not answered is given up early enough for several more, over other connections, before the node is dead. */
const HEARTBEAT_STATEMENT_MS = 3_000;
const DEAD_AFTER_S = 30;
/** Rows written by a node that was declared dead meanwhile are looked for this often. */
const ORPHANS_EVERY_BEATS = 6;
/** No message is begun when the last heartbeat is older: leaves 8 s before others may take over. */
const SAFE_MS = 22_000;

export type Slot = { source_id: string; slot: number };

export type Leases = {
  node(): number;
  slots(): Slot[];
  owns(sourceId: string, slot: number): boolean;
  /** True if a message may be sent now, that is, no other node can have taken over. */
  mayStart(): boolean;
  stop(): Promise<void>;
};

type Host = { machine: string; pid: number; isAlive(pid: number): boolean };

type State = {
  node: number;
  owned: Map<string, Slot>;
  /** Owned still, but to be given away: no new work, so that they fall idle. */
  draining: Set<string>;
  seenAtMs: number;
  beats: number;
  stopped: boolean;
};

export type LeaseHooks = {
  roles: string[];
  host: Host;
  /** In-memory work of a slot, so that it is given away only when idle. */
  isIdle(slot: Slot): boolean;
  /** Looks which addresses this process has, before each share-out. */
  lookAround(): Promise<void>;
  /** Which of the nodes may hold the slots of a source; within the transaction that shares them out. */
  holders(tx: Tx, node: number, nodes: number[]): Promise<(sourceId: string) => number[]>;
  /** This process has a new node id, under which nothing was sent yet. */
  onRegistered(node: number): void;
  /** Called in the transaction that frees what a dead node held. */
  onDead(tx: Tx, dead: { id: number; machine: string }): Promise<unknown>;
  /** Called once that is committed. */
  onReleased(dead: { id: number; machine: string }): void;
  /** Called after this node was declared dead: drop everything that is not yet sent. */
  onLost(): void;
};

/** Registers this process as a node and keeps its fair share of the slots. */
export async function holdLeases(
  world: Pick<World, "db" | "clock" | "log" | "metrics">,
  hooks: LeaseHooks,
): Promise<Leases> {
  const state: State = { node: 0, owned: new Map(), draining: new Set(), seenAtMs: 0, beats: 0, stopped: false };
  await register(world, hooks, state);
  let turn: Promise<void> = Promise.resolve();
  const rounds = beatOf(world, "mta leases");
  const timer = setInterval(() => {
    turn = turn
      .then(() => beat(world, hooks, state))
      .catch((err) => world.log.warn({ err }, "heartbeat failed"))
      .then(rounds.beat);
  }, HEARTBEAT_MS);
  return {
    node: () => state.node,
    slots: () => [...state.owned].filter(([name]) => !state.draining.has(name)).map(([, slot]) => slot),
    owns: (sourceId, slot) => state.owned.has(key(sourceId, slot)) && !state.draining.has(key(sourceId, slot)),
    mayStart: () => !state.stopped && world.clock.monotonic() - state.seenAtMs < SAFE_MS,
    async stop() {
      clearInterval(timer);
      rounds.end();
      state.stopped = true;
      await turn;
      await leave(world, hooks, state);
    },
  };
}

async function register(world: Pick<World, "db" | "clock">, hooks: LeaseHooks, state: State): Promise<void> {
  const [row] = await queries.registerNode(world.db, hooks.host.machine, hooks.host.pid, hooks.roles);
  state.node = row?.id ?? 0;
  hooks.onRegistered(state.node);
  state.owned.clear();
  await balance(world, hooks, state);
}

async function beat(world: Pick<World, "db" | "clock" | "log">, hooks: LeaseHooks, state: State): Promise<void> {
  if (state.stopped) return;
  const startedAt = world.clock.monotonic();
  const seen = await world.db.transaction((tx) => queries.heartbeat(tx, state.node), HEARTBEAT_STATEMENT_MS);
  if (seen === 0) {
    world.log.warn({ node: state.node }, "this node was declared dead; it starts over");
    hooks.onLost();
    await register(world, hooks, state);
    return;
  }
  state.seenAtMs = startedAt;
  await balance(world, hooks, state);
}

async function balance(world: Pick<World, "db" | "clock">, hooks: LeaseHooks, state: State): Promise<void> {
  const startedAt = world.clock.monotonic();
  await hooks.lookAround();
  const leases = await withPartitions(world, () => world.db.transaction((tx) => moveLeases(tx, hooks, state)));
  for (const dead of leases.dead_nodes) hooks.onReleased(dead);
  const given = new Set(leases.give.map((slot) => key(slot.source_id, slot.slot)));
  state.draining = new Set(leases.drain.map((slot) => key(slot.source_id, slot.slot)));
  state.owned = new Map(
    [...leases.all.filter((lease) => lease.node_id === state.node), ...leases.take]
      .map((slot) => [key(slot.source_id, slot.slot), { source_id: slot.source_id, slot: slot.slot }] as const)
      .filter(([name]) => !given.has(name)),
  );
  if (state.seenAtMs === 0) state.seenAtMs = startedAt;
}

async function moveLeases(tx: Tx, hooks: LeaseHooks, state: State) {
  await queries.lockLeases(tx);
  const dead_nodes = await declareDead(tx, hooks, state);
  const nodes = (await queries.sendingNodes(tx)).map((node) => node.id);
  const all = await queries.allLeases(tx);
  const change = shareBySource(all, await hooks.holders(tx, state.node, nodes), state.node, hooks.isIdle);
  // From the moment it was seen idle: what is begun in it until the commit would be overtaken by its new holder's mail.
  for (const { source_id, slot } of change.give) state.draining.add(key(source_id, slot));
  await queries.setLeases(tx, state.node, change.take);
  await queries.setLeases(tx, null, change.give);
  return { all, dead_nodes, ...change };
}

/** Nodes of this machine whose process is gone, at once; others after their silence. */
async function declareDead(tx: Tx, hooks: LeaseHooks, state: State): Promise<{ id: number; machine: string }[]> {
  const before = await queries.sendingNodes(tx);
  const dead = before.filter((node) => node.machine === hooks.host.machine && !hooks.host.isAlive(node.pid));
  const nodes = await queries.declareNodesDead(
    tx,
    DEAD_AFTER_S,
    dead.map((node) => node.id),
  );
  for (const node of nodes) await hooks.onDead(tx, node);
  if (nodes.length > 0) await queries.freeLeases(tx);
  if (nodes.length > 0 || state.beats % ORPHANS_EVERY_BEATS === 0) await queries.freeOrphans(tx);
  state.beats += 1;
  return nodes;
}

/** Each source's slots among the nodes that may hold them; a node that may not lets go of them. */
export function shareBySource(
  all: (Slot & { node_id: number | null })[],
  holders: (sourceId: string) => number[],
  me: number,
  isIdle: (slot: Slot) => boolean,
): ReturnType<typeof fairShare> {
  const shares = [...Map.groupBy(all, ({ source_id }) => source_id)].map(([sourceId, slots]) => {
    const nodes = holders(sourceId);
    if (nodes.includes(me)) return fairShare(slots, nodes, me, isIdle);
    const mine = slots.filter(({ node_id }) => node_id === me);
    return { take: [], give: mine.filter(isIdle), drain: mine.filter((slot) => !isIdle(slot)) };
  });
  return {
    take: shares.flatMap(({ take }) => take),
    give: shares.flatMap(({ give }) => give),
    drain: shares.flatMap(({ drain }) => drain),
  };
}

/** What to take of the free slots, what to give back and what to let run dry, so that nodes share evenly. */
export function fairShare(
  all: (Slot & { node_id: number | null })[],
  nodes: number[],
  me: number,
  isIdle: (slot: Slot) => boolean,
): { take: Slot[]; give: Slot[]; drain: Slot[] } {
  const rank = nodes.indexOf(me);
  if (rank === -1) return { take: [], give: [], drain: [] };
  const share = Math.floor(all.length / nodes.length) + (rank < all.length % nodes.length ? 1 : 0);
  const mine = all.filter((lease) => lease.node_id === me);
  const free = all.filter((lease) => lease.node_id === null);
  const take = mine.length < share ? free.slice(0, share - mine.length) : [];
  const surplus = Math.max(0, mine.length - share);
  const give = mine.filter(isIdle).slice(0, surplus);
  const drain = mine.filter((slot) => !give.includes(slot)).slice(0, surplus - give.length);
  return { take, give, drain };
}

/** In good order; what did not end in time is in doubt as if the process had died. */
async function leave(world: Pick<World, "db" | "clock">, hooks: LeaseHooks, { node }: State): Promise<void> {
  const { machine } = hooks.host;
  await withPartitions(world, () =>
    world.db.transaction(async (tx) => {
      await queries.lockLeases(tx);
      await hooks.onDead(tx, { id: node, machine });
      await queries.leaveNode(tx, node);
      await queries.freeLeases(tx);
      await queries.freeOrphans(tx);
    }),
  );
}

function key(sourceId: string, slot: number): string {
  return `${sourceId}/${slot}`;
}
