// A path is one source to one site: its speed, its troubles, and whose mail waits for it. All state is plain memory, because a slot
// of a source belongs to one process. Its workers (worker.ts) send the mail.
import { isIP } from "node:net";
import type { World } from "../../platform/world.ts";
import type { Plan, PlannedHop } from "../route/tls-policy.ts";
import type { Job, Outcome } from "../types.ts";
import { deferredLocally } from "./attempt.ts";
import { createFairness } from "./fairness.ts";
import type { Delivery, Source } from "./links.ts";
import type { Path } from "./path-types.ts";
import { createRefusals } from "./refusals.ts";

const START_CONNECTIONS = 5;
/** Until the site has proven to be there: a dead one is not crowded, a good one answers before the third is missed. */
export const UNPROVEN_CONNECTIONS = 2;
export const BLOCKED_MIN = 15;

/** A path without mail yet. */
export function createPath(key: string, source: Source, { site, via }: Pick<Plan, "site" | "via">): Path {
  return {
    key,
    source,
    site,
    isRelay: via !== undefined,
    fairness: createFairness(),
    limit: Math.min(START_CONNECTIONS, site.connections_max),
    workers: 0,
    dialling: 0,
    proven: false,
    idle: [],
    failures: 0,
    blocks: 0,
    firstFailureAtMs: 0,
    notBeforeMs: 0,
    aloneUntilMs: 0,
    slowed: new Map(),
    suspended: { untilMs: 0, reason: "" },
    suspensions: 0,
    timer: null,
    usedAtMs: 0,
    refusals: createRefusals(),
  };
}

/** Until when nothing may be begun on it has not come yet; a time further ahead than any is of a clock that was set back. */
export function isSuspended({ clock }: Pick<World, "clock">, { suspended }: Path): boolean {
  const leftMs = suspended.untilMs - clock.now();
  return leftMs > 0 && leftMs <= BLOCKED_MIN * 60_000;
}

/** Nothing is begun on it for so long. */
export function rest({ clock }: Pick<World, "clock">, path: Path, ms: number): void {
  path.notBeforeMs = Math.max(path.notBeforeMs, clock.monotonic() + ms);
}

/** While a site is failing, one worker probes; the others would only fail beside it. */
export function workersMax(path: Path): number {
  if (path.failures > 0) return 1;
  return Math.max(1, Math.min(Math.floor(path.limit), path.proven ? path.site.connections_max : UNPROVEN_CONNECTIONS));
}

/** Behind its end as well, once, unless its sender set that end: machines were suspended, lanes were late. */
export function mayBeTried({ expires_at, about }: Job, nowMs: number): boolean {
  return expires_at.getTime() > nowMs || !about.has_expiry;
}

/** A source with an address of its own reaches addresses of that kind only. */
export function reachable({ source: { ip } }: Path, { plan }: Delivery): PlannedHop[] {
  return plan.hops.filter(({ address }) => ip === null || isIP(ip) === isIP(address));
}

/** Why mail cannot leave that no address is left for. */
export function noAddress({ source }: Path, { plan }: Delivery): Outcome {
  const kind = source.ip && isIP(source.ip) === 6 ? "IPv6" : "IPv4";
  const message = `no mail server of ${plan.domain} has an ${kind} address, and this mail leaves from ${source.ip}`;
  return deferredLocally(message, "4.4.1", "connection");
}
