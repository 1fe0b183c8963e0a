// The times that are stored ahead of the clock, of all tables, and how far ahead each is stored at most: what is beyond was
// written before the clock was set back (heal-times.ts). Not here: times that people chose (`message.scheduled_at`,
// `suppression.expires_at`), and days and hours that figures are counted by.

const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;
const DAY_S = 24 * HOUR_S;
/** The longest wait between two attempts at a delivery is 6 h and 15 %; a path rests no longer than that. */
const RETRY_S = 8 * HOUR_S;
/** RFC 8461 §3.2: a policy's max_age. */
const STS_AGE_S = 31_557_600;
/** Two thirds of the longest life that browsers take: 398 days. */
const CERTIFICATE_S = 266 * DAY_S;
/** The fullest bucket of tries to sign in: 100 of 10 seconds each (people/proof/tries.ts). */
const SIGN_IN_S = 1_000;

/** When something is to be done: it is due at once. */
function due(table: string, column: string, ahead_s: number, where?: string): FutureTime {
  return { table, column, ahead_s, clock: "schedule", becomes: "now", ...(where ? { where } : {}) };
}

/** When something ends: it ends no later than it ever would. */
function end(table: string, column: string, ahead_s: number): FutureTime {
  return { table, column, ahead_s, clock: "schedule", becomes: "bound" };
}

/** When something happened: waits are counted from it. */
function past(table: string, column: string): FutureTime {
  return { table, column, ahead_s: 0, clock: "schedule", becomes: "now" };
}

/** Leases and signs of life go by the database's own clock. */
function lease(table: string, column: string, ahead_s: number): FutureTime {
  return { table, column, ahead_s, clock: "database", becomes: "now" };
}

/** An e-mail that was not tried yet waits for the time that its sender chose. */
const UNSCHEDULED = `(t.attempts > 0 or not exists (
  select from message m where m.org_id = t.org_id and m.id = t.message_id and m.scheduled_at is not null))`;

export const FUTURE_TIMES: readonly FutureTime[] = [
  lease("inbound_queue", "lease_until", 5 * MINUTE_S),
  lease("webhook_queue", "lease_until", 5 * MINUTE_S),
  lease("suppression_import", "lease_until", 5 * MINUTE_S),
  lease("node", "seen_at", 0),
  lease("key_ring_use", "seen_at", 0),
  due("delivery", "due_at", RETRY_S, UNSCHEDULED),
  due("lane", "paused_until", RETRY_S),
  due("lane", "next_at", RETRY_S),
  due("inbound_queue", "next_attempt_at", HOUR_S),
  due("webhook_queue", "next_attempt_at", 25 * HOUR_S),
  due("webhook_lane", "next_at", 25 * HOUR_S),
  due("domain", "next_check_at", DAY_S),
  due("warming", "next_look_at", DAY_S),
  due("sts_policy", "refresh_at", DAY_S),
  due("masked_trace", "due_at", 2 * HOUR_S),
  due("tls_report_due", "next_at", 4 * HOUR_S),
  lease("acme_certificate", "lease_until", 15 * MINUTE_S),
  due("acme_certificate", "renew_at", CERTIFICATE_S),
  end("sts_policy", "expires_at", STS_AGE_S),
  end("dkim_key", "retires_at", 7 * DAY_S),
  end("webhook", "previous_secret_expires_at", 7 * DAY_S),
  end("event_listener", "until", 7 * DAY_S),
  end("suppression_import", "expires_at", DAY_S),
  end("person_link", "expires_at", 7 * DAY_S),
  end("passkey_challenge", "expires_at", 5 * MINUTE_S),
  end("sign_in_try", "full_at", SIGN_IN_S),
  past("acme_challenge", "created_at"),
  past("event_listener", "since"),
  past("delivery", "deferred_event_at"),
  past("delivery", "absent_since"),
  past("domain", "watch_since"),
  past("domain", "unverified_since"),
  past("greylist", "first_at"),
  past("greylist", "last_at"),
  past("idempotency", "created_at"),
  past("idempotent_create", "created_at"),
  past("masked_destination", "confirmation_sent_at"),
  past("person_session", "created_at"),
  past("person_session", "seen_at"),
  past("person_session", "proved_at"),
  past("port_closed", "seen_at"),
  past("source", "warmup_started_at"),
  past("sts_policy", "fetched_at"),
  past("warming", "phase_started_at"),
  past("warming", "decided_through"),
  due("warming", "judged_from", HOUR_S),
];

export type FutureTime = {
  table: string;
  column: string;
  /** Never stored further ahead than this. 0: a time that is past when it is written. */
  ahead_s: number;
  /** The clock that it is written by: the schedule's, or the database's own. */
  clock: "schedule" | "database";
  /** What it becomes: now, for what is due then; its bound, for what ends then. */
  becomes: "now" | "bound";
  /** Other rows of the table (`t`) are left as they are. */
  where?: string;
};
