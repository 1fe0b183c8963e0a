// /v1/send and /v1/send/batch
import { Type } from "@sinclair/typebox";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Api, answers, Closed, ErrorBody, Id, OneOf, RateLimitBody } from "../platform/http.ts";
import type { Refusal } from "../platform/refusal.ts";
import { findUnstorable } from "../platform/storable.ts";
import type { World } from "../platform/world.ts";
import { BATCH_MAX, type BatchDeps, sendBatch, VALIDATIONS } from "./accept/batch.ts";
import { createIdempotency, type Idempotency, type Replay, readKey } from "./accept/idempotency.ts";
import { type EmailRouteDeps, mountEmails } from "./emails/email-routes.ts";
import { requestHash, type Sending } from "./sending.ts";
import { AllSuppressed, REQUEST_BYTES_MAX, SendAnswerShape, SendBody, SuppressedList } from "./shape.ts";

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

const IdempotencyHeader = Type.Object({
  "idempotency-key": Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      pattern: "^[ -~]+$",
      description: "1–256 printable ASCII characters, kept 72 h",
    }),
  ),
});
const tags = ["Sending"];

export type SendingRouteDeps = EmailRouteDeps & {
  sending: Sending;
  /** A complaint of the validator as the refusal a request would get. */
  shapeRefusal: (errors: unknown) => Refusal;
  refusalBody: BatchDeps["refusalBody"];
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
  mountEmails(api, world, deps);
}

type SendCall = FastifyRequest & { body: Parameters<Sending["prepare"]>[1] };

async function send(sending: Sending, idempotency: Idempotency, request: SendCall, reply: FastifyReply) {
  const key = readKey(request.headers["idempotency-key"]);
  const { account } = request;
  const hold = (bytes: number): void => request.holdBytes(bytes);
  if (key === null) {
    const prepared = await sending.prepare(account, request.body, hold);
    const answer = sending.answerOf(prepared);
    await sending.accept([prepared], null);
    return reply.code(202).send(answer);
  }
  const hash = requestHash("send", request.rawBody);
  const { replayed, answer } = await idempotency.once(
    account,
    { key, hash },
    async (row): Promise<Replay | "duplicate_key"> => {
      const prepared = await sending.prepare(account, request.body, hold);
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
  const batch: CommonDeps = {
    sending: deps.sending,
    shapeProblem: (item) => (isItem(item) ? null : deps.shapeRefusal(isItem.errors)),
    refusalBody: deps.refusalBody,
  };
  api.post(
    "/v1/send/batch",
    {
      bodyLimit: REQUEST_BYTES_MAX,
      // An item that has not the shape of an e-mail is that item's result, so the body is judged item by item.
      config: { judges_items: true },
      validatorCompiler: (route) => (route.httpPart === "body" ? () => true : compile(route as never)),
      schema: {
        operationId: "sendBatch",
        tags,
        summary: "Send up to 100 e-mails in one call",
        description:
          "202 when at least one e-mail is accepted; all accepted ones are stored durably together. When none is: 422 if " +
          "all recipients are suppressed, 429 if a limit is in the way, else 400, each with the `results`. An " +
          "Idempotency-Key covers the whole call. What templates make of one call has at most 24 MiB: the e-mails beyond " +
          "are rejected with `payload_too_large`.",
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

/** Without what is the call's own. */
type CommonDeps = Omit<BatchDeps, "hold">;

async function sendMany(deps: CommonDeps, idempotency: Idempotency, request: FastifyRequest, reply: FastifyReply) {
  const key = readKey(request.headers["idempotency-key"]);
  const { account, body } = request;
  const judging = request.unstorable ? withTextJudged(deps) : deps;
  const batch = { ...judging, hold: (bytes: number) => request.holdBytes(bytes) };
  if (key === null) return giveAnswer(reply, (await sendBatch(batch, account, body, null)) as Replay, false);
  const hash = requestHash("batch", request.rawBody);
  const work = (row: Parameters<typeof sendBatch>[3]) => sendBatch(batch, account, body, row);
  const { replayed, answer } = await idempotency.once(account, { key, hash }, work);
  return giveAnswer(reply, answer, replayed);
}

/** Judges the text of each item, too, where something in the call cannot be stored. */
function withTextJudged(deps: CommonDeps): CommonDeps {
  return { ...deps, shapeProblem: (item) => findUnstorable(item) ?? deps.shapeProblem(item) };
}
