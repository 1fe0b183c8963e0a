// What paths ask of the engine (path/effects.ts), and who does it: the one place where a path's decisions leave the path.
import type { World } from "../platform/world.ts";
import type { Effect, Elsewhere, End } from "./path/effects.ts";
import type { Finisher } from "./path/finish.ts";
import type { Intake } from "./path/intake.ts";
import type { OtherSource } from "./path/other-source.ts";
import type { Path } from "./path/path-types.ts";
import type { Usage } from "./pools/usage.ts";
import type { Parking } from "./queue/parking.ts";
import type { Reach } from "./route/reach.ts";

/** Those who do it. */
export type Hands = {
  finisher: Pick<Finisher, "push">;
  parking: Pick<Parking, "putBack" | "suspend" | "park" | "resume">;
  intake: Pick<Intake, "divert">;
  otherSource: Pick<OtherSource, "note">;
  usage: Pick<Usage, "count">;
  reach: Pick<Reach, "connected" | "unreachable">;
};

/** Carries out what a path answered; all of it is done, or noted to be done, when it returns. */
export function carryOut(world: Pick<World, "log">, hands: Hands, path: Path, effect: Effect): void {
  const { parking, intake, otherSource, reach } = hands;
  switch (effect.kind) {
    case "end":
      end(hands, path, effect);
      break;
    case "elsewhere":
      end(hands, path, otherSource.note(effect.job, path.source) ? tryAgain(effect) : effect);
      break;
    case "divert":
      if (!intake.divert(effect.delivery)) carryOut(world, hands, path, effect.otherwise);
      break;
    case "put_back":
      parking.putBack(effect.job);
      break;
    case "suspend":
      world.log.warn({ path: path.key, minutes: effect.minutes }, "a destination is suspended");
      parking.suspend(path);
      break;
    case "park":
      parking.park(path);
      break;
    case "resume":
      parking.resume(path);
      break;
    case "connected":
      reach.connected(effect.hop);
      break;
    case "unreachable":
      reach.unreachable(path.site.name, effect.hop);
      break;
    default:
      effect satisfies never;
  }
}

function end({ finisher, usage }: Hands, path: Path, { job, outcome, counts }: End | Elsewhere): void {
  finisher.push(job, outcome);
  if (counts) usage.count(path.source, outcome);
}

function tryAgain(effect: Elsewhere): Elsewhere {
  return { ...effect, outcome: { ...effect.outcome, kind: "deferred", retry_at_once: true } };
}
