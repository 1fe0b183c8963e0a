// Routes by domain, remembered for a few minutes: found ones for five, "could not ask" for half a minute, so that a
// broken resolver is not asked once a message.

import type { World } from "../platform/world.ts";
import { findRoute, type Route } from "./route.ts";

const FOUND_MS = 300_000;
const NONE_MS = 60_000;
const UNKNOWN_MS = 30_000;
const REMEMBERED_MAX = 50_000;

export type Routes = {
  /** The remembered route, if it is fresh. */
  peek(domain: string): Route | null;
  find(domain: string): Promise<Route>;
};

/** A cache over `findRoute`; concurrent questions for a domain share one answer. */
export function createRoutes(world: Pick<World, "resolver" | "random" | "config" | "clock">): Routes {
  const known = new Map<string, { route: Route; untilMs: number }>();
  const asking = new Map<string, Promise<Route>>();

  function peek(domain: string): Route | null {
    const entry = known.get(domain);
    return entry && entry.untilMs > world.clock.monotonic() ? entry.route : null;
  }

  async function ask(domain: string): Promise<Route> {
    const route = await findRoute(world, domain);
    const keepMs = route.kind === "route" ? FOUND_MS : route.kind === "none" ? NONE_MS : UNKNOWN_MS;
    if (known.size >= REMEMBERED_MAX) known.clear();
    known.set(domain, { route, untilMs: world.clock.monotonic() + keepMs });
    return route;
  }

  return {
    peek,
    find(domain) {
      const route = peek(domain);
      if (route) return Promise.resolve(route);
      const pending = asking.get(domain);
      if (pending) return pending;
      const asked = ask(domain).finally(() => asking.delete(domain));
      asking.set(domain, asked);
      return asked;
    },
  };
}
