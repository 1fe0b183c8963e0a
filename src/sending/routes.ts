// /v1/send and /v1/emails
import { Type } from "@sinclair/typebox";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { FindLane } from "../outbound/outbound.ts";
import {
  type Api,
  answers,
  Closed,
  ErrorBody,
  Id,
  IdParams,
  Nullable,
  OneOf,
  PageOf,
  PageQuery,
  pageOf,
  RateLimitBody,
  Time,
} from "../platform/http.ts";
import type { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { BATCH_MAX, type BatchDeps, sendBatch, VALIDATIONS } from "./batch.ts";
import * as emails from "./emails.ts";
import { createIdempotency, type Idempotency, type Replay, readKey } from "./idempotency.ts";
import { type FindSender, requestHash, type Sending } from "./sending.ts";
import { REQUEST_BYTES_MAX, SendAnswerShape, SendBody, SuppressedList } from "./shape.ts";
import { showContent } from "./show-content.ts";

const STATUSES = [
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
const RECIPIENT_STATUSES = STATUSES.filter((status) => status !== "sending" && status !== "partially_delivered");

const RecipientView = Type.Object({
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
});

const Email = Type.Object({
  id: Id,
  message_id: Type.String({ description: "Without angle brackets" }),
  status: OneOf(STATUSES, { description: "A fold of the recipients' states" }),
  environment: OneOf(["live", "test"]),
  from: Type.String(),
  to: Type.Array(Type.String()),
  cc: Type.Array(Type.String()),
  bcc: Type.Array(Type.String()),
  reply_to: Type.Array(Type.String()),
  subject: Type.String(),
  tags: Type.Array(Type.String()),
  metadata: Type.Object({}, { additionalProperties: true }),
  template_id: Nullable(Id),
  domain_id: Id,
  size: Type.Integer({ description: "Bytes of the message, unsigned" }),
  created_at: Time,
  scheduled_at: Nullable(Time),
  completed_at: Nullable(Time),
  recipients: Type.Array(RecipientView),
});

const Event = Type.Object({
  id: Id,
  event_type: Type.String({
    description:
      "queued, scheduled, simulated, suppressed, delivered, deferred, ambiguous, bounced, failed, expired, canceled, retried, complained",
  }),
  recipient: Nullable(Type.String()),
  timestamp: Time,
  attempt: Nullable(Type.Integer()),
  smtp_code: Nullable(Type.String()),
  enhanced_code: Nullable(Type.String()),
  message: Nullable(Type.String()),
  mx_host: Nullable(Type.String()),
  mx_ip: Nullable(Type.String()),
  source_ip: Nullable(Type.String()),
  tls: Nullable(Type.String()),
  duration_ms: Nullable(Type.Integer()),
});

const Content = Type.Object({
  id: Id,
  message_id: Type.String(),
  headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })),
  text_body: Nullable(Type.String()),
  html_body: Nullable(Type.String()),
  attachments: Type.Array(
    Type.Object({
      filename: Nullable(Type.String()),
      content_type: Type.String(),
      content_id: Nullable(Type.String()),
      size: Type.Integer(),
    }),
  ),
});

const BatchBody = Type.Union([
  Type.Array(SendBody, { minItems: 1, maxItems: BATCH_MAX }),
  Closed({
    emails: Type.Array(SendBody, { minItems: 1, maxItems: BATCH_MAX }),
    validation: Type.Optional(
      OneOf(VALIDATIONS, {
        default: "permissive",
        description: "permissive: what can be sent is sent; strict: all e-mails or none",
      }),
    ),
  }),
]);

const BatchResult = Type.Object(
  {
    index: Type.Integer({ description: "Place in the request, from 0" }),
    status: Type.String({ description: "queued, scheduled, simulated or rejected" }),
    id: Type.Optional(Id),
    message_id: Type.Optional(Type.String({ description: "Without angle brackets" })),
    suppressed: Type.Optional(SuppressedList),
    error: Type.Optional(Type.String()),
    code: Type.Optional(
      Type.String({ description: "As for a single send; batch_rejected: another item of a strict batch is at fault" }),
    ),
    field: Type.Optional(Type.String({ description: "Path within the item" })),
  },
  { additionalProperties: true },
);

const BatchAnswerShape = Type.Object({
  accepted: Type.Integer(),
  rejected: Type.Integer(),
  environment: OneOf(["live", "test"]),
  results: Type.Array(BatchResult, { description: "One for each e-mail, in the order of the request" }),
  quota_limit: Type.Integer(),
  quota_used: Type.Integer(),
  quota_remaining: Type.Integer(),
});

const WithResults = Type.Object({
  accepted: Type.Optional(Type.Integer()),
  rejected: Type.Optional(Type.Integer()),
  results: Type.Optional(Type.Array(BatchResult)),
});

const AllSuppressed = Type.Intersect([Type.Ref(ErrorBody), Type.Object({ suppressed: SuppressedList })]);
const IdempotencyHeader = Type.Object({
  "idempotency-key": Type.Optional(Type.String({ description: "1–256 printable ASCII characters, kept 72 h" })),
});
const tags = ["Sending"];

export type SendingRouteDeps = {
  sending: Sending;
  /** A complaint of the validator as the refusal a request would get. */
  shapeRefusal: (errors: unknown) => Refusal;
  refusalBody: BatchDeps["refusalBody"];
  findLane: FindLane;
  notify: () => void;
  findSender: FindSender;
};

/** Mounts sending and the e-mail endpoints. */
export function mountSending(api: Api, world: World, deps: SendingRouteDeps): void {
  const idempotency = createIdempotency(world);
  api.post(
    "/v1/send",
    {
      bodyLimit: REQUEST_BYTES_MAX,
      schema: {
        operationId: "sendEmail",
        tags,
        summary: "Send one e-mail",
        description: "202 means: stored durably. With a test key: validated and stored as `simulated`, never sent.",
        headers: IdempotencyHeader,
        body: SendBody,
        response: answers(
          {
            202: SendAnswerShape,
            422: Type.Unsafe({ ...AllSuppressed, description: "All recipients are suppressed" }),
          },
          [404, 409],
        ),
      },
    },
    (request, reply) => send(deps.sending, idempotency, request as never, reply),
  );
  mountBatch(api, idempotency, deps);
  mountReading(api, world);
  mountChanging(api, world, deps);
}

type SendCall = FastifyRequest & { body: Parameters<Sending["prepare"]>[1] };

async function send(sending: Sending, idempotency: Idempotency, request: SendCall, reply: FastifyReply) {
  const key = readKey(request.headers["idempotency-key"]);
  const { account } = request;
  if (key === null) {
    const prepared = await sending.prepare(account, request.body);
    const answer = sending.answerOf(prepared);
    await sending.accept([prepared], null);
    return reply.code(202).send(answer);
  }
  const hash = requestHash(request.rawBody ?? Buffer.alloc(0));
  const { replayed, answer } = await idempotency.once(
    account,
    { key, hash },
    async (row): Promise<Replay | "duplicate_key"> => {
      const prepared = await sending.prepare(account, request.body);
      const text = JSON.stringify(sending.answerOf(prepared));
      const accepted = await sending.accept([prepared], row(202, text));
      return accepted === "duplicate_key" ? accepted : { status: 202, answer: text };
    },
  );
  return giveAnswer(reply, answer, replayed);
}

/** The very text that is stored for the Idempotency-Key. */
function giveAnswer(reply: FastifyReply, { status, answer }: Replay, replayed: boolean) {
  if (replayed) reply.header("idempotent-replayed", "true");
  return reply.code(status).type("application/json; charset=utf-8").serializer(String).send(answer);
}

function mountBatch(api: Api, idempotency: Idempotency, deps: SendingRouteDeps): void {
  const compile = api.validatorCompiler;
  if (!compile) throw new Error("the server has no validator");
  const isItem = compile({ schema: SendBody, method: "POST", url: "/v1/send/batch", httpPart: "body" } as never);
  const batch: BatchDeps = {
    sending: deps.sending,
    shapeProblem: (item) => (isItem(item) ? null : deps.shapeRefusal(isItem.errors)),
    refusalBody: deps.refusalBody,
  };
  api.post(
    "/v1/send/batch",
    {
      bodyLimit: REQUEST_BYTES_MAX,
      // An item that has not the shape of an e-mail is that item's result, so the body is judged item by item.
      validatorCompiler: (route) => (route.httpPart === "body" ? () => true : compile(route as never)),
      schema: {
        operationId: "sendBatch",
        tags,
        summary: "Send up to 100 e-mails in one call",
        description:
          "202 when at least one e-mail is accepted; all accepted ones are stored durably together. When none is: 422 if " +
          "all recipients are suppressed, 429 if a limit is in the way, else 400, each with the `results`. An " +
          "Idempotency-Key covers the whole call.",
        headers: IdempotencyHeader,
        body: BatchBody,
        response: answers({
          202: BatchAnswerShape,
          400: Type.Unsafe({
            ...Type.Intersect([Type.Ref(ErrorBody), WithResults]),
            description: "Invalid parameters",
          }),
          409: Type.Unsafe({
            ...Type.Ref(ErrorBody),
            description: "The Idempotency-Key was used with another request",
          }),
          422: Type.Unsafe({
            ...Type.Intersect([AllSuppressed, WithResults]),
            description: "All recipients are suppressed",
          }),
          429: Type.Unsafe({
            ...Type.Intersect([Type.Ref(RateLimitBody), WithResults]),
            description: "A rate or sending limit is exceeded",
          }),
        }),
      },
    },
    (request, reply) => sendMany(batch, idempotency, request, reply),
  );
}

async function sendMany(batch: BatchDeps, idempotency: Idempotency, request: FastifyRequest, reply: FastifyReply) {
  const key = readKey(request.headers["idempotency-key"]);
  const { account, body } = request;
  if (key === null) return giveAnswer(reply, (await sendBatch(batch, account, body, null)) as Replay, false);
  const hash = requestHash(request.rawBody ?? Buffer.alloc(0));
  const work = (row: Parameters<typeof sendBatch>[3]) => sendBatch(batch, account, body, row);
  const { replayed, answer } = await idempotency.once(account, { key, hash }, work);
  return giveAnswer(reply, answer, replayed);
}

function mountReading(api: Api, world: World): void {
  const text = Type.Optional(Type.String({ maxLength: 998 }));
  api.get(
    "/v1/emails",
    {
      schema: {
        operationId: "listEmails",
        tags,
        summary: "List sent e-mails, newest first",
        querystring: Closed({
          ...PageQuery,
          status: Type.Optional(OneOf(STATUSES)),
          from: text,
          to: text,
          subject: text,
          tag: Type.Optional(Type.String({ maxLength: 64 })),
          domain_id: Type.Optional(Type.String({ format: "uuid" })),
          environment: Type.Optional(OneOf(["live", "test"])),
          message_id: text,
          from_date: Type.Optional(Type.String({ description: "A day or an RFC 3339 time, inclusive" })),
          to_date: Type.Optional(Type.String({ description: "A day or an RFC 3339 time, inclusive" })),
        }),
        response: answers({ 200: PageOf("emails", Email) }),
      },
    },
    async (request) => emails.listEmails(world, request.account.org_id, { ...request.query, ...pageOf(request.query) }),
  );

  api.get(
    "/v1/emails/:id",
    {
      schema: {
        operationId: "getEmail",
        tags,
        summary: "Get one e-mail, by id or Message-ID",
        params: IdParams,
        response: answers({ 200: Type.Object({ email: Email }) }, [404]),
      },
    },
    async (request) => ({ email: await emails.getEmail(world, request.account.org_id, request.params.id) }),
  );

  api.get(
    "/v1/emails/:id/events",
    {
      schema: {
        operationId: "listEmailEvents",
        tags,
        summary: "The timeline of an e-mail, oldest first",
        params: IdParams,
        response: answers({ 200: Type.Object({ events: Type.Array(Event) }) }, [404]),
      },
    },
    async (request) => ({ events: await emails.listEvents(world, request.account.org_id, request.params.id) }),
  );

  api.get(
    "/v1/emails/:id/content",
    {
      schema: {
        operationId: "getEmailContent",
        tags,
        summary: "The content of an e-mail; as it was built with `Accept: message/rfc822`",
        params: IdParams,
        response: answers({ 200: Type.Object({ content: Content }) }, [404]),
      },
    },
    async (request, reply) => {
      const { row, mime } = await emails.loadContent(world, request.account.org_id, request.params.id);
      if (/message\/rfc822/i.test(request.headers.accept ?? "")) {
        reply.header("content-disposition", `attachment; filename="${row.id}.eml"`);
        reply.header("x-content-type-options", "nosniff");
        return reply
          .type("message/rfc822")
          .serializer((bytes: unknown) => bytes as string)
          .send(mime as never);
      }
      return { content: { id: row.id, message_id: row.message_id, ...(await showContent(mime)) } };
    },
  );
}

function mountChanging(api: Api, world: World, deps: SendingRouteDeps): void {
  api.post(
    "/v1/emails/:id/retry",
    {
      schema: {
        operationId: "retryEmail",
        tags,
        summary: "Send again to recipients that failed, expired or bounced softly",
        params: IdParams,
        response: answers({ 200: Type.Object({ email: Email }) }, [404, 409]),
      },
    },
    async (request) => ({ email: await emails.retryEmail(world, deps, request.account, request.params.id) }),
  );

  api.post(
    "/v1/emails/:id/cancel",
    {
      schema: {
        operationId: "cancelEmail",
        tags,
        summary: "Cancel mail that was not attempted yet",
        params: IdParams,
        response: answers({ 200: Type.Object({ email: Email }) }, [404, 409]),
      },
    },
    async (request) => ({ email: await emails.cancelEmail(world, request.account, request.params.id) }),
  );
}
