// Who must not get a mail any more: what comes from the queue (scheduled for later, deferred for days) is looked up among the
// suppressions once more before each attempt, as it was when it was accepted. Mail that was handed over in memory then is not.
import { isSentByCustomer } from "../events/events.ts";
import type { World } from "../platform/world.ts";
import { findSuppressed, scopeOf } from "../suppressions/suppressions.ts";
import { deferredLocally } from "./attempt.ts";
import type { Job, Outcome } from "./types.ts";

export type SecondLook = {
  isDue(job: Job): boolean;
  /** Its end when the recipient is suppressed by now, else null. Look-ups of the same moment share statements. */
  find(job: Job): Promise<Outcome | null>;
};

/** Forwards and our own notices are in no customer's list, as when they are made. */
export function createSecondLook(world: Pick<World, "db" | "clock">): SecondLook {
  const findBlocking = findSuppressed(world);
  return {
    isDue: ({ mime, about }) => mime === null && isSentByCustomer(about),
    async find({ org_id, email, about }) {
      const { domain_id, template_id = null, tags, unsubscribe_list = null } = about;
      const mail = scopeOf({ domain_id, template_id, tags, unsubscribe_list });
      const blocking = (await findBlocking(org_id, { ...mail, emails: [email] })).get(email);
      return blocking ? suppressedSince(blocking.reason) : null;
    },
  };
}

function suppressedSince(reason: string): Outcome {
  const outcome = deferredLocally(`suppressed since it was accepted (${reason})`, "", "suppressed");
  return { ...outcome, kind: "suppressed", enhanced_code: null, bounce_type: null, unattempted: true };
}
