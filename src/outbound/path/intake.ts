// From a job in memory to its path: by its sender domain's relay where that is set or needed, else by the route of the
// recipient's domain; unless it may not leave any more. Everything is asked for once and remembered for seconds to minutes,
// so that a burst costs one look-up.
import type { World } from "../../platform/world.ts";
import type { Rehomer } from "../queue/rehome.ts";
import type { Reach } from "../route/reach.ts";
import type { Relay, RelayPlanned, Relays } from "../route/relays.ts";
import type { Planned, Routes } from "../route/routes.ts";
import { simulatedPlan } from "../simulator/simulator.ts";
import type { Job, Lane } from "../types.ts";
import { deferredLocally, refusedByDns } from "./attempt.ts";
import type { Finisher } from "./finish.ts";
import type { Delivery } from "./links.ts";
import type { Recheck } from "./recheck.ts";

export type IntakeParts = {
  routes: Routes;
  relays: Relays;
  planRelay(relay: Relay): Promise<RelayPlanned>;
  reach: Pick<Reach, "isClosed">;
  rehomer: Pick<Rehomer, "push">;
  finisher: Pick<Finisher, "push">;
  recheck: Recheck;
  /** Puts the delivery on its path. */
  admit(delivery: Delivery): void;
};

export type Intake = {
  /** Takes a job that is counted in memory; its outcome, or its leaving, comes through `finisher` or `rehomer`. */
  take(lane: Lane, job: Job): void;
  /** For mail whose direct way is closed: true when it goes to its relay instead. */
  divert(delivery: Delivery): boolean;
};

const RETRY_MS = 1_000;

/** The way in; nothing here fails for what DNS or a relay does. */
export function createIntake(world: Pick<World, "log" | "config">, parts: IntakeParts): Intake {
  const { relays, routes, finisher } = parts;

  function take(lane: Lane, job: Job): void {
    if (parts.recheck.isDue(job)) {
      const looked = parts.recheck.find(job).then((end) => (end ? finisher.push(job, end) : leave(lane, job)));
      retryOnError(looked, lane, job);
    } else leave(lane, job);
  }

  function leave(lane: Lane, job: Job): void {
    const simulated = simulatedPlan(world, job);
    const relay = relays.peek(job.org_id, job.about.domain_id);
    if (simulated) parts.admit({ lane, job, plan: simulated });
    else if (relay === undefined) {
      const asked = relays.find(job.org_id, job.about.domain_id).then(() => leave(lane, job));
      retryOnError(asked, lane, job);
    } else if (relay && isNeeded(relay)) byRelay(lane, job, relay);
    else direct(lane, job);
  }

  function isNeeded(relay: Relay): boolean {
    return relay.mode === "always" || parts.reach.isClosed();
  }

  function byRelay(lane: Lane, job: Job, relay: Relay): void {
    if (lane.relay_domain_id === null) parts.rehomer.push({ lane, job });
    else
      retryOnError(
        parts.planRelay(relay).then((planned) => settle(lane, job, planned)),
        lane,
        job,
      );
  }

  function direct(lane: Lane, job: Job): void {
    const known = routes.peek(lane.domain);
    if (known) settle(lane, job, known);
    else
      retryOnError(
        routes.find(lane.domain, lane.org_id).then((route) => settle(lane, job, route)),
        lane,
        job,
      );
  }

  function settle(lane: Lane, job: Job, planned: Planned | RelayPlanned): void {
    if (planned.kind === "route") parts.admit({ lane, job, plan: planned.plan });
    else if (planned.kind === "none") finisher.push(job, refusedByDns(planned.detail, planned.reason));
    else finisher.push(job, deferredLocally(planned.detail, "4.4.3", "dns"));
  }

  /** A bug, or the database is away: the job is neither lost nor failed, it asks again. */
  function retryOnError(work: Promise<void>, lane: Lane, job: Job): void {
    work.catch((err) => {
      world.log.error({ err, domain: lane.domain }, "a route could not be found");
      setTimeout(() => take(lane, job), RETRY_MS);
    });
  }

  return {
    take,
    divert({ lane, job }) {
      const relay = relays.peek(job.org_id, job.about.domain_id);
      if (!relay || lane.relay_domain_id !== null || !isNeeded(relay)) return false;
      parts.rehomer.push({ lane, job });
      return true;
    },
  };
}
