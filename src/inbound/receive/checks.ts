// Looks at a whole message in session, before it is taken: what goes in circles is refused while the one who sends it can
// still be answered (RFC 5321 §6.3), and what is nearly all head. Spam and policy are further checks, passed in from app.ts.
import {
  headersMax,
  headerValues,
  headOctetsMax,
  isAllBody,
  isHeadWithin,
  splitMessage,
} from "../../mail/mime/parse-head.ts";
import type { World } from "../../platform/world.ts";
import { RECEIVED_FIELDS_MAX } from "../limits.ts";
import { isLoop } from "../process/forward.ts";
import type { AcceptCheck, Refused, Route } from "../types.ts";

const LOOP: Refused = { kind: "refuse", code: 554, enhanced: "5.4.6", text: "the message goes in circles" };

const LARGE_HEAD: Refused = {
  kind: "refuse",
  code: 552,
  enhanced: "5.3.4",
  text: `the header of the message is larger than ${headOctetsMax} bytes`,
};

const MANY_FIELDS: Refused = {
  kind: "refuse",
  code: 552,
  enhanced: "5.3.4",
  text: `the header of the message has more than ${headersMax} fields`,
};

/**
 * Before anything else looks at a message: its head is read field by field, also in this process, and 35 MiB of fields
 * would hold it up for half a minute. Exchange has the same limit. Nothing beyond it, or beyond so many fields, could be
 * shown or verified. A message that does not begin with fields at all is all body.
 */
export const refuseLargeHeads: AcceptCheck = async ({ bytes }) => {
  if (isAllBody(bytes)) return null;
  if (!isHeadWithin(bytes)) return LARGE_HEAD;
  return splitMessage(bytes).defects.includes("head_too_large") ? MANY_FIELDS : null;
};

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
