// Whose mail waits in the queue until further notice: organizations that are suspended. Asked for beside the claims, which
// wait for the first answer only: those of the mail that is due now must not take a round trip longer for it.
import { suspendedOrganizations } from "../accounts/accounts.ts";
import type { World } from "../platform/world.ts";

const ASK_EVERY_MS = 5_000;

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
