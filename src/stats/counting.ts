// From events to the rows of counters they raise, pure. What is counted, and when:
// - sent: a recipient, when the outcome of its first attempt is recorded, so that no rate is ever over mail that had no
//   chance yet; sending again by hand is sent again;
// - deferred: a recipient whose first attempt did not end (later deferrals of the same mail are not counted again);
// - delivered, bounced, complaints, failed (failed or expired): when they happen. A delayed bounce or a complaint counts
//   on the day it comes and takes no delivery back, as in the event log.
// Test mail never counts. What the customer did not send (forwards, masked mail) does not come here: see events/origins.ts.
import { COUNTERS, type CountedEvent, type Counters, type CountRow, type ReasonRow } from "./types.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The provider of mail for which none of those we know answered, or none was asked. */
export const NO_PROVIDER = "other";
const NO_REASON = "unknown";
/** An enhanced code as RFC 3463 §2 has it; what a server writes beyond that is not kept. */
const ENHANCED_CODE = /^[245]\.\d{1,3}\.\d{1,3}$/;

/** The UTC hour that `ms` lies in. */
export function hourOf(ms: number): Date {
  return new Date(ms - (ms % HOUR_MS));
}

/** The UTC day that `ms` lies in. */
export function dayOf(ms: number): Date {
  return new Date(ms - (ms % DAY_MS));
}

/** Counters that all stand at zero. */
export function zeroCounters(): Counters {
  return Object.fromEntries(COUNTERS.map((name) => [name, 0])) as Counters;
}

/** What one event adds; null when it adds nothing. */
export function countsOf(event: CountedEvent): Counters | null {
  const { event_type, attempt, about } = event;
  if (about.environment === "test") return null;
  const counts = zeroCounters();
  if (attempt === 1) counts.total_sent = 1;
  if (event_type === "delivered") counts.total_delivered = 1;
  if ((event_type === "deferred" || event_type === "ambiguous") && attempt === 1) counts.total_deferred = 1;
  if (event_type === "bounced") counts.total_bounced = 1;
  if (event_type === "bounced" && event.bounce_type === "hard") counts.total_hard_bounce = 1;
  if (event_type === "complained") counts.total_complaints = 1;
  if (event_type === "failed" || event_type === "expired") counts.total_failed = 1;
  return COUNTERS.some((name) => counts[name] > 0) ? counts : null;
}

/** The rows to raise: for each domain its hours, and its days by provider. */
export function sumCounts(events: readonly CountedEvent[]): CountRow[] {
  const rows = new Map<string, CountRow>();
  for (const event of events) {
    const counts = countsOf(event);
    if (!counts) continue;
    const { org_id } = event;
    const { domain_id } = event.about;
    const ms = event.at.getTime();
    const spans = [
      { span: "hour" as const, starts_at: hourOf(ms), isp: "" },
      { span: "day" as const, starts_at: dayOf(ms), isp: event.isp ?? NO_PROVIDER },
    ];
    for (const { span, starts_at, isp } of spans) {
      const key = `${org_id} ${domain_id} ${span} ${starts_at.getTime()} ${isp}`;
      const row = rows.get(key) ?? { org_id, domain_id, span, starts_at, isp, ...zeroCounters() };
      for (const name of COUNTERS) row[name] += counts[name];
      rows.set(key, row);
    }
  }
  return [...rows.values()];
}

/** Why live mail bounced, by day and provider. */
export function sumReasons(events: readonly CountedEvent[]): ReasonRow[] {
  const rows = new Map<string, ReasonRow>();
  for (const event of events) {
    if (event.event_type !== "bounced" || event.about.environment === "test") continue;
    const row = reasonOf(event);
    const key = `${row.org_id} ${row.domain_id} ${row.starts_at.getTime()} ${row.isp} ${row.reason} ${row.code}`;
    const known = rows.get(key);
    if (known) known.count += 1;
    else rows.set(key, row);
  }
  return [...rows.values()];
}

function reasonOf(event: CountedEvent): ReasonRow {
  const code = event.enhanced_code ?? "";
  return {
    org_id: event.org_id,
    domain_id: event.about.domain_id,
    starts_at: dayOf(event.at.getTime()),
    isp: event.isp ?? NO_PROVIDER,
    reason: event.class ?? NO_REASON,
    code: ENHANCED_CODE.test(code) ? code : "",
    count: 1,
  };
}

/** `part` over `sent`: 0 to 1 with four decimals; 0 when nothing was sent. */
export function rate(part: number, sent: number): number {
  if (sent <= 0) return 0;
  // Late outcomes of earlier mail can outnumber what was sent in a short time.
  return Math.min(1, Math.max(0, Math.round((part / sent) * 10_000) / 10_000));
}

export type Rates = { delivery_rate: number; bounce_rate: number; hard_bounce_rate: number; complaint_rate: number };

/** The contract's four rates. */
export function ratesOf(counters: Counters): Rates {
  const sent = counters.total_sent;
  return {
    delivery_rate: rate(counters.total_delivered, sent),
    bounce_rate: rate(counters.total_bounced, sent),
    hard_bounce_rate: rate(counters.total_hard_bounce, sent),
    complaint_rate: rate(counters.total_complaints, sent),
  };
}
