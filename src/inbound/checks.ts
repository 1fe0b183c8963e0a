// Looks at a whole message in session, before it is taken: what goes in circles is refused while the one who sends it can
// still be told (RFC 5321 §6.3). Spam and policy are further checks, passed in from app.ts.
import { headerValues, splitMessage } from "../mail/mime/parse-head.ts";
import type { World } from "../platform/world.ts";
import { isLoop } from "./forward.ts";
import { RECEIVED_FIELDS_MAX } from "./limits.ts";
import type { AcceptCheck, Refused, Route } from "./types.ts";

const LOOP: Refused = { kind: "refuse", code: 554, enhanced: "5.4.6", text: "the message goes in circles" };

/** Too many hops, or every recipient is a forward that this message came from. */
export function refuseLoops(world: Pick<World, "seal">): AcceptCheck {
  return async ({ bytes, recipients }) => {
    if (headerValues(splitMessage(bytes).headers, "received").length > RECEIVED_FIELDS_MAX) return LOOP;
    const circles = recipients.every(({ route }) => isForward(route) && isLoop(world, bytes, route));
    return circles ? LOOP : null;
  };
}

function isForward(route: Route): boolean {
  return route.kind === "alias" && route.action === "forward";
}
