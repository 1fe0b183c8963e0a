// Whose mail waits in the queue until further notice: organizations that are suspended. Known for some seconds, so that
// claiming asks the database no more often than that.
import { suspendedOrganizations } from "../accounts/accounts.ts";
import type { World } from "../platform/world.ts";

const KNOWN_FOR_MS = 5_000;

/** A function that answers their ids, as they were at most five seconds ago. */
export function suspendedFinder(world: Pick<World, "db" | "clock">): () => Promise<string[]> {
  let known: string[] = [];
  let untilMs = Number.NEGATIVE_INFINITY;
  return async () => {
    const now = world.clock.monotonic();
    if (now < untilMs) return known;
    known = await suspendedOrganizations(world);
    untilMs = now + KNOWN_FOR_MS;
    return known;
  };
}
