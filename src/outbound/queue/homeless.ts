// Mail that nobody would ever look at: counted so that operators see it, and given a lane again. A delivery is put only into
// a lane that is there; one whose lane went in the very moment of that, or by hand, is found here within a minute.
import { planFinder } from "../../accounts/accounts.ts";
import { domainOf } from "../../mail/address.ts";
import type { World } from "../../platform/world.ts";
import { exitChooser } from "../pools/exits.ts";
import * as queries from "./lane-queries.ts";
import { laneFinder } from "./lanes.ts";

type HomelessWorld = Pick<World, "db" | "clock" | "log" | "metrics">;

const ROWS_AT_ONCE = 1_000;
const DAY_MS = 86_400_000;
/** Mail may be scheduled for 30 days, and its sender's own time ends after 33. */
const AHEAD_MAX_MS = 34 * DAY_MS;
/** Engines look through their lanes every 30 s. */
const OVERLOOKED_MS = 120_000;

/** A look that gives free mail without a lane one by its recipient's domain, and tells how much mail nobody will look at. */
export function laneWatch(world: HomelessWorld): () => Promise<void> {
  const reported = "Deliveries that nobody will look at; anything but 0 is a fault";
  const gauge = world.metrics.gauge("postern_deliveries_unwatched", reported);
  return async () => {
    const given = await giveLanes(world);
    if (given > 0)
      world.log.error({ deliveries: given }, "mail waited in lanes that are not there; it was given others");
    const nowMs = world.clock.now();
    const at = { due_before: new Date(nowMs - OVERLOOKED_MS), ahead: new Date(nowMs + AHEAD_MAX_MS) };
    const [row] = await queries.countUnwatched(world.db, { now: new Date(nowMs), ...at });
    gauge.set(row?.deliveries ?? 0);
  };
}

/** Gives free mail without a lane one, up to a thousand deliveries; answers how many there were. */
export async function giveLanes(world: Pick<World, "db" | "clock" | "log">): Promise<number> {
  const homeless = await queries.findHomeless(world.db, ROWS_AT_ONCE);
  if (homeless.length === 0) return 0;
  const findLane = laneFinder(world);
  const chooseExit = exitChooser(world);
  const findPlan = planFinder(world);
  const rows = await Promise.all(
    homeless.map(async ({ class: mailClass, domain_id, ip_pool, email, ...key }) => {
      const { org_id, message_id } = key;
      const plan = (await findPlan(org_id)) ?? "free";
      const exit = await chooseExit({ org_id, plan }, { domain_id, message_id, pool: null, domain_pool: ip_pool });
      const { source_id, relay_domain_id } = exit;
      const lane = await findLane({ org_id, source_id, relay_domain_id, domain: domainOf(email), class: mailClass });
      return { ...key, new_lane_id: lane.id };
    }),
  );
  await queries.rehomeFree(world.db, rows);
  return homeless.length;
}
