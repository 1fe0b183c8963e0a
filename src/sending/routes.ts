// /v1/send and /v1/send/batch

import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import {
  type Api,
  answers,
  Closed,
  Environment,
  ErrorBody,
  Extended,
  Id,
  Named,
  OneOf,
  OneOfKinds,
  RateLimitBody,
} from "../http/http.ts";
import { IdempotencyHeader, readKey } from "../http/idempotency-key.ts";
import { findUnstorable } from "../platform/database/storable.ts";
import type { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { BATCH_MAX, type BatchDeps, sendBatch, VALIDATIONS } from "./accept/batch.ts";
import { createIdempotency, type Idempotency, type Replay } from "./accept/idempotency.ts";
import { type EmailRouteDeps, mountEmails } from "./emails/email-routes.ts";
import { requestHash, type Sending } from "./sending.ts";
import {
  ACCEPTED_STATUSES,
  AllSuppressed,
  quota,
  REQUEST_BYTES_MAX,
  SendAnswerShape,
  SendBody,
  SuppressedList,
} from "./shape.ts";

/** A hundred e-mails of 5 KB: they are composed in turns with everything else, so that only reading the call is work of one piece. */
const LIGHT_BATCH_BYTES_MAX = 512 * 1024;

const Emails = Type.Array(SendBody, {
  minItems: 1,
  maxItems: BATCH_MAX,
  description: "The e-mails, each as for a single send",
});

const BatchBody = Type.Union(
  [
    Emails,
    Named(
      "Batch",
      Closed(
        {
          emails: Emails,
          validation: Type.Optional(
            OneOf(VALIDATIONS, {
              default: "permissive",
              description: "permissive: what can be sent is sent; strict: all e-mails or none",
            }),
          ),
        },
        { description: "E-mails, and what happens to all of them when one is at fault" },
      ),
    ),
  ],
  { description: "The e-mails alone, or with settings for all of them" },
);

const index = Type.Integer({ description: "Place in the request, from 0" });
const BatchAccepted = Named(
  "BatchAccepted",
  Type.Object(
    {
      index,
      status: OneOf(ACCEPTED_STATUSES, { description: "As for a single send" }),
      id: Id,
      message_id: Type.String({ description: "The Message-ID, without angle brackets" }),
      suppressed: SuppressedList,
    },
    { additionalProperties: true, description: "An e-mail of a batch that was accepted" },
  ),
);
const { request_id: _none, ...errorFields } = ErrorBody.properties;
const BatchRejected = Named(
  "BatchRejected",
  Type.Object(
    {
      index,
      status: OneOf(["rejected"], { description: "Always rejected" }),
      ...errorFields,
      suppressed: Type.Optional(SuppressedList),
    },
    {
      additionalProperties: true,
      description:
        "An e-mail of a batch that was declined, with the error that a single send would answer. " +
        "batch_rejected: another e-mail of a strict batch is at fault",
    },
  ),
);
const BatchResult = OneOfKinds("BatchResult", "status", [BatchAccepted, BatchRejected]);

const accepted = Type.Integer({ description: "How many e-mails were accepted" });
const rejected = Type.Integer({ description: "How many e-mails were declined" });
const results = Named(
  "BatchResults",
  Type.Array(BatchResult, { description: "One for each e-mail, in the order of the request" }),
);
const BatchAnswerShape = Named(
  "BatchAnswer",
  Type.Object(
    { accepted, rejected, environment: Environment, results, ...quota },
    { description: "What became of each e-mail of a batch" },
  ),
);

/** An error of a whole batch; one that is found before its e-mails are looked at has no results. */
const withResults = {
  accepted: Type.Optional(accepted),
  rejected: Type.Optional(rejected),
  results: Type.Optional(results),
};
const BatchError = Extended("BatchError", ErrorBody, withResults);
const BatchSuppressed = Extended("BatchSuppressed", AllSuppressed, withResults);
const BatchLimited = Extended("BatchLimited", RateLimitBody, withResults);

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
    async (row, isNew): Promise<Replay | "duplicate_key"> => {
      const prepared = await sending.prepare(account, request.body, hold, isNew);
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
      config: { judges_items: true, light_bytes_max: LIGHT_BATCH_BYTES_MAX },
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
            ...BatchError,
            description: "Any other error, as of every operation; 400 may have the `results`",
          }),
          409: Type.Unsafe({
            ...Type.Ref("Error"),
            description: "The Idempotency-Key was used with another request",
          }),
          422: Type.Unsafe({ ...BatchSuppressed, description: "All recipients are suppressed" }),
          429: Type.Unsafe({ ...BatchLimited, description: "A rate or sending limit is exceeded" }),
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
  const { replayed, answer } = await idempotency.once(account, { key, hash }, async (row, isNew) => {
    await isNew;
    return sendBatch(batch, account, body, row);
  });
  return giveAnswer(reply, answer, replayed);
}

/** Judges the text of each item, too, where something in the call cannot be stored. */
function withTextJudged(deps: CommonDeps): CommonDeps {
  return { ...deps, shapeProblem: (item) => findUnstorable(item) ?? deps.shapeProblem(item) };
}
