// Whose mail waits in the queue until further notice: organizations that are suspended. Asked for beside the claims, which
// wait for the first answer only: those of the mail that is due now must not take a round trip longer for it. And time for
// mail that waits by our doing: it is not to run out before the mail may leave again.
import { suspendedOrganizations } from "../accounts/accounts.ts";
import type { World } from "../platform/world.ts";
import { extendWaiting } from "./queries.ts";

const ASK_EVERY_MS = 5_000;
/** Several attempts, if it comes to that. */
const TIME_LEFT_MS = 24 * 3_600_000;
const ROWS_AT_ONCE = 5_000;

/** A function that answers their ids, as they were some five seconds ago at most while the database answers. */
export function suspendedFinder(world: Pick<World, "db" | "clock" | "log">): () => Promise<string[]> {
  let known: string[] | null = null;
  let askAtMs = Number.NEGATIVE_INFINITY;

  async function ask(): Promise<string[]> {
    askAtMs = world.clock.monotonic() + ASK_EVERY_MS;
    known = await suspendedOrganizations(world);
    return known;
  }

  return async () => {
    if (known === null) return ask();
    if (world.clock.monotonic() >= askAtMs) {
      ask().catch((err) => world.log.warn({ err }, "who is suspended could not be asked; what was known holds"));
    }
    return known;
  };
}

/** Mail of suspended organizations has a day left from now, at least; its sender's own `expires_at` holds. */
export async function keepSuspended(world: Pick<World, "db" | "clock">): Promise<void> {
  const suspended = await suspendedOrganizations(world);
  if (suspended.length > 0) await giveTime(world, suspended);
}

/** All mail that waits (null) or that of some organizations has a day left from now, at least. */
export async function giveTime({ db, clock }: Pick<World, "db" | "clock">, orgs: string[] | null): Promise<void> {
  const asked = { until: new Date(clock.now() + TIME_LEFT_MS), limit: ROWS_AT_ONCE };
  for (const held of [false, true]) while ((await extendWaiting(db, orgs, { ...asked, held })) > 0);
}
