// What answers say of a recipient of sent mail, and of a step in its life.
import { Type } from "typebox";
import { Id, Named, Nullable, OneOf, Time } from "../../http/http.ts";

export const STATUSES = [
  "scheduled",
  "queued",
  "sending",
  "deferred",
  "delivered",
  "partially_delivered",
  "bounced",
  "complained",
  "suppressed",
  "failed",
  "expired",
  "canceled",
  "simulated",
] as const;
/** The states that only an e-mail as a whole can have, and no recipient. */
const FOLDED = ["scheduled", "sending", "partially_delivered"];
const RECIPIENT_STATUSES = STATUSES.filter((status) => !FOLDED.includes(status));

export const RecipientView = Named(
  "Recipient",
  Type.Object({
    email: Type.String(),
    kind: OneOf(["to", "cc", "bcc"]),
    status: OneOf(RECIPIENT_STATUSES),
    attempts: Type.Integer(),
    next_attempt_at: Nullable(Time),
    delivered_at: Nullable(Time),
    bounce_type: Nullable(OneOf(["hard", "soft"])),
    bounce_code: Nullable(Type.String({ description: "SMTP code" })),
    diag_code: Nullable(Type.String({ description: "Enhanced status code (RFC 3463)" })),
    diag_message: Nullable(Type.String({ description: "The remote server's text" })),
    bounce_class: Nullable(Type.String()),
  }),
);

export const EmailEvent = Named(
  "EmailEvent",
  Type.Object({
    id: Id,
    event_type: Type.String({
      description:
        "queued, scheduled, simulated, suppressed, delivered, deferred, ambiguous, bounced, failed, expired, canceled, retried, complained",
    }),
    recipient: Nullable(Type.String()),
    timestamp: Time,
    attempt: Nullable(Type.Integer({ description: "Counted from when the e-mail was queued or, last, retried" })),
    smtp_code: Nullable(Type.String()),
    enhanced_code: Nullable(Type.String()),
    message: Nullable(Type.String()),
    mx_host: Nullable(Type.String()),
    mx_ip: Nullable(Type.String()),
    source_ip: Nullable(Type.String()),
    tls: Nullable(
      Type.String({
        description:
          "Protocol, cipher, and the policy that was met, if any: dane, dane-unauthenticated, sts, sts-testing, " +
          "sts-testing-failed, or verified for a relay. null: no TLS, or no connection",
      }),
    ),
    duration_ms: Nullable(Type.Integer()),
  }),
);
