// Whose work took the processor: milliseconds by organization, in two accounts. `here` is the thread that everybody shares:
// an organization that used up its part is served by the process for heavy requests (api/heavy/heavy.ts). `aside` is that process:
// who used up that part as well has to wait (429). Ordinary requests cost nothing in either; the request rate limits those. Of this
// process only. Not here: how the milliseconds are measured.
import type { Clock } from "../clock.ts";
import { type Garbage, garbageOfThread } from "../process/garbage.ts";
import type { Metrics } from "../process/metrics.ts";
import type { Took } from "../process/thread-ms.ts";

export type Where = "here" | "aside";

export type ProcessorShares = {
  /** A piece of work of the organization, which has just ended, took so long on the shared thread. */
  spendHere(orgId: string, took: Took): void;
  /** And so many milliseconds in the process for heavy requests. */
  spendAside(orgId: string, ms: number): void;
  /** Milliseconds until the organization may work there again; 0: it may now. */
  waitMs(orgId: string, where: Where): number;
  /** What the organization used there and what it may have, in milliseconds. */
  used(orgId: string, where: Where): { used_ms: number; limit_ms: number };
};

/** What one organization may use: so much at once, and so much of each second. */
const PROCESSOR_LIMITS = {
  here: { burst_ms: 1_000, per_second_ms: 250 },
  aside: { burst_ms: 15_000, per_second_ms: 750 },
} as const;
/** How much of each piece of work is free: what an ordinary request takes. */
const FREE_MS = 0.5;
/** A piece of work that holds the shared thread for longer keeps everybody waiting, and counts this often: without the pauses in it. */
const LONG_MS = 10;
const LONG_COUNTS = 20;
const ORGANIZATIONS_MAX = 10_000;

type Account = { spent_ms: number; at_ms: number };

/** The accounts of one process. */
export function createProcessorShares(
  clock: Pick<Clock, "monotonic">,
  garbage: Garbage = garbageOfThread(),
): ProcessorShares {
  const accounts = { here: new Map<string, Account>(), aside: new Map<string, Account>() };

  /** What is still owed: it flows off with time, whatever becomes of the organization. */
  function owedOf(orgId: string, where: Where): number {
    const account = accounts[where].get(orgId);
    if (!account) return 0;
    const flowedOff = ((clock.monotonic() - account.at_ms) / 1000) * PROCESSOR_LIMITS[where].per_second_ms;
    return Math.max(0, account.spent_ms - flowedOff);
  }

  function add(orgId: string, where: Where, ms: number): void {
    if (accounts[where].size >= ORGANIZATIONS_MAX) accounts[where].clear();
    accounts[where].set(orgId, { spent_ms: owedOf(orgId, where) + ms, at_ms: clock.monotonic() });
  }

  return {
    spendHere(orgId, { ms, elapsed_ms }) {
      if (ms > FREE_MS) add(orgId, "here", ms - FREE_MS);
      if (ms <= LONG_MS) return;
      const toMs = clock.monotonic();
      garbage.within({ fromMs: toMs - elapsed_ms, toMs }, (pausedMs) => {
        const worked = ms - pausedMs;
        if (worked > LONG_MS) add(orgId, "here", worked * (LONG_COUNTS - 1));
      });
    },
    spendAside(orgId, ms) {
      if (ms > FREE_MS) add(orgId, "aside", ms - FREE_MS);
    },
    waitMs(orgId, where) {
      const { burst_ms, per_second_ms } = PROCESSOR_LIMITS[where];
      const beyond = owedOf(orgId, where) - burst_ms;
      return beyond <= 0 ? 0 : (beyond / per_second_ms) * 1000;
    },
    used: (orgId, where) => ({
      used_ms: Math.round(owedOf(orgId, where)),
      limit_ms: PROCESSOR_LIMITS[where].burst_ms,
    }),
  };
}

export type ProcessorWorld = { metrics: Metrics; clock: Pick<Clock, "monotonic"> };

const known = new WeakMap<Metrics, ProcessorShares>();

/** Those of this process: the same for all who work on its requests. */
export function processorShares(world: ProcessorWorld): ProcessorShares {
  const shares = known.get(world.metrics) ?? createProcessorShares(world.clock);
  known.set(world.metrics, shares);
  return shares;
}

/** For turns (turns.ts): what their tasks take, they take of the shared thread. */
export function spentHere(world: ProcessorWorld): (orgId: string, took: Took) => void {
  return processorShares(world).spendHere;
}
