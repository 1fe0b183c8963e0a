// What requests and answers about received mail look like.
import { Type } from "typebox";
import { Closed, Environment, Extended, HeaderField, Id, Named, Nullable, OneOf, Time } from "../../http/http.ts";
import { AuthResults, InboundAttachment, InboundEnvelope, InboundSpam, InboundThread } from "../../webhooks/types.ts";
import { STATUSES } from "../types.ts";

const Text = Nullable(Type.String());

/** What a list shows of received mail, and the mail itself as well. */
const Received = Named(
  "ReceivedMail",
  Type.Object({
    id: Id,
    message_id: Nullable(Type.String({ description: "With angle brackets" })),
    from_address: Nullable(Type.String({ description: "The From field as it reads" })),
    to_address: Type.String({ description: "The envelope recipient" }),
    subject: Text,
    status: OneOf(STATUSES, {
      description:
        "received: stored, not processed yet. delivered: handed on (webhook queued, forward queued, or stored). failed: could not be handed on",
    }),
    environment: { ...Environment, description: "test: simulated" },
    alias_id: Nullable(Id),
    has_attachments: Type.Boolean(),
    spam_score: Nullable(Type.Number()),
    received_at: Time,
    processed_at: Nullable(Time),
    domain_id: Nullable(Id),
    size: Type.Integer(),
  }),
);

export const InboundEmailRow = Extended("InboundEmailRow", Received, {
  thread_id: Nullable(Type.String({ format: "uuid" })),
});

const Delivery = Named(
  "InboundDelivery",
  Type.Object({
    id: Id,
    endpoint_id: Id,
    event_id: Id,
    attempt: Type.Integer(),
    status: Type.String({ description: "pending, retrying, delivered or failed" }),
    status_code: Nullable(Type.Integer()),
    error: Text,
    created_at: Time,
    next_attempt_at: Nullable(Time),
  }),
);

export const InboundEmail = Extended("InboundEmail", Received, {
  email_id: Type.String({ format: "uuid", description: "The same as `id`: as the event names it" }),
  reason: Nullable(Type.String({ description: "Why it is failed, quarantined or dropped" })),
  from: Nullable(Type.String()),
  to: Type.String({ description: "The envelope recipient" }),
  cc: Type.Array(Type.String()),
  reply_to: Text,
  date: Nullable(Time),
  text: Text,
  html: Text,
  headers: Type.Array(HeaderField),
  attachments: Type.Array(InboundAttachment),
  spf: Type.String(),
  dkim: Type.String(),
  auth_results: Type.Optional({ ...AuthResults, description: "Paid plans" }),
  envelope: InboundEnvelope,
  thread: InboundThread,
  spam: InboundSpam,
  auto_submitted: Type.Boolean(),
  recipient_tag: Text,
  raw_url: Type.String(),
  truncated: Type.Boolean({
    description: "Parts past 1,000 are missing: see `raw_url`",
  }),
  defects: Type.Array(Type.String(), { description: "What was wrong with the message" }),
  rule_ids: Type.Array(Id),
  forwards: Type.Array(Id, { description: "E-mails that carry it on" }),
  deliveries: Type.Array(Delivery, { description: "Of its events to webhooks" }),
  released_at: Nullable(Time),
});

const Address = Type.String({ minLength: 1, maxLength: 1500 });

export const SimulateBody = Named(
  "SimulateInboundEmailRequest",
  Closed({
    to: Type.Union([Address, Type.Array(Address, { minItems: 1, maxItems: 100 })], {
      description: "Envelope recipients",
    }),
    envelope_from: Type.Optional(
      Type.String({ maxLength: 1500, description: "Default: the address in `from`; empty: the null sender" }),
    ),
    raw: Type.Optional(Type.String({ minLength: 1, description: "A whole message (RFC 5322)" })),
    raw_base64: Type.Optional(Type.String({ minLength: 1, description: "The same, for bytes that are no UTF-8" })),
    from: Type.Optional(Address),
    cc: Type.Optional(Type.Array(Address, { maxItems: 100 })),
    reply_to: Type.Optional(Address),
    subject: Type.Optional(Type.String({ maxLength: 2_000 })),
    text: Type.Optional(Type.String()),
    html: Type.Optional(Type.String()),
    headers: Type.Optional(Named("SimulatedHeaderFields", Type.Record(Type.String(), Type.String()))),
    attachments: Type.Optional(
      Type.Array(
        Named(
          "SimulatedAttachment",
          Closed({
            filename: Type.String({ minLength: 1, maxLength: 1_000 }),
            content: Type.String({ description: "base64" }),
            content_type: Type.Optional(Type.String({ maxLength: 500 })),
            content_id: Type.Optional(Type.String({ maxLength: 500 })),
          }),
        ),
        { maxItems: 100 },
      ),
    ),
    remote_ip: Type.Optional(Type.String({ maxLength: 64, description: "The client, for SPF" })),
    helo: Type.Optional(Type.String({ maxLength: 255 })),
  }),
);

export const SimulatedMessage = Named(
  "SimulatedMessage",
  Type.Object({
    id: Id,
    recipient: Type.String({ description: "The envelope recipient" }),
    from: Type.String({ description: "The address in From" }),
    raw: Type.String({ description: "The message without the signature; bytes that are no UTF-8 are U+FFFD" }),
    raw_base64: Type.String({ description: "The same, byte for byte" }),
  }),
);

export const SimulatedReply = Named(
  "SimulatedReply",
  Type.Object({
    recipient: Type.String(),
    accepted: Type.Boolean(),
    smtp_code: Type.Integer(),
    enhanced_code: Type.String(),
    message: Type.String(),
    email_id: Nullable(Id),
  }),
);
