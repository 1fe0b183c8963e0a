// Routes by domain with the TLS policies that hold on them, remembered for a few minutes: found ones for five, "could not
// ask" for half a minute, so that a broken resolver is not asked once a message.

import { createFairGate } from "../../platform/fair/fair-gate.ts";
import { remember } from "../../platform/fair/remember.ts";
import type { World } from "../../platform/world.ts";
import { findRoute, type Route } from "./route.ts";
import { type StsFinder, stsFinder } from "./sts.ts";
import { type Plan, planRoute } from "./tls-policy.ts";

const FOUND_MS = 300_000;
const NONE_MS = 60_000;
const UNKNOWN_MS = 30_000;
const REMEMBERED_MAX = 50_000;
/**
 * Look-ups at once, the fetch of a policy over HTTPS included. Each has some three questions on their way, and the resolver
 * sends 256 at once for whoever names nobody: so no question waits there until its time is over, and the mail of ten thousand
 * new domains is not deferred for our own queue.
 */
const ASKING_MAX = 128;
/**
 * Beside those, for domains that had a route when they were last asked for, within a day. So mail to the domains that are written to all
 * day does not wait, whenever their routes have to be found again, behind a list of domains whose name servers are silent.
 */
const ASKING_AGAIN_MAX = 32;
const FOUND_BEFORE_MS = 86_400_000;

export type Planned = { kind: "route"; plan: Plan } | Exclude<Route, { kind: "route" }>;

export type Routes = {
  /** The remembered route, if it is fresh. */
  peek(domain: string): Planned | null;
  /** `orgId`: for whom, so that one organization's many domains do not hold up another's. */
  find(domain: string, orgId: string): Promise<Planned>;
};

type RoutesWorld = Pick<World, "resolver" | "random" | "config" | "clock" | "db" | "fetch" | "log">;

/** A cache over `findRoute` and the look-ups of policies; concurrent questions for a domain share one answer. */
export function createRoutes(world: RoutesWorld): Routes {
  const known = remember<{ route: Planned; untilWallMs: number }>(world.clock, {
    for_ms: FOUND_MS,
    names_max: REMEMBERED_MAX,
  });
  /** Begun, by domain: whoever wants the answer waits for it. */
  const asking = new Map<string, Promise<Planned>>();
  /** For a place, by organization and domain: others do not wait in its queue. */
  const waiting = new Map<string, Promise<Planned>>();
  const findSts = stsFinder(world);
  const foundBefore = remember<true>(world.clock, { for_ms: FOUND_BEFORE_MS, names_max: REMEMBERED_MAX });
  const gates = {
    again: createFairGate(ASKING_AGAIN_MAX),
    first: createFairGate(ASKING_MAX),
  };

  function peek(domain: string): Planned | null {
    const entry = known.get(domain);
    // By both clocks: where the one on the wall is moved on, an absent domain must not seem absent for hours by one look-up.
    if (!entry || entry.untilWallMs <= world.clock.now()) return null;
    const isExpired = entry.route.kind === "route" && entry.route.plan.fresh_until_ms <= world.clock.now();
    return isExpired ? null : entry.route;
  }

  async function ask(domain: string): Promise<Planned> {
    const route = await findPlanned(world, findSts, domain);
    const keptMs = keepMs(route);
    known.set(domain, { route, untilWallMs: world.clock.now() + keptMs }, keptMs);
    if (route.kind === "route") foundBefore.set(domain, true);
    else foundBefore.drop(domain);
    return route;
  }

  function join(domain: string): Promise<Planned> {
    const begun = asking.get(domain);
    if (begun) return begun;
    const asked = ask(domain).finally(() => asking.delete(domain));
    asking.set(domain, asked);
    return asked;
  }

  return {
    peek,
    find(domain, orgId) {
      const route = peek(domain);
      if (route) return Promise.resolve(route);
      const key = `${orgId} ${domain}`;
      const pending = asking.get(domain) ?? waiting.get(key);
      if (pending) return pending;
      const gate = foundBefore.get(domain) ? gates.again : gates.first;
      const answer = gate(orgId, async () => peek(domain) ?? join(domain)).finally(() => waiting.delete(key));
      waiting.set(key, answer);
      return answer;
    },
  };
}

function keepMs(route: Planned): number {
  if (route.kind === "none") return NONE_MS;
  if (route.kind === "unknown") return UNKNOWN_MS;
  return route.plan.hops.some(({ terms }) => terms.kind === "closed") ? UNKNOWN_MS : FOUND_MS;
}

async function findPlanned(world: RoutesWorld, findSts: StsFinder, domain: string): Promise<Planned> {
  const [route, sts] = await Promise.all([findRoute(world, domain), findSts(domain)]);
  return route.kind === "route" ? { kind: "route", plan: await planRoute(world, domain, route, sts) } : route;
}
