// What an engine follows of operators' orders: destinations whose mail waits in the queue until they say otherwise, and those that
// are to be tried at once although their site rests. Asked for beside the claims, which wait for the first answer only. Not here:
// how the orders come about (orders.ts), and organizations that are suspended (queue/suspended.ts).
import type { World } from "../../platform/world.ts";
import { findLanesTo, findStanding } from "./operate-queries.ts";

const ASK_EVERY_MS = 2_000;

export type Held = {
  /** Whose mail waits, as it was some two seconds ago at most while the database answers. */
  domains(): Promise<string[]>;
  /** Whether this one is among them, as far as is known. */
  has(domain: string): boolean;
};

/** Looks when `domains` is asked for. `onHeld`: more wait than before; `onRetry`: these lanes are to be tried now. */
export function createHeld(
  world: Pick<World, "db" | "clock" | "log">,
  { onHeld, onRetry }: { onHeld(): void; onRetry(lanes: number[]): void },
): Held {
  let known: Set<string> | null = null;
  let askAtMs = Number.NEGATIVE_INFINITY;
  let followed = new Date(world.clock.now());

  async function ask(): Promise<string[]> {
    askAtMs = world.clock.monotonic() + ASK_EVERY_MS;
    const standing = await findStanding(world.db, followed);
    const held = standing.filter(({ is_suspended }) => is_suspended).map(({ domain }) => domain);
    const isMore = held.some((domain) => !known?.has(domain));
    known = new Set(held);
    if (isMore) onHeld();
    const asked = standing.filter(({ retry_at }) => retry_at !== null && retry_at > followed);
    if (asked.length > 0) onRetry(await lanesOf(asked.map(({ domain }) => domain)));
    followed = asked.reduce((latest, { retry_at }) => (retry_at && retry_at > latest ? retry_at : latest), followed);
    return held;
  }

  async function lanesOf(domains: string[]): Promise<number[]> {
    return (await findLanesTo(world.db, domains)).map(({ id }) => id);
  }

  return {
    async domains() {
      if (known === null) return ask();
      if (world.clock.monotonic() >= askAtMs) {
        ask().catch((err) => world.log.warn({ err }, "operators' orders could not be asked for; what was known holds"));
      }
      return [...known];
    },
    has: (domain) => known?.has(domain) ?? false,
  };
}

/** Whose mail waits now. */
export async function suspendedDestinations({ db, clock }: Pick<World, "db" | "clock">): Promise<string[]> {
  const standing = await findStanding(db, new Date(clock.now()));
  return standing.filter(({ is_suspended }) => is_suspended).map(({ domain }) => domain);
}
