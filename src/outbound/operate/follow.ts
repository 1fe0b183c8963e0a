// What an engine does when organizations or destinations are suspended, and when an operator wants a destination tried: what waits
// in its memory goes back to the queue, and sites that rest are called again.
import type { World } from "../../platform/world.ts";
import type { Path } from "../path/path-types.ts";
import type { Sources } from "../pools/sources.ts";
import type { Parking } from "../queue/parking.ts";
import { createSuspended, type Suspended } from "../queue/suspended.ts";
import { createHeld, type Held } from "./held.ts";

export type Followed = {
  paths: Map<string, Path>;
  lanePaths: Map<number, Path>;
  parking: Pick<Parking, "putBack" | "resume">;
};

/** Looks beside the claims, and does with what the engine holds as it is ordered. */
export function followOrders(
  world: Pick<World, "db" | "clock" | "log">,
  engine: Followed,
): { suspended: Suspended; orders: Held } {
  return {
    suspended: createSuspended(world, (orgIds) => holdOrganizations(engine, orgIds)),
    orders: createHeld(world, {
      onHeld: (domains) => holdDestinations(engine, domains),
      onRetry: (lanes) => tryNow(engine, lanes),
    }),
  };
}

function holdOrganizations({ paths, parking }: Followed, orgIds: string[]): void {
  for (const path of paths.values()) {
    for (const orgId of orgIds) for (const { job } of path.fairness.drainOf(orgId)) parking.putBack(job);
  }
}

function holdDestinations({ paths, parking }: Followed, domains: ReadonlySet<string>): void {
  for (const { fairness } of paths.values()) {
    for (const { job } of fairness.drainTo((domain) => domains.has(domain))) parking.putBack(job);
  }
}

/** Mail that was to leave from an address that is out of use now looks for another of its pool. */
export async function refreshSources(
  sources: Pick<Sources, "refresh" | "get">,
  { paths, parking }: Pick<Followed, "paths" | "parking">,
): Promise<void> {
  await sources.refresh();
  for (const { source, fairness } of paths.values()) {
    if ((sources.get(source.id)?.held_at ?? null) === null) continue;
    for (const { job } of fairness.drain()) parking.putBack(job);
  }
}

/** A site that does not answer rests again at the next failure. */
function tryNow({ lanePaths, parking }: Followed, lanes: number[]): void {
  const paths = new Set(lanes.map((id) => lanePaths.get(id)).filter((path) => path !== undefined));
  for (const path of paths) {
    path.suspended.untilMs = 0;
    parking.resume(path);
  }
}
