// A step in a message's life, with all that its consequences (webhook, suppression, statistics) need.

export type EventType =
  | "queued"
  | "scheduled"
  | "simulated"
  | "delivered"
  | "deferred"
  | "ambiguous"
  | "bounced"
  | "failed"
  | "expired"
  | "canceled"
  | "complained"
  | "suppressed"
  | "retried";

export type MailEvent = {
  org_id: string;
  id: string;
  event_type: EventType;
  message_id: string;
  recipient: string | null;
  at: Date;
  attempt: number | null;
  smtp_code: string | null;
  enhanced_code: string | null;
  message: string | null;
  mx_host: string | null;
  mx_ip: string | null;
  source_ip: string | null;
  tls: string | null;
  duration_ms: number | null;
  class: string | null;
  isp: string | null;
  bounce_type: "hard" | "soft" | null;
  /** True if the recipient is at fault, so that further mail is to be suppressed. */
  suppress: boolean;
  next_attempt_at: Date | null;
  /** For `complained` only. */
  complaint?: { feedback_type: string; source_ip: string | null; arrival_date: string | null };
  /** True if it reaches webhooks. (Deferrals do at most every four hours.) */
  announces: boolean;
  about: {
    domain_id: string;
    rfc_message_id: string;
    from_address: string;
    subject: string;
    tags: string[];
    metadata: Record<string, unknown>;
    environment: "live" | "test";
    /** Who made the message; absent for what customers send. */
    origin?: string;
  };
};

export type EventView = {
  id: string;
  event_type: EventType;
  recipient: string | null;
  timestamp: Date;
  attempt: number | null;
  smtp_code: string | null;
  enhanced_code: string | null;
  message: string | null;
  mx_host: string | null;
  mx_ip: string | null;
  source_ip: string | null;
  tls: string | null;
  duration_ms: number | null;
};
