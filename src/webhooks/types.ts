// Endpoints, events and deliveries as rows and as what the API shows.
import { type TProperties, Type } from "typebox";
import {
  Environment,
  Extended,
  HeaderField,
  Id,
  Metadata,
  Named,
  Nullable,
  OneOf,
  OneOfKinds,
  Time,
} from "../http/http.ts";

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

const Text = Nullable(Type.String());

export const InboundAttachment = Named(
  "InboundAttachment",
  Type.Object({
    id: Id,
    filename: Type.String(),
    content_type: Type.String(),
    size: Type.Integer(),
    url: Type.String(),
    content_id: Text,
    disposition: Text,
  }),
);

export const AuthResults = Named(
  "AuthResults",
  Type.Object({
    dkim: Named(
      "DkimResult",
      Type.Object({
        result: Type.String(),
        domain: Text,
        selector: Text,
        passed_domains: Type.Array(Type.String()),
        from_aligned: Type.Boolean(),
      }),
    ),
    spf: Named("SpfResult", Type.Object({ result: Type.String(), domain: Text, from_aligned: Type.Boolean() })),
    dmarc: Named(
      "DmarcResult",
      Type.Object({
        result: Type.String(),
        from_domain: Text,
        dkim_aligned: Type.Boolean(),
        spf_aligned: Type.Boolean(),
      }),
    ),
  }),
);

export const InboundEnvelope = Named(
  "InboundEnvelope",
  Type.Object({
    from: Type.String({ description: "Empty for the null sender" }),
    to: Type.String(),
    remote_ip: Text,
    helo: Type.String(),
    tls: Type.Boolean(),
  }),
);

export const InboundThread = Named(
  "InboundThread",
  Type.Object({
    id: Nullable(Type.String({ format: "uuid" })),
    in_reply_to: Text,
    references: Type.Array(Type.String()),
    matched_email_id: Nullable(Id),
  }),
);

export const InboundSpam = Named(
  "InboundSpam",
  Type.Object({
    score: Nullable(Type.Number({ description: "The sum of the symbols; null when nobody judged" })),
    verdict: Nullable(
      Type.String({ description: "What the domain's settings make of it: ham, tag, quarantine or reject" }),
    ),
    symbols: Type.Array(
      Named("SpamSymbol", Type.Object({ name: Type.String(), score: Type.Number() }, { additionalProperties: true })),
    ),
  }),
);

/** An event's own name as its only value. */
function named(event: WebhookEventType) {
  return OneOf([event], { description: "The event's type" });
}

/** The fields that all events have. */
const COMMON = {
  timestamp: { ...Time, description: "When the event was made" },
  event_id: { ...Id, description: "The same on every attempt; deduplicate by it" },
  email_id: { ...Id, description: "The e-mail's id" },
};

const Outbound = Named(
  "OutboundEvent",
  Type.Object(
    {
      ...COMMON,
      message_id: Type.String({ description: "The Message-ID, without angle brackets" }),
      environment: Environment,
      tags: Type.Array(Type.String(), { description: "The tags given when sending" }),
      metadata: Metadata,
      from: Type.String({ description: "The From field" }),
      recipient: Type.String({ description: "The recipient that it is about" }),
      subject: Type.String({ description: "The Subject field" }),
    },
    { additionalProperties: true },
  ),
);

/** An event about mail that was sent: its name and its own fields stand before those that all of them have. */
function about<F extends TProperties>(name: string, event: WebhookEventType, description: string, fields: F) {
  return Named(name, { ...Extended(name, Outbound, { event: named(event), ...fields }, true), description });
}

const answer = {
  bounce_code: Nullable(Type.String({ description: "SMTP reply code, such as 550" })),
  diag_code: Nullable(Type.String({ description: "Enhanced status code (RFC 3463), such as 5.1.1" })),
  diag_message: Nullable(Type.String({ description: "What the server said" })),
};
const Received = Named(
  "EmailReceivedEvent",
  Type.Object(
    {
      event: named("email.received"),
      ...COMMON,
      message_id: Nullable(Type.String({ description: "The Message-ID, with angle brackets" })),
      environment: Environment,
      from: Nullable(Type.String({ description: "The From field" })),
      to: Type.String({ description: "The envelope recipient: there is one event for each" }),
      cc: Type.Array(Type.String()),
      reply_to: Text,
      date: Nullable({ ...Time, description: "The Date field" }),
      subject: Text,
      text: Nullable(Type.String({ description: "The plain text body; cut at 1 MiB" })),
      html: Nullable(Type.String({ description: "The HTML body; cut at 1 MiB" })),
      headers: Type.Array(HeaderField, { description: "The header fields, in the order of the message" }),
      attachments: Type.Array(InboundAttachment, { description: "The attached files; each is fetched by its `url`" }),
      spf: Type.String(),
      dkim: Type.String(),
      auth_results: Type.Optional({ ...AuthResults, description: "What was checked, in full; paid plans" }),
      envelope: InboundEnvelope,
      thread: InboundThread,
      spam: InboundSpam,
      auto_submitted: Type.Boolean(),
      recipient_tag: Text,
      domain_id: Nullable(Id),
      alias_id: Nullable(Id),
      raw_url: Type.String(),
      size: Type.Integer(),
      truncated: Type.Boolean({
        description: "text or html was cut: the record has all; or parts past 1,000: `raw_url` has",
      }),
    },
    { additionalProperties: true, description: "Mail was received and parsed" },
  ),
);

const Delivered = about("EmailDeliveredEvent", "email.delivered", "The recipient's server accepted the mail", {});

const Bounced = about(
  "EmailBouncedEvent",
  "email.bounced",
  "The mail was refused for good, or could not be delivered in time",
  {
    bounce_type: OneOf(["hard", "soft"], { description: "hard: the address is at fault. soft: anything else" }),
    ...answer,
    bounce_class: Nullable(Type.String({ description: "Why, in one word such as invalid_recipient" })),
  },
);

const Deferred = about(
  "EmailDeferredEvent",
  "email.deferred",
  "The mail was deferred and is tried again; sent on the first deferral, then at most every 4 hours",
  {
    ...answer,
    attempt: Nullable(Type.Integer({ description: "The attempt that was deferred, from 1" })),
    next_attempt_at: Nullable(Time),
  },
);

const Complained = about("EmailComplainedEvent", "email.complained", "The recipient marked the mail as spam", {
  feedback_type: Type.String({ description: "As the report has it (RFC 5965), such as abuse" }),
  source_ip: Nullable(Type.String({ description: "The address that the mail came from" })),
  arrival_date: Nullable(Type.String({ description: "When the mail arrived, in the report's own words" })),
});

/** The body of a webhook call. */
export const Event = OneOfKinds("Event", "event", [Received, Delivered, Bounced, Deferred, Complained]);
