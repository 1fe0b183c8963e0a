// What must not leave any more: mail that comes from the queue (scheduled for later, deferred for days) is looked at once more
// before each attempt. Who is suppressed by now does not get it; nothing leaves for a domain that was removed, and mail of one
// that was switched off waits, and so does mail that a young domain may not send yet. Mail that was handed over in memory is looked at only where it waited there for long: it was
// when it was accepted.
import { findSendingEnd, type SendingEnd } from "../../domains/domains.ts";
import { isSentByCustomer } from "../../events/events.ts";
import type { World } from "../../platform/world.ts";
import { findSuppressed, scopeOf } from "../../suppressions/suppressions.ts";
import type { Job, Outcome } from "../types.ts";
import { deferredLocally } from "./attempt.ts";
import { dueSince } from "./finish.ts";
import type { Delivery } from "./links.ts";

export type Recheck = {
  isDue(job: Job): boolean;
  /** What becomes of it when it may not leave, else null. Look-ups of the same moment share statements. */
  find(job: Job): Promise<Outcome | null>;
  /** The same for mail that waited for its turn; null at once where that was not for long. */
  findAgain(delivery: Delivery): Promise<Outcome | null> | null;
};

/** Mail that waited in memory for so long is looked at once more before its turn, as mail from the queue is. */
const STALE_MS = 60_000;
/** Mail of a domain that is switched off: the least and the longest wait until the next look, as after failed attempts. */
const LOOK_AGAIN_MIN_MS = 5 * 60_000;
const LOOK_AGAIN_MAX_MS = 6 * 3_600_000;

/** Counts mail that leaves later than it was accepted in the windows of its domain; not null: until when it waits, and why. */
export type Leaving = (job: Job) => Promise<{ at: Date; why: string; expires_at: Date | null } | null>;

/** Forwards and our own notices are in no customer's list, as when they are made. */
export function createRecheck(world: Pick<World, "db" | "clock">, leaving: Leaving = async () => null): Recheck {
  const findBlocking = findSuppressed(world);
  const findEnd = findSendingEnd(world);

  async function findReason({ org_id, email, about }: Job): Promise<string | null> {
    const { domain_id, template_id = null, tags, unsubscribe_list = null } = about;
    const mail = scopeOf({ domain_id, template_id, tags, unsubscribe_list });
    return (await findBlocking(org_id, { ...mail, emails: [email] })).get(email)?.reason ?? null;
  }

  async function waitOf(job: Job): Promise<Outcome | null> {
    const wait = await leaving(job);
    if (!wait) return null;
    if (wait.expires_at) job.expires_at = wait.expires_at;
    return { ...deferredLocally(wait.why, "4.3.0", "local"), unattempted: true, retry_at: wait.at };
  }

  async function find(job: Job): Promise<Outcome | null> {
    const [reason, end] = await Promise.all([findReason(job), findEnd(job.org_id, job.about.domain_id)]);
    if (reason !== null) return suppressedSince(reason);
    if (end) return endedBy(job, end, world.clock.now());
    const isOver = job.about.has_expiry && job.expires_at.getTime() <= world.clock.now();
    return isOver ? null : waitOf(job);
  }

  return {
    isDue: ({ mime, about }) => mime === null && isSentByCustomer(about),
    find,
    findAgain(delivery) {
      const now = world.clock.monotonic();
      if (!isSentByCustomer(delivery.job.about) || now - (delivery.since_ms ?? 0) < STALE_MS) return null;
      delivery.since_ms = now;
      return find(delivery.job);
    },
  };
}

/** A domain that was switched off may be on again before the mail's time is over. */
function endedBy(job: Job, { is_gone, reason }: SendingEnd, nowMs: number): Outcome {
  const outcome = { ...deferredLocally(reason, is_gone ? "5.3.0" : "4.3.0", "local"), unattempted: true };
  return is_gone ? { ...outcome, kind: "failed" } : { ...outcome, retry_at: lookAgainAt(job, nowMs) };
}

/** As long again as it has waited: no attempt is counted that the table of waits could go by. */
function lookAgainAt(job: Job, nowMs: number): Date {
  const waitedMs = nowMs - dueSince(job);
  return new Date(nowMs + Math.min(LOOK_AGAIN_MAX_MS, Math.max(LOOK_AGAIN_MIN_MS, waitedMs)));
}

function suppressedSince(reason: string): Outcome {
  const outcome = deferredLocally(`suppressed since it was accepted (${reason})`, "", "suppressed");
  return { ...outcome, kind: "suppressed", enhanced_code: null, bounce_type: null, unattempted: true };
}
