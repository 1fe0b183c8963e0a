// What is counted, and the shapes that it is counted from and shown in. Names are the contract's.

export const COUNTERS = [
  "total_sent",
  "total_delivered",
  "total_deferred",
  "total_bounced",
  "total_hard_bounce",
  "total_complaints",
  "total_suppressed",
  "total_failed",
] as const;

export type Counters = Record<(typeof COUNTERS)[number], number>;

/** What counting needs of an event; the events of the log have it all. */
export type CountedEvent = {
  org_id: string;
  event_type: string;
  at: Date;
  /** 1 for the first attempt at a recipient; null where the event is no attempt (a complaint, a delayed bounce). */
  attempt: number | null;
  isp: string | null;
  class: string | null;
  enhanced_code: string | null;
  bounce_type: "hard" | "soft" | null;
  about: { domain_id: string; environment: "live" | "test" };
};

/** Counters of one domain in one hour (`isp` is '') or in one day with one mailbox provider. */
export type CountRow = Counters & {
  org_id: string;
  domain_id: string;
  span: "hour" | "day";
  starts_at: Date;
  isp: string;
};

export type ReasonRow = {
  org_id: string;
  domain_id: string;
  starts_at: Date;
  isp: string;
  reason: string;
  code: string;
  count: number;
};

/** Recipients that were left out because they are suppressed. */
export type SuppressedCount = { org_id: string; domain_id: string; at: Date; recipients: number };

/** What warming judges a domain by. */
export type Figures = {
  sent: number;
  delivered: number;
  bounced: number;
  hard_bounced: number;
  complained: number;
};
