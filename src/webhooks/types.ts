// Endpoints, events and deliveries as rows and as what the API shows.

export const EVENT_TYPES = [
  "email.received",
  "email.delivered",
  "email.bounced",
  "email.deferred",
  "email.complained",
] as const;
export type WebhookEventType = (typeof EVENT_TYPES)[number];

/** An endpoint as the API shows it. */
export type WebhookRecord = {
  id: string;
  webhook_url: string;
  event_types: WebhookEventType[];
  has_secret: boolean;
  domain_id: string | null;
  match_pattern: string | null;
  enabled: boolean;
  environment: "live" | "test";
  previous_secret_expires_at: Date | null;
  consecutive_failures: number;
  last_success_at: Date | null;
  created_at: Date;
  updated_at: Date;
};

/** What other features need to know of an endpoint that a customer names (aliases, rules, a domain's catch-all). */
export type WebhookChoice = {
  id: string;
  enabled: boolean;
  event_types: WebhookEventType[];
  domain_id: string | null;
  match_pattern: string | null;
};

/**
 * One event for the receivers. The body sent is `{event, timestamp, event_id, …payload}`: the payload holds the other
 * common fields (email_id, message_id, environment, and for outbound events tags and metadata) and the event's own.
 */
export type OutgoingEvent = {
  org_id: string;
  /** UUIDv7, made by whoever records the event; receivers deduplicate by it. */
  event_id: string;
  event: WebhookEventType;
  /** The domain that sent the mail; null when there is none. */
  domain_id: string | null;
  /** What `match_pattern` is tested on. */
  recipient: string;
  at: Date;
  payload: Record<string, unknown>;
  /** Which endpoints may get it. Needed for `email.received`, which goes nowhere without. */
  endpoint_ids?: string[];
};

export type DeliveryStatus = "pending" | "retrying" | "delivered" | "failed";
export const DELIVERY_STATUSES = ["pending", "delivered", "retrying", "failed"] as const;

/** A delivery as the API shows it. */
export type DeliveryRecord = {
  id: string;
  endpoint_id: string;
  event_id: string;
  event: WebhookEventType;
  attempt: number;
  status: DeliveryStatus;
  status_code: number | null;
  error: string | null;
  duration_ms: number | null;
  attempt_id: string | null;
  created_at: Date;
  next_attempt_at: Date | null;
};

/** An endpoint as an attempt needs it, read right before the attempt. */
export type EndpointRow = {
  org_id: string;
  id: string;
  webhook_url: string;
  enabled: boolean;
  secret: Buffer | null;
  previous_secret: Buffer | null;
  previous_secret_expires_at: Date | null;
};

/** A claimed delivery. */
export type ClaimedRow = {
  org_id: string;
  id: string;
  webhook_id: string;
  event_id: string;
  event: WebhookEventType;
  body_bytes: number;
  created_at: Date;
  /** Attempts made before. */
  attempt: number;
  claim_id: string;
};

/** What one attempt came to. `error` is null exactly when the receiver answered 2xx. */
export type AttemptResult = {
  attempt_id: string | null;
  status_code: number | null;
  error: string | null;
  duration_ms: number | null;
};
