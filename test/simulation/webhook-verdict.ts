// What must hold at the end of every seed of webhooks: every event sent at least once or given up after its seven attempts,
// each attempt at its time, and twice only where something went wrong.
import type { Receiver, Request, WebhookPlay } from "./webhook-play.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** The contract's schedule, written down once more: from the first attempt, in milliseconds. */
const SCHEDULE_MS = [0, 1, 6, 36, 156, 636, 2_076].map((minutes) => minutes * MINUTE_MS);
const ATTEMPTS = SCHEDULE_MS.length;
/** Jitter of a second, a poll, and a few slow answers of the database in a row. */
const LATE_MAX_MS = 8_000;
/** An attempt takes at most this long, and the next is counted from its end. */
const ATTEMPT_MS_MAX = 16_000;

/** What is wrong; nothing when all is well. */
export function judgeWebhooks(play: WebhookPlay): string[] {
  const problems = play.events.flatMap(({ id, org_id }) =>
    play.receivers.filter((one) => one.org_id === org_id).flatMap((one) => judgeDelivery(play, id, one)),
  );
  for (const { id, claim_id, held } of play.rows.writes) {
    if (claim_id !== held) problems.push(`an outcome of ${id} was written without its claim`);
  }
  const ids = play.rows.log.map(({ id }) => id);
  if (new Set(ids).size !== ids.length) problems.push("a delivery is twice in the log");
  return problems;
}

function judgeDelivery(play: WebhookPlay, eventId: string, receiver: Receiver): string[] {
  const requests = play.requests.filter(
    ({ event_id, webhook_id }) => event_id === eventId && webhook_id === receiver.id,
  );
  const problems: string[] = [];
  const say = (text: string): void => void problems.push(`${eventId} to ${receiver.id}: ${text}`);
  const isHeard = requests.some(({ status }) => status !== null && status < 300);
  const isGone = receiver.answers === "gone";
  if (requests.length === 0 && !isGone) return [`${eventId} to ${receiver.id}: no attempt was made`];
  const last = Math.max(0, ...requests.map(({ attempt }) => attempt));
  if (last > ATTEMPTS) say(`attempt ${last}`);
  const isWell = receiver.answers === "well" || receiver.answers === "slowly";
  const isBack = receiver.down_until_ms < (play.events[0]?.at_ms ?? 0) + 30 * HOUR_MS;
  if (isWell && isBack && !isHeard) say(`not received after ${requests.length} attempts`);
  if (!isHeard && !isGone && last < ATTEMPTS) say(`given up after ${last} attempts`);
  problems.push(...judgeTimes(requests, play.kind).map((text) => `${eventId} to ${receiver.id}: ${text}`));
  return problems;
}

function judgeTimes(requests: Request[], kind: WebhookPlay["kind"]): string[] {
  const problems: string[] = [];
  const [first] = requests;
  for (const [n, request] of requests.entries()) {
    const before = requests[n - 1];
    if (!before || !first) continue;
    const isAgain = request.attempt === before.attempt;
    if (!isAgain && request.attempt !== before.attempt + 1)
      problems.push(`attempt ${request.attempt} after ${before.attempt}`);
    if (isAgain && kind === "calm") problems.push(`attempt ${request.attempt} was made twice`);
    if (!isAgain) problems.push(...judgeWait(before, request, kind));
    if (before.status !== null && before.status < 300 && kind === "calm")
      problems.push("an attempt after it was received");
    const sinceMs = request.at_ms - first.at_ms;
    const dueMs = SCHEDULE_MS[request.attempt - 1] ?? 0;
    const isPunctual = sinceMs <= dueMs + n * (ATTEMPT_MS_MAX + LATE_MAX_MS);
    if (kind === "calm" && !isPunctual) problems.push(`attempt ${request.attempt} is ${sinceMs - dueMs} ms late`);
  }
  return problems;
}

/** From the end of one attempt to the beginning of the next: never less than the schedule says. */
function judgeWait(before: Request, request: Request, kind: WebhookPlay["kind"]): string[] {
  const waitMs = SCHEDULE_MS[request.attempt - 1]! - SCHEDULE_MS[before.attempt - 1]!;
  const waitedMs = request.at_ms - (before.ended_ms ?? before.at_ms);
  if (waitedMs < waitMs - 250) return [`attempt ${request.attempt} after ${waitedMs} ms, not ${waitMs}`];
  if (kind === "calm" && waitedMs > waitMs + LATE_MAX_MS)
    return [`attempt ${request.attempt} ${waitedMs - waitMs} ms late`];
  return [];
}
