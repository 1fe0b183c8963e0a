// What an engine follows of operators' orders: destinations whose mail waits in the queue until they say otherwise, and those that
// are to be tried at once although their site rests. Asked for beside the claims, which wait for the first answer only. An order
// is known by its domain and its time as they are written, never by its place among others: they are committed in any order, and
// by hosts whose clocks differ. Not here: how the orders come about (orders.ts), and organizations that are suspended
// (queue/suspended.ts).
import type { World } from "../../platform/world.ts";
import { findLanesTo, findStanding } from "./operate-queries.ts";

const ASK_EVERY_MS = 2_000;

export type Held = {
  /** Whose mail waits, as it was some two seconds ago at most while the database answers. */
  domains(): Promise<string[]>;
  /** Whether this one is among them, as far as is known. */
  has(domain: string): boolean;
};

/** Looks when `domains` is asked for. `onHeld`: these wait and did not before; `onRetry`: these lanes are to be tried now. */
export function createHeld(
  world: Pick<World, "db" | "clock" | "log">,
  { onHeld, onRetry }: { onHeld(domains: ReadonlySet<string>): void; onRetry(lanes: number[]): void },
): Held {
  let known: Set<string> | null = null;
  let askAtMs = Number.NEGATIVE_INFINITY;
  let isAsking = false;
  /** When each destination was to be tried last, as far as it was followed; null at first, when nothing rests here yet. */
  let followed: Map<string, number> | null = null;

  /** One at a time: the answer that came last is the newest one. */
  async function ask(): Promise<string[]> {
    isAsking = true;
    try {
      return await askNow();
    } finally {
      isAsking = false;
    }
  }

  async function askNow(): Promise<string[]> {
    askAtMs = world.clock.monotonic() + ASK_EVERY_MS;
    const standing = await findStanding(world.db);
    const held = standing.filter(({ is_suspended }) => is_suspended).map(({ domain }) => domain);
    const added = new Set(held.filter((domain) => !known?.has(domain)));
    known = new Set(held);
    if (added.size > 0) onHeld(added);
    const retried = new Map(
      standing.flatMap(({ domain, retry_at }) => (retry_at ? [[domain, retry_at.getTime()] as const] : [])),
    );
    const before = followed ?? retried;
    const asked = [...retried].filter(([domain, at]) => before.get(domain) !== at).map(([domain]) => domain);
    if (asked.length > 0) onRetry(await lanesOf(asked));
    followed = retried;
    return held;
  }

  async function lanesOf(domains: string[]): Promise<number[]> {
    return (await findLanesTo(world.db, domains)).map(({ id }) => id);
  }

  return {
    async domains() {
      if (known === null) return ask();
      if (!isAsking && world.clock.monotonic() >= askAtMs) {
        ask().catch((err) => world.log.warn({ err }, "operators' orders could not be asked for; what was known holds"));
      }
      return [...known];
    },
    has: (domain) => known?.has(domain) ?? false,
  };
}

/** Whose mail waits now. */
export async function suspendedDestinations({ db }: Pick<World, "db">): Promise<string[]> {
  const standing = await findStanding(db);
  return standing.filter(({ is_suspended }) => is_suspended).map(({ domain }) => domain);
}
