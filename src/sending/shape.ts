// The body of POST /v1/send: what a field may hold. The same schema serves each item of a batch.
import { Type } from "typebox";
import { Closed, Environment, ErrorBody, Extended, Metadata, Named, OneOf, Variables } from "../http/http.ts";
import { KEEP_TRYING_MS } from "../outbound/outbound.ts";

export const RECIPIENTS_MAX = 50;
/** Addresses in one of the lists, repeated ones included. */
const LISTED_MAX = 500;
const ATTACHMENTS_MAX = 20;
export const MESSAGE_BYTES_MAX = 25 * 1024 * 1024;
export const REQUEST_BYTES_MAX = 40 * 1024 * 1024;
export const TAGS_MAX = 10;
export const TAG_CHARS_MAX = 64;
export const METADATA_BYTES_MAX = 2048;
export const SCHEDULE_MS_MAX = 30 * 86_400_000;
/** As long as mail that is scheduled at the latest is tried; the body is kept for 36 days at least (config.ts). */
export const EXPIRY_MS_MAX = SCHEDULE_MS_MAX + KEEP_TRYING_MS;

const AddressText = Type.String({ minLength: 1, maxLength: 998 });

const AttachmentBody = Named(
  "SendAttachment",
  Closed({
    filename: Type.String({ minLength: 1, maxLength: 255 }),
    content: Type.String({ description: "The file, in base64 (RFC 4648 §4)" }),
    content_type: Type.Optional(
      Type.String({ minLength: 3, maxLength: 255, description: "By the file name when absent" }),
    ),
    content_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: "For `cid:` links; with or without angle brackets" }),
    ),
    disposition: Type.Optional(OneOf(["attachment", "inline"])),
  }),
);

const Unsubscribe = Named(
  "SendUnsubscribe",
  Closed(
    {
      list: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 64,
          description: "The list that the link leaves; without it, all mail of the sender's domain",
        }),
      ),
      one_click: Type.Optional(Type.Boolean({ default: true, description: "Adds List-Unsubscribe-Post (RFC 8058)" })),
    },
    { description: "Adds a List-Unsubscribe link, served by us, to each recipient's copy" },
  ),
);

const HeaderMap = Named(
  "HeaderFields",
  Type.Object(
    {},
    {
      additionalProperties: Type.String({ maxLength: 16_384 }),
      maxProperties: 50,
      description:
        "Further header fields, by name. Refused: what other fields set, Date, Message-ID, MIME-Version, " +
        "`Content-*`, DKIM-Signature, Return-Path, Received, Sender, Resent-From, Resent-Sender, Resent-Bcc, " +
        "Authentication-Results, `ARC-*`",
    },
  ),
);

export const SendBody = Named(
  "SendRequest",
  Closed({
    from: Type.String({ minLength: 1, maxLength: 998, description: "`addr@example.eu` or `Name <addr@example.eu>`" }),
    to: Type.Array(AddressText, {
      minItems: 1,
      maxItems: LISTED_MAX,
      description: `To, cc and bcc together name at most ${RECIPIENTS_MAX} recipients; repeated ones count once`,
    }),
    cc: Type.Optional(Type.Array(AddressText, { maxItems: LISTED_MAX })),
    bcc: Type.Optional(
      Type.Array(AddressText, { maxItems: LISTED_MAX, description: "Never written into the message" }),
    ),
    reply_to: Type.Optional(Type.Union([AddressText, Type.Array(AddressText, { maxItems: 10 })])),
    subject: Type.Optional(Type.String({ maxLength: 2000, description: "Required unless a template gives it" })),
    html_body: Type.Optional(Type.String()),
    text_body: Type.Optional(
      Type.String({ description: "Made from the HTML when absent, unless `auto_text` is false" }),
    ),
    auto_text: Type.Optional(Type.Boolean()),
    template: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: "Slug of a template" })),
    template_id: Type.Optional(Type.String({ format: "uuid" })),
    variables: Type.Optional(Variables),
    headers: Type.Optional(HeaderMap),
    attachments: Type.Optional(Type.Array(AttachmentBody, { maxItems: ATTACHMENTS_MAX })),
    tags: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: TAG_CHARS_MAX }), { maxItems: TAGS_MAX })),
    metadata: Type.Optional(Metadata),
    scheduled_at: Type.Optional(
      Type.String({
        format: "date-time",
        description: "When to send: at most 30 days ahead. A recipient who is suppressed by then does not get it",
      }),
    ),
    expires_at: Type.Optional(
      Type.String({
        format: "date-time",
        description:
          "Until when delivery is tried; at most 33 days ahead. Mail that is not delivered by then is `expired`. Where the next retry would come too late, one more attempt is made just before, unless that is within a minute",
      }),
    ),
    unsubscribe: Type.Optional(Unsubscribe),
    ip_pool: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 63,
        description: "Name of the IP pool to send from, instead of the domain's; needs Scale or Enterprise",
      }),
    ),
    require_tls: Type.Optional(Type.Boolean({ description: "Never deliver over a connection without TLS" })),
  }),
);

export const SuppressedList = Named(
  "SuppressedRecipients",
  Type.Array(
    Named(
      "SuppressedRecipient",
      Type.Object(
        {
          email: Type.String({ description: "The recipient's address" }),
          reason: Type.String({ description: "Why: hard_bounce, complaint, manual or unsubscribe" }),
        },
        { description: "A recipient that is left out, because its address is suppressed" },
      ),
    ),
    { description: "Recipients that are left out, because their addresses are suppressed" },
  ),
);

/** The body of a 422. */
export const AllSuppressed = Extended("AllSuppressed", ErrorBody, { suppressed: SuppressedList });

/** How sending begins. */
export const ACCEPTED_STATUSES = ["queued", "scheduled", "simulated"] as const;
const AcceptedStatus = Named(
  "AcceptedStatus",
  OneOf(ACCEPTED_STATUSES, {
    description:
      "queued: it is sent now. scheduled: it is sent at `scheduled_at`. simulated: by a test key, never sent",
  }),
);

/** All 0 for test keys. */
export const quota = {
  quota_limit: Type.Integer({ description: "Recipients a month; 0 for test keys" }),
  quota_used: Type.Integer({ description: "Recipients accepted this month, these included; 0 for test keys" }),
  quota_remaining: Type.Integer({ description: "What is left of the month; 0 for test keys" }),
};

export const SendAnswerShape = Named(
  "SendAnswer",
  Type.Object({
    id: Type.String({ format: "uuid" }),
    message_id: Type.String({ description: "Without angle brackets" }),
    status: AcceptedStatus,
    environment: Environment,
    suppressed: SuppressedList,
    ...quota,
  }),
);
