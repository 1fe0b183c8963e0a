// Sending addresses as the engine sees them: which of a pool this process can bind, which has attempts left today, and who
// stands in where an address cannot be used (its machine is gone, it was taken out, its warm-up limit is reached). Nothing
// in the queue is rewritten for that: mail stays in the lanes of its source and leaves from another of the same pool.
import type { Query, Tx } from "../../platform/database/db.ts";
import { canBind } from "../../platform/net/local-addresses.ts";
import type { World } from "../../platform/world.ts";
import type { Source } from "../path/links.ts";
import { type Counted, DEFAULT_SOURCE_ID } from "../types.ts";
import * as queries from "./pool-queries.ts";
import { dailyLimit, dayOf } from "./warmup.ts";

export type KnownSource = Source &
  Pick<queries.SourceRow, "org_id" | "pool" | "warmup_started_at" | "removed_at" | "held_at">;

/** From where mail of a lane leaves now. `problem`: from nowhere, and why. `wait`: from nowhere today. */
export type Departure = { source: KnownSource } | { problem: string } | { wait: string };

export type Sources = {
  get(id: string): KnownSource | undefined;
  /** Reads the sources again and looks which can be bound here. */
  refresh(): Promise<void>;
  /** Tells other nodes what this one can bind, and which nodes may hold the slots of a source. */
  holders(tx: Tx, node: number, nodes: number[]): Promise<(sourceId: string) => number[]>;
  departure(sourceId: string): Departure;
  /** True if the pool has another source that can send, today or when its limit allows it again. */
  hasOther(sourceId: string): boolean;
  /** Another source of the pool that could be used now. */
  sibling(sourceId: string): KnownSource | null;
  /** True if first attempts of this source's mail may be made without a claim, that is, without counting. */
  isUnlimited(sourceId: string): boolean;
  /** The day (UTC) whose attempts are given out now. */
  today(): string;
  /** Sets attempts of today aside; a source without a limit gives all. */
  grant(source: KnownSource, wanted: number): Promise<number>;
  /** What cannot be given back now, for want of a database, is remembered and given back later. */
  giveBack(counted: Counted, count: number): Promise<void>;
};

/** An address that could not be bound is tried again this often. */
const BIND_AGAIN_MS = 30_000;
/** The whole limit may be set aside by others, who then give some back: after this long it is asked for again. */
const FULL_FOR_MS = 10_000;

type SourcesWorld = Pick<World, "db" | "config" | "clock">;

/** All sources by id. */
export async function findSources(world: Pick<World, "db" | "config">): Promise<Map<string, KnownSource>> {
  const rows = await queries.allSources(world.db);
  return new Map(rows.map((row) => [row.id, { ...row, ehlo: row.ehlo ?? world.config.hostname }]));
}

/** The sources of this process, read once. */
export async function createSources(world: SourcesWorld): Promise<Sources> {
  const binding = watchBinding(world);
  const budget = watchBudgets(world);
  let known = new Map<string, KnownSource>();
  let pools = new Map<string, KnownSource[]>();

  async function refresh(): Promise<void> {
    await budget.payBack();
    known = await findSources(world);
    pools = Map.groupBy(
      [...known.values()].filter(({ removed_at }) => removed_at === null),
      poolOf,
    );
    await binding.look([...known.values()].flatMap(({ ip, removed_at }) => (ip && !removed_at ? [ip] : [])));
  }

  const canSend = ({ ip, removed_at, held_at }: KnownSource): boolean =>
    removed_at === null && held_at === null && (ip === null || binding.can(ip));

  /** The other addresses of the same pool that are not taken out of use. */
  function othersOf(source: KnownSource): KnownSource[] {
    if (source.pool === null) return [];
    return (pools.get(poolOf(source)) ?? []).filter(({ id }) => id !== source.id);
  }

  function sendingBeside(sourceId: string): KnownSource[] {
    const own = known.get(sourceId);
    return own ? othersOf(own).filter(canSend) : [];
  }

  function departure(sourceId: string): Departure {
    const own = known.get(sourceId);
    if (!own) return { problem: "the address this mail was to leave from is not known here" };
    const others = othersOf(own);
    const usable = [own, ...others].filter(canSend);
    const open = usable.find(budget.hasRoom);
    if (open) return { source: open };
    if (usable.length > 0) return { wait: `the warm-up limit of ${own.ip} is reached for today` };
    // The whole pool was taken away: its mail is not to be lost.
    if (own.removed_at !== null && others.length === 0) return { source: known.get(DEFAULT_SOURCE_ID) as KnownSource };
    if ([own, ...others].every(({ held_at }) => held_at !== null))
      return { problem: `the operator took the addresses of the pool ${own.pool} out of use` };
    return { problem: `no sending machine has an address of the pool ${own.pool} now` };
  }

  await refresh();
  return {
    get: (id) => known.get(id),
    refresh,
    async holders(tx, node, nodes) {
      const own = [...known.values()].flatMap((source) => (source.ip && canSend(source) ? [source.ip] : []));
      await queries.announceAddresses(tx, node, [...new Set(own)].sort());
      return holdersAmong(tx, nodes);
    },
    departure,
    hasOther: (sourceId) => sendingBeside(sourceId).length > 0,
    sibling: (sourceId) => sendingBeside(sourceId).find(budget.hasRoom) ?? null,
    isUnlimited(sourceId) {
      const own = known.get(sourceId);
      return own !== undefined && canSend(own) && dailyLimit(own.warmup_started_at, world.clock.now()) === null;
    },
    today: () => dayOf(world.clock.now()),
    grant: budget.grant,
    giveBack: budget.giveBack,
  };
}

function poolOf({ org_id, pool }: Pick<KnownSource, "org_id" | "pool">): string {
  return `${org_id}/${pool}`;
}

/** Which addresses this process can bind, looked at now and then. */
function watchBinding(world: Pick<World, "clock">) {
  const seen = new Map<string, { can: boolean; atMs: number }>();
  return {
    can: (ip: string): boolean => seen.get(ip)?.can === true,
    async look(ips: string[]): Promise<void> {
      for (const ip of seen.keys()) if (!ips.includes(ip)) seen.delete(ip);
      const nowMs = world.clock.monotonic();
      for (const ip of ips) {
        const last = seen.get(ip);
        if (!last || nowMs - last.atMs >= BIND_AGAIN_MS) seen.set(ip, { can: await canBind(ip), atMs: nowMs });
      }
    },
  };
}

/** The attempts of today of addresses that are being warmed up. */
function watchBudgets(world: Pick<World, "db" | "clock">) {
  const full = new Map<string, { day: string; untilMs: number }>();
  const owed = new Map<string, { id: string; day: string; count: number }>();

  function owe(id: string, day: string, count: number): void {
    const key = `${id} ${day}`;
    owed.set(key, { id, day, count: (owed.get(key)?.count ?? 0) + count });
  }

  async function payBack(): Promise<void> {
    const debts = [...owed.values()];
    owed.clear();
    for (const [at, { id, day, count }] of debts.entries()) {
      try {
        await queries.returnAttempts(world.db, { id, day }, count);
      } catch (err) {
        for (const debt of debts.slice(at)) owe(debt.id, debt.day, debt.count);
        throw err;
      }
    }
  }

  return {
    payBack,
    hasRoom({ id }: KnownSource): boolean {
      const seen = full.get(id);
      return !seen || seen.day !== dayOf(world.clock.now()) || seen.untilMs <= world.clock.monotonic();
    },
    async grant({ id, warmup_started_at }: KnownSource, wanted: number): Promise<number> {
      const nowMs = world.clock.now();
      const limit = dailyLimit(warmup_started_at, nowMs);
      if (limit === null) return wanted;
      const day = dayOf(nowMs);
      const granted = await queries.grantAttempts(world.db, { id, day, limit }, wanted);
      if (granted < wanted) full.set(id, { day, untilMs: world.clock.monotonic() + FULL_FOR_MS });
      return granted;
    },
    async giveBack({ source_id, day }: Counted, count: number): Promise<void> {
      if (count <= 0) return;
      full.delete(source_id);
      owe(source_id, day, count);
      // Where that fails now, the next look at the sources pays.
      await payBack().catch(() => undefined);
    },
  };
}

async function holdersAmong(tx: Query, nodes: number[]): Promise<(sourceId: string) => number[]> {
  const sources = new Map((await queries.allSources(tx)).map((row) => [row.id, row]));
  const addresses = new Map((await queries.addressesOfNodes(tx)).map((row) => [row.id, row.addresses]));
  return (sourceId) => holdersOf(sourceId, sources, { nodes, addresses });
}

type Nodes = { nodes: number[]; addresses: Map<number, string[]> };
type Placed = Pick<queries.SourceRow, "id" | "org_id" | "pool" | "ip" | "removed_at">;

/**
 * The nodes that may hold a source's slots: those with its address, else those with another of its pool, else all, so that
 * somebody tells its mail what is wrong and lets it expire.
 */
export function holdersOf(sourceId: string, sources: Map<string, Placed>, { nodes, addresses }: Nodes): number[] {
  const own = sources.get(sourceId);
  if (!own || own.ip === null) return nodes;
  const withAny = (ips: (string | null)[]) =>
    nodes.filter((node) => addresses.get(node)?.some((address) => ips.includes(address)));
  const exact = own.removed_at === null ? withAny([own.ip]) : [];
  if (exact.length > 0) return exact;
  const pool = [...sources.values()].filter(
    (other) => other.org_id === own.org_id && other.pool === own.pool && other.removed_at === null,
  );
  const standIns = withAny(pool.map(({ ip }) => ip));
  return standIns.length > 0 ? standIns : nodes;
}
