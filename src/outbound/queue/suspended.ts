// Whose mail waits in the queue until further notice: organizations that are suspended or not approved
// yet (received mail that they forward, answers through masks). Asked for beside the claims, which
// wait for the first answer only: those of the mail that is due now must not take a round trip longer for it. What a process
// has in memory goes back to the queue. And time for mail that waits by our doing: it is not to run out before the mail may
// leave again.
import { waitingOrganizations } from "../../accounts/accounts.ts";
import type { World } from "../../platform/world.ts";
import { suspendedDestinations } from "../operate/held.ts";
import { extendWaiting } from "../queries.ts";

const ASK_EVERY_MS = 5_000;
/** Several attempts, if it comes to that. */
const TIME_LEFT_MS = 24 * 3_600_000;
const ROWS_AT_ONCE = 5_000;

export type Suspended = {
  /** Their ids, as they were some five seconds ago at most while the database answers. */
  ids(): Promise<string[]>;
  /** Whether this one is among them, as far as is known. */
  has(orgId: string): boolean;
};

/** Looks when `ids` is asked for; `onNew` hears of those that were not suspended before. */
export function createSuspended(
  world: Pick<World, "db" | "clock" | "log">,
  onNew: (orgIds: string[]) => void = () => undefined,
): Suspended {
  let known: Set<string> | null = null;
  let askAtMs = Number.NEGATIVE_INFINITY;
  let isAsking = false;

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
    const ids = await waitingOrganizations(world);
    const added = ids.filter((id) => !known?.has(id));
    known = new Set(ids);
    if (added.length > 0) onNew(added);
    return ids;
  }

  return {
    async ids() {
      if (known === null) return ask();
      if (!isAsking && world.clock.monotonic() >= askAtMs) {
        ask().catch((err) => world.log.warn({ err }, "who is suspended could not be asked; what was known holds"));
      }
      return [...known];
    },
    has: (orgId) => known?.has(orgId) ?? false,
  };
}

/** Mail of suspended organizations and destinations has a day left from now, at least; its sender's own `expires_at` holds. */
export async function keepSuspended(world: Pick<World, "db" | "clock">): Promise<void> {
  const suspended = await waitingOrganizations(world);
  if (suspended.length > 0) await giveTime(world, suspended);
  await giveTimeTo(world, await suspendedDestinations(world));
}

/** All mail that waits (null) or that of some organizations has a day left from now, at least. */
export function giveTime(world: Pick<World, "db" | "clock">, orgs: string[] | null): Promise<void> {
  return extend(world, { orgs, domains: null });
}

/** The same for mail to destinations that an operator suspended. */
export async function giveTimeTo(world: Pick<World, "db" | "clock">, domains: string[]): Promise<void> {
  if (domains.length > 0) await extend(world, { orgs: null, domains });
}

type Waiting = { orgs: string[] | null; domains: string[] | null };

async function extend({ db, clock }: Pick<World, "db" | "clock">, waiting: Waiting): Promise<void> {
  const asked = { until: new Date(clock.now() + TIME_LEFT_MS), limit: ROWS_AT_ONCE };
  for (const held of [false, true]) while ((await extendWaiting(db, waiting, { ...asked, held })) > 0);
}
