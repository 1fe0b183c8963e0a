// What must hold at the end of every seed of sending, seen from the outside: what servers got, what the rows say, and in
// which order it was written.
import { emailOf, type Mail, messageIdOf } from "./intake.ts";
import type { OutboundPlay } from "./outbound-play.ts";
import { type Finish, keyOf } from "./outbound-rows.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const FINAL = new Set(["delivered", "bounced", "failed", "expired"]);
/** Beyond 72 hours: outages, sweeps every 30 s, clocks that were moved back. */
const LATE_MAX_MS = HOUR_MS;
/** The design's table of waits in minutes, written down once more. */
const WAITS_MIN = [5, 10, 20, 40, 60, 120, 240];
const LAST_WAIT_MIN = 360;
/** Greylisting and slow-down answers may ask for more. */
const ASKED_MAX_MIN = 31;
/** A domain that is not there is asked about again after an hour. */
const ABSENT_MIN = 61;
/** The sweep for rows that were committed while their lane was looked at, a poll, and some slow answers of the database. */
const BEGIN_WITHIN_MS = 40_000;
/** The end of 72 hours, where clocks were moved by four. */
const END_FROM_MS = 67 * HOUR_MS;

/** What is wrong; nothing when all is well. */
export function judgeOutbound(play: OutboundPlay): string[] {
  const problems = play.mails.flatMap((mail) => judgeMail(play, mail));
  problems.push(...judgeWrites(play));
  problems.push(...play.lines.filter(({ level }) => level === "fatal").map(({ text }) => `fatal: ${text}`));
  if (play.kind === "flood") problems.push(...judgeFairness(play));
  return problems;
}

function judgeMail(play: OutboundPlay, mail: Mail): string[] {
  const { rows, network } = play;
  const id = messageIdOf(mail.n);
  const email = emailOf(mail);
  const recipient = rows.recipients.get(keyOf(id, 0));
  if (!recipient) return [`${email} was accepted and is lost`];
  const problems: string[] = [];
  const say = (text: string): void => void problems.push(`${email}: ${text}`);
  const copies = network.arrivals.filter((arrival) => arrival.email === email).length;
  const flags = rows.events.filter(({ message_id, type }) => message_id === id && type === "ambiguous").length;
  const { status } = recipient;
  if (!FINAL.has(status)) say(`ended as ${status}`);
  if (copies > 1 + flags) say(`${copies} copies arrived and ${flags} are flagged`);
  if (status === "delivered" && copies === 0) say("is said to be delivered, and nothing arrived");
  if (status !== "delivered" && copies > flags) say(`ended as ${status}, ${copies} copies arrived, ${flags} flagged`);
  problems.push(...judgeEnding(play, mail, status), ...judgeSteps(play, mail));
  return problems;
}

/** The right ending for what the destination did. */
function judgeEnding({ network, rows, kind, lines }: OutboundPlay, mail: Mail, status: string): string[] {
  const destination = network.destinations.get(mail.domain)!;
  const email = emailOf(mail);
  const isGone = destination.dns === "nxdomain" && destination.is_hopeless;
  const mayBounce = destination.says !== "yes" || destination.is_hopeless || isLeapt(lines);
  const problems: string[] = [];
  if (status !== "delivered" && !mayBounce) problems.push(`${email}: a false end, ${status}`);
  if (status === "delivered" && (destination.says === "no" || isGone)) problems.push(`${email}: cannot be delivered`);
  const isFault = destination.says === "no" || isGone;
  if (rows.suppressed.includes(email) && !isFault) problems.push(`${email}: suppressed without a fault of its own`);
  const starts = network.starts.filter((start) => start.email === email).length;
  if (kind === "calm" && destination.says === "no" && starts !== 1) problems.push(`${email}: ${starts} tries at a 550`);
  return problems;
}

/** By its clock the mail was out of time at once. */
function isLeapt(lines: OutboundPlay["lines"]): boolean {
  return lines.some(({ text }) => text.startsWith("all clocks leap"));
}

/** Each write after the other, at its time, and within 72 hours. */
function judgeSteps({ rows, kind, lines, network }: OutboundPlay, mail: Mail): string[] {
  const id = messageIdOf(mail.n);
  const finishes = rows.finishes.filter(({ message_id }) => message_id === id);
  const problems: string[] = [];
  const say = (text: string): void => void problems.push(`${emailOf(mail)}: ${text}`);
  for (const [n, finish] of finishes.entries()) {
    // An attempt that fell due in the last moment of its mail's time is not made any more.
    const isUntried = finish.final && finish.status === "expired" && finish.attempts === n;
    if (finish.attempts !== n + 1 && !isUntried) say(`write ${n + 1} is of attempt ${finish.attempts}`);
    if (finish.final !== (n === finishes.length - 1))
      say(`write ${n + 1} of ${finishes.length} is final: ${finish.final}`);
    // The last one is at the end of the mail's time, sooner than the table's.
    const sinceFirstMs = (finish.next_at_ms ?? 0) - (finishes[0]?.at_wall_ms ?? 0);
    const isLast = finishes[n + 1]?.final === true && (sinceFirstMs > END_FROM_MS || isLeapt(lines));
    const wait = describeWait(rows, finish, isLast);
    if (wait) say(wait);
  }
  const [first] = finishes;
  const last = finishes.at(-1);
  const hours = first && last ? (last.at_wall_ms - first.at_wall_ms) / HOUR_MS : 0;
  const isMoved = lines.some(({ text }) => text.startsWith("all clocks"));
  if (!isLeapt(lines) && hours * HOUR_MS > 72 * HOUR_MS + LATE_MAX_MS + (isMoved ? 5 * HOUR_MS : 0))
    say(`took ${hours} hours`);
  if (kind === "calm") problems.push(...judgePunctuality(finishes, emailOf(mail)), ...judgeBeginning(network, mail));
  return problems;
}

/** Null when the next attempt is at the table's time ±15 %, or later because the server asked for it. */
function describeWait({ events }: OutboundPlay["rows"], finish: Finish, isLast: boolean): string | null {
  if (finish.next_at_ms === null) return null;
  const event = events.find((one) => one.message_id === finish.message_id && one.attempt === finish.attempts);
  if (!event) return `attempt ${finish.attempts} has no event`;
  const minutes = (finish.next_at_ms - event.at_ms) / MINUTE_MS;
  if (event.type === "ambiguous" && minutes === 0) return null;
  const table = WAITS_MIN[finish.attempts - 1] ?? LAST_WAIT_MIN;
  const most = Math.max(
    table * 1.15,
    event.class === "bad_domain" ? ABSENT_MIN : 0,
    event.class === "greylisted" || event.class === "throttled" ? ASKED_MAX_MIN : 0,
  );
  const isRight = minutes >= (isLast ? 1 : table * 0.85) - 0.001 && minutes <= most + 0.001;
  return isRight ? null : `waits ${minutes} minutes after attempt ${finish.attempts} (${event.class}), not ${table}`;
}

/** When nothing is wrong with ourselves, an attempt ends soon after it was due. */
function judgePunctuality(finishes: Finish[], email: string): string[] {
  return finishes.flatMap((finish, n) => {
    const before = finishes[n - 1];
    if (!before || before.next_at_ms === null) return [];
    const lateMs = finish.at_wall_ms - before.next_at_ms;
    if (lateMs < -1_000) return [`${email}: attempt ${n + 1} ended before it was due`];
    // Connecting takes up to 30 s, three slow steps two minutes, and a site that fails is probed by one connection.
    return lateMs > 16 * MINUTE_MS ? [`${email}: attempt ${n + 1} ended ${lateMs / MINUTE_MS} minutes late`] : [];
  });
}

/** Where nothing at all is wrong, a message is begun within seconds, whatever else waits in its lane. */
function judgeBeginning({ destinations, starts }: OutboundPlay["network"], mail: Mail): string[] {
  const { dead_until_ms, busy_until_ms, dns_until_ms, slowness_ms } = destinations.get(mail.domain)!;
  if (dead_until_ms + busy_until_ms + dns_until_ms > 0 || slowness_ms > 1_000) return [];
  const start = starts.find(({ email }) => email === emailOf(mail));
  const waitedMs = (start?.monotonic_ms ?? Number.POSITIVE_INFINITY) - (mail.accepted_ms ?? 0);
  return waitedMs > BEGIN_WITHIN_MS ? [`${emailOf(mail)}: begun ${waitedMs} ms after it was accepted`] : [];
}

/** Only who owns a delivery writes about it. */
function judgeWrites({ rows }: OutboundPlay): string[] {
  return rows.finishes
    .filter(({ by, owner }) => by !== owner)
    .map(({ message_id, by, owner }) => `node ${by} wrote about ${message_id}, which was ${owner}'s`);
}

/** So many messages of others at most begin between the acceptance of a small organization's message and its own turn. */
const OTHERS_BEFORE_MAX = 40;

function judgeFairness({ mails, network }: OutboundPlay): string[] {
  const [first] = mails;
  return mails
    .filter(({ org_id }) => org_id !== first?.org_id)
    .flatMap((mail) => {
      const start = network.starts.find(({ email }) => email === emailOf(mail));
      const others = network.starts.filter(
        ({ email, monotonic_ms }) =>
          email !== emailOf(mail) &&
          monotonic_ms > (mail.accepted_ms ?? 0) &&
          monotonic_ms < (start?.monotonic_ms ?? 0),
      );
      const isFair = others.length <= OTHERS_BEFORE_MAX;
      return isFair ? [] : [`${emailOf(mail)}: ${others.length} messages of others went first`];
    });
}
