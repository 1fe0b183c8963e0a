// What the clock role does for domains: checks again, on the schedule of state.ts, what their owners have published, and
// ends retired DKIM keys. Due rows are claimed with a lease: any number of processes may run it. Not here: the check itself.
import { startRounds } from "../platform/process/rounds.ts";
import type { World } from "../platform/world.ts";
import { type CheckWorld, checkDomain, type Target } from "./checking.ts";
import * as queries from "./queries.ts";
import type { DomainPorts } from "./types.ts";

const POLL_MS = 1_000;
const BATCH = 64;
const PARALLEL = 16;
/** Longer than any batch may take (64 checks of 18 s, 16 at a time); after a crash the domains are due again then. */
const LEASE_MS = 10 * 60_000;

type LoopWorld = CheckWorld & Pick<World, "log" | "metrics">;

/** Runs due checks until stopped; any number of processes may. `stop` waits for the checks that are under way. */
export function startDomainChecks(world: LoopWorld, ports: DomainPorts): { stop(): Promise<void> } {
  return startRounds(world, {
    name: "domain checks",
    every_ms: POLL_MS,
    async round(signal, beat) {
      while (!signal.aborted && (await runDueChecks(world, ports, signal)) > 0) beat();
    },
  });
}

/** Takes one batch of due domains and checks them; returns how many. Ends retired DKIM keys first. */
export async function runDueChecks(world: LoopWorld, ports: DomainPorts, signal?: AbortSignal): Promise<number> {
  const now = world.clock.now();
  await ports.dkim.endRetired(new Date(now));
  const due = { at: new Date(now), lease_until: new Date(now + LEASE_MS), limit: BATCH };
  const targets = await queries.claimDue(world.db, due);
  const counted = world.metrics.counter("postern_domain_checks_total", "Scheduled domain checks", ["result"]);
  const waiting = [...targets];
  async function worker(): Promise<void> {
    for (let target = waiting.pop(); target && !signal?.aborted; target = waiting.pop()) {
      counted.inc({ result: await checkOne(world, ports, target) });
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  return targets.length;
}

/** One failing domain must not hold up the others; it is due again when its lease is over. */
async function checkOne(world: LoopWorld, ports: DomainPorts, target: Target): Promise<string> {
  try {
    const outcome = await checkDomain(world, ports, target, { fresh: false });
    return outcome?.row.status ?? "gone";
  } catch (err) {
    world.log.error({ err, org_id: target.org_id, domain_id: target.id }, "a domain check failed");
    return "error";
  }
}
