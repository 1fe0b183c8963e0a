// Requests per second of an organization, whichever process they reach: one bucket in the database with one second's
// worth, refilled continuously. A process draws a twentieth of a second's worth at a time, or as much as waits, so that a busy
// organization costs some twenty small statements a second and not one a request. Not here: what is answered to those beyond it.

import type { Account } from "../http/http.ts";
import { coalesce } from "../platform/fair/coalesce.ts";
import type { World } from "../platform/world.ts";
import { PLANS } from "./plans.ts";
import * as queries from "./queries.ts";

const DRAWS_PER_S = 20;
/** What was drawn and not used is gone after this long; kept longer it would add to later bursts. */
const KEEP_MS = 1_000;
/** With so many left the next draw begins, so that a busy organization's requests wait for none. */
const EARLY_SHARE = 0.25;
const ORGANIZATIONS_MAX = 100_000;

export type RateTaken = {
  allowed: boolean;
  /** The plan's requests per second. */
  limit: number;
  /** About how many more would be allowed at once. */
  remaining: number;
};

/** What this process holds of an organization's bucket. */
type Share = {
  held: number;
  /** What was left in the shared bucket at the last draw. */
  left: number;
  drawn_at_ms: number;
  /** Found empty: no use asking before this. */
  empty_until_ms: number;
  drawing: Promise<void> | null;
  /** Requests that wait for the draw. */
  waiting: number;
};

/** Takes one request of the account's organization; asks the database only when this process holds none. */
export function requestRates(world: Pick<World, "db" | "clock">): (account: Account) => Promise<RateTaken> {
  const shares = new Map<string, Share>();
  const draw = drawer(world);
  return async (account) => {
    const limit = requestsPerSecond(account);
    if (limit < 1) return { allowed: false, limit, remaining: 0 };
    const share = shares.get(account.org_id) ?? newShare();
    if (shares.size >= ORGANIZATIONS_MAX) shares.clear();
    shares.set(account.org_id, share);
    const allowed = await takeOne(world, share, {
      early: Math.floor(EARLY_SHARE * wantedOf(limit)),
      draw: () => draw(account.org_id, { limit, wanted: () => Math.max(wantedOf(limit), share.waiting) }),
    });
    const flowedIn = ((world.clock.monotonic() - share.drawn_at_ms) / 1000) * limit;
    const remaining = allowed ? Math.floor(Math.min(limit - 1, share.held + share.left + flowedIn)) : 0;
    return { allowed, limit, remaining };
  };
}

/** Requests per second that the account's organization may make. */
function requestsPerSecond(account: Account): number {
  const own = (account as Account & { requests_per_second?: number }).requests_per_second;
  return own ?? PLANS[account.plan].requests_per_second;
}

function newShare(): Share {
  return { held: 0, left: 0, drawn_at_ms: 0, empty_until_ms: 0, drawing: null, waiting: 0 };
}

type Drawn = { granted: number; left: number; wait_ms: number };

type Source = { draw(): Promise<Drawn | undefined>; early: number };

/** Those who find nothing wait for the draw that is under way, and draw again when others took all of it. */
async function takeOne(world: Pick<World, "clock">, share: Share, source: Source): Promise<boolean> {
  for (;;) {
    const now = world.clock.monotonic();
    if (now - share.drawn_at_ms > KEEP_MS) share.held = 0;
    if (share.held >= 1) {
      share.held -= 1;
      // If it fails, whoever finds nothing draws again, and gets the error.
      if (share.held < source.early && now >= share.empty_until_ms) begin(world, share, source).catch(() => undefined);
      return true;
    }
    if (now < share.empty_until_ms) return false;
    share.waiting += 1;
    await begin(world, share, source).finally(() => {
      share.waiting -= 1;
    });
  }
}

function begin(world: Pick<World, "clock">, share: Share, { draw }: Source): Promise<void> {
  share.drawing ??= refill(world, share, draw).finally(() => {
    share.drawing = null;
  });
  return share.drawing;
}

async function refill(
  world: Pick<World, "clock">,
  share: Share,
  draw: () => Promise<Drawn | undefined>,
): Promise<void> {
  const drawn = (await draw()) as Drawn;
  const now = world.clock.monotonic();
  share.held += drawn.granted;
  share.left = drawn.left;
  share.drawn_at_ms = now;
  if (drawn.granted === 0) share.empty_until_ms = now + drawn.wait_ms;
}

function wantedOf(limit: number): number {
  return Math.max(1, Math.floor(limit / DRAWS_PER_S));
}

/** `wanted` is asked when the statement is made: requests of the same moment have come together then. */
type Asked = { limit: number; wanted(): number };

/** Draws of the same moment share a statement. */
function drawer(world: Pick<World, "db">): (orgId: string, asked: Asked) => Promise<Drawn | undefined> {
  const waiting = new Map<string, Asked>();
  const load = coalesce<string, Drawn>({
    keys_max: 500,
    lanes: 1,
    load: async (orgIds) => {
      // Locks are taken in one order in every process.
      const draws = orgIds.toSorted().map((org_id) => {
        const { limit, wanted } = waiting.get(org_id) as Asked;
        waiting.delete(org_id);
        return { org_id, limit, wanted: Math.min(limit, wanted()) };
      });
      const rows = await queries.drawRequests(world.db, draws);
      return new Map(rows.map((row) => [row.org_id, row]));
    },
  });
  return (orgId, asked) => {
    waiting.set(orgId, asked);
    return load(orgId);
  };
}
