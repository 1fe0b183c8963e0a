// /v1/webhooks and /v1/webhook-deliveries
import { Type } from "typebox";
import { protectLive } from "../accounts/accounts.ts";
import {
  type Account,
  AnswerOf,
  type Api,
  answers,
  Closed,
  Deleted,
  Environment,
  Id,
  IdParams,
  Named,
  Nullable,
  OneOf,
  PageOf,
  PageQuery,
  pageOf,
  Time,
} from "../http/http.ts";
import { isUuid } from "../platform/database/db.ts";
import { invalid } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import * as deliveries from "./deliveries.ts";
import { mountEvents } from "./stream/stream-routes.ts";
import { DELIVERY_STATUSES, EVENT_TYPES } from "./types.ts";
import * as webhooks from "./webhooks.ts";

const Webhook = Named(
  "Webhook",
  Type.Object({
    id: Id,
    webhook_url: Type.String(),
    event_types: Type.Array(OneOf(EVENT_TYPES)),
    has_secret: Type.Boolean({ description: "Whether deliveries are signed; the secret itself is never shown again" }),
    domain_id: Nullable({
      ...Id,
      description: "Outbound events of this domain only; also the domain's catch-all route",
    }),
    match_pattern: Nullable(Type.String()),
    enabled: Type.Boolean(),
    environment: { ...Environment, description: "test: made with a test key; it gets events of test mail only" },
    previous_secret_expires_at: Nullable({ ...Time, description: "Until then two signatures are sent" }),
    consecutive_failures: Type.Integer({ description: "Failed attempts since the last success" }),
    last_success_at: Nullable(Time),
    created_at: Time,
    updated_at: Time,
  }),
);

const Secret = Type.String({ description: "The signing secret, prefix whsec_; shown only here" });
const Url = Type.String({ maxLength: 2048, description: "https; no private or otherwise internal address" });
const Events = Type.Array(OneOf(EVENT_TYPES), { minItems: 1, maxItems: EVENT_TYPES.length, uniqueItems: true });
const MatchPattern = Type.String({
  maxLength: 256,
  description:
    "Tested on the recipient: a glob (`*`, `?`) for the whole address, or `re:` and an RE2 expression. An organization's " +
    "expressions have at most 2,000 instructions together",
});

const Delivery = Named(
  "WebhookDelivery",
  Type.Object({
    id: Id,
    endpoint_id: Id,
    event_id: Type.String({ format: "uuid", description: "The same on every attempt and replay; deduplicate by it" }),
    event: OneOf(EVENT_TYPES),
    attempt: Type.Integer({ description: "Attempts made so far" }),
    status: OneOf(DELIVERY_STATUSES),
    status_code: Nullable(Type.Integer({ description: "Of the last attempt; null when no answer came" })),
    error: Nullable(Type.String({ description: "Why the last attempt failed" })),
    duration_ms: Nullable(Type.Integer()),
    attempt_id: Nullable(Type.String({ format: "uuid", description: "X-Service-Delivery-ID of the last attempt" })),
    created_at: Time,
    next_attempt_at: Nullable(Time),
  }),
);

const LogQuery = {
  status: Type.Optional(OneOf(DELIVERY_STATUSES)),
  event: Type.Optional(OneOf(EVENT_TYPES)),
  days: Type.Optional(Type.Integer({ minimum: 1, maximum: 90, default: 7 })),
  ...PageQuery,
};
const EVENT_IDS_MAX = 100;
const DeliveryPage = PageOf("deliveries", Delivery, {
  warnings: Type.Array(Type.String({ description: "Sentences on endpoints in trouble" })),
});

/** A request without a body arrives as null. */
const NoBody = Nullable(Closed({}));

const tags = ["Webhooks"];

/** Mounts the webhook endpoints. */
export function mountWebhooks(api: Api, world: World): void {
  mountEndpoints(api, world);
  mountRemoval(api, world);
  mountUpdate(api, world);
  mountRotate(api, world);
  mountTest(api, world);
  mountLog(api, world);
  mountEndpointLog(api, world);
  mountEvents(api, world);
  mountReplays(api, world);
}

function mountEndpoints(api: Api, world: World): void {
  api.post(
    "/v1/webhooks",
    {
      schema: {
        operationId: "createWebhook",
        tags,
        summary: "Create a webhook endpoint; the signing secret is shown once",
        description:
          "Events are posted to the URL as JSON, signed with the secret that this answers. `email.received` also needs an alias or a catch-all that names the endpoint.",
        body: Closed({
          url: Url,
          events: Type.Optional({ ...Events, description: 'Default ["email.received"]' }),
          domain_id: Type.Optional(
            Nullable(
              Type.String({
                minLength: 1,
                maxLength: 1024,
                description: "Id or name. Outbound events of it only; also its catch-all route",
              }),
            ),
          ),
          match_pattern: Type.Optional(Nullable(MatchPattern)),
        }),
        response: answers({ 201: Type.Object({ webhook: Webhook, secret: Secret }) }, [404]),
      },
    },
    async (request, reply) => reply.code(201).send(await webhooks.createWebhook(world, request.account, request.body)),
  );

  api.get(
    "/v1/webhooks",
    {
      schema: {
        operationId: "listWebhooks",
        tags,
        summary: "List webhook endpoints",
        description: "Newest first. Secrets are never shown again.",
        querystring: Closed(PageQuery),
        response: answers({ 200: PageOf("webhooks", Webhook) }),
      },
    },
    async (request) => webhooks.listWebhooks(world, request.account.org_id, pageOf(request.query)),
  );

  api.get(
    "/v1/webhooks/:id",
    {
      schema: {
        operationId: "getWebhook",
        tags,
        summary: "Get a webhook endpoint",
        description: "The endpoint as it is set, and how its deliveries have gone.",
        params: IdParams,
        response: answers({ 200: AnswerOf("webhook", Webhook) }, [404]),
      },
    },
    async (request) => ({ webhook: await webhooks.getWebhook(world, request.account.org_id, request.params.id) }),
  );
}

function mountRemoval(api: Api, world: World): void {
  api.delete(
    "/v1/webhooks/:id",
    {
      schema: {
        operationId: "deleteWebhook",
        tags,
        summary: "Delete a webhook endpoint and what is queued for it",
        description: "Deliveries that wait are dropped; the log keeps what was sent.",
        params: IdParams,
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async (request) => {
      await protectWebhook(world, request, "delete the webhook of a live key");
      await webhooks.deleteWebhook(world, request.account.org_id, request.params.id);
      return { deleted: true, id: request.params.id };
    },
  );
}

function mountUpdate(api: Api, world: World): void {
  api.put(
    "/v1/webhooks/:id",
    {
      schema: {
        operationId: "updateWebhook",
        tags,
        summary: "Change the given fields of a webhook endpoint",
        description:
          "A disabled endpoint gets no new events; what it has queued waits 3 days for `enabled: true`, then fails. " +
          "One that answered 410 is disabled, and what it had queued fails at once.",
        params: IdParams,
        body: Closed({
          url: Type.Optional(Url),
          events: Type.Optional(Events),
          match_pattern: Type.Optional(Nullable(MatchPattern)),
          enabled: Type.Optional(Type.Boolean()),
        }),
        response: answers({ 200: AnswerOf("webhook", Webhook) }, [404]),
      },
    },
    async (request) => {
      await protectWebhook(world, request, "change the webhook of a live key");
      const webhook = await webhooks.changeWebhook(world, request.account.org_id, request.params.id, request.body);
      return { webhook };
    },
  );
}

function mountRotate(api: Api, world: World): void {
  api.post(
    "/v1/webhooks/:id/rotate",
    {
      config: { live_keys_only: "rotate the secret of a webhook" },
      schema: {
        operationId: "rotateWebhookSecret",
        tags,
        summary: "Give a webhook endpoint a new signing secret; it is shown once",
        description:
          "For `grace_seconds` each delivery carries two signatures, one by each secret, so that receivers can change over. 0 stops the previous secret at once.",
        params: IdParams,
        body: Nullable(
          Closed({
            grace_seconds: Type.Optional(
              Type.Integer({
                minimum: 0,
                maximum: webhooks.GRACE_S_MAX,
                default: webhooks.GRACE_S_DEFAULT,
                description: "How long the previous secret signs too; 0 stops it at once",
              }),
            ),
          }),
        ),
        response: answers({ 200: Type.Object({ secret: Secret, grace_seconds: Type.Integer() }) }, [404]),
      },
    },
    async (request) => {
      const graceS = request.body?.grace_seconds ?? webhooks.GRACE_S_DEFAULT;
      return webhooks.rotateSecret(world, request.account.org_id, request.params.id, graceS);
    },
  );
}

function mountTest(api: Api, world: World): void {
  api.post(
    "/v1/webhooks/:id/test",
    {
      schema: {
        operationId: "testWebhook",
        tags,
        summary: "Send a sample event now and answer with the outcome",
        description: "Sent even if the endpoint is disabled or does not subscribe to it. One attempt.",
        params: IdParams,
        body: Nullable(
          Closed({
            event: Type.Optional({ ...OneOf(EVENT_TYPES), description: "Default: the first event it subscribes to" }),
          }),
        ),
        response: answers({ 200: AnswerOf("delivery", Delivery) }, [404, 409]),
      },
    },
    async (request) => ({
      delivery: await deliveries.testWebhook(world, request.account.org_id, request.params.id, request.body?.event),
    }),
  );
}

function mountLog(api: Api, world: World): void {
  api.get(
    "/v1/webhook-deliveries",
    {
      schema: {
        operationId: "listWebhookDeliveries",
        tags,
        summary: "List webhook deliveries, newest first",
        description:
          "Of all endpoints. Failed deliveries are kept for 30 days. `warnings` names endpoints that fail often.",
        querystring: Closed({
          ...LogQuery,
          endpoint_id: Type.Optional(Id),
          event_ids: Type.Optional(Type.String({ description: "Up to 100, such as those of a timeline: `a,b`" })),
        }),
        response: answers({ 200: DeliveryPage }),
      },
    },
    async (request) => {
      const { days = 7, limit: _limit, offset: _offset, event_ids, ...filter } = request.query;
      const wanted = { ...filter, days, event_ids: event_ids === undefined ? undefined : readIds(event_ids) };
      return deliveries.listDeliveries(world, request.account.org_id, wanted, pageOf(request.query));
    },
  );
}

function readIds(list: string): string[] {
  const ids = list.split(",").map((id) => id.trim());
  if (ids.every(isUuid) && ids.length <= EVENT_IDS_MAX) return ids;
  throw invalid(
    "event_ids",
    `the 'event_ids' parameter must be 1 to ${EVENT_IDS_MAX} ids of events, separated by commas`,
  );
}

function mountEndpointLog(api: Api, world: World): void {
  api.get(
    "/v1/webhooks/:id/deliveries",
    {
      schema: {
        operationId: "listDeliveriesOfWebhook",
        tags,
        summary: "List the deliveries of one webhook endpoint, newest first",
        description: "As `/v1/webhook-deliveries` lists them, of this endpoint alone.",
        params: IdParams,
        querystring: Closed(LogQuery),
        response: answers({ 200: DeliveryPage }, [404]),
      },
    },
    async (request) => {
      const { days = 7, limit: _limit, offset: _offset, ...filter } = request.query;
      const { id } = await webhooks.getWebhook(world, request.account.org_id, request.params.id);
      const wanted = { ...filter, endpoint_id: id, days };
      return deliveries.listDeliveries(world, request.account.org_id, wanted, pageOf(request.query));
    },
  );
}

function mountReplays(api: Api, world: World): void {
  api.post(
    "/v1/webhook-deliveries/:id/replay",
    {
      schema: {
        operationId: "replayWebhookDelivery",
        tags,
        summary: "Send a finished delivery again, or a queued one now",
        description: "The same event with the same body and `event_id`; the attempt is new and signed again.",
        params: IdParams,
        body: NoBody,
        response: answers({ 202: AnswerOf("delivery", Delivery) }, [404, 409]),
      },
    },
    async (request, reply) => {
      const { account, params } = request;
      const find = () => deliveries.environmentOf(world, account.org_id, params.id);
      await protectLive(account, "replay to the webhook of a live key", find);
      const delivery = await deliveries.replayDelivery(world, request.account.org_id, request.params.id);
      return reply.code(202).send({ delivery });
    },
  );

  api.post(
    "/v1/webhooks/:id/replay",
    {
      schema: {
        operationId: "replayWebhookRange",
        tags,
        summary: "Send again what failed (or was delivered) in a time range",
        description: "At most 10,000 a call; each delivery is taken once. Call again while `remaining` is not 0.",
        params: IdParams,
        body: Closed({
          from: Type.String({ format: "date-time" }),
          to: Type.Optional(Type.String({ format: "date-time", description: "Default: now" })),
          status: Type.Optional(OneOf(["failed", "delivered"], { default: "failed" })),
        }),
        response: answers({ 202: Type.Object({ replayed: Type.Integer(), remaining: Type.Integer() }) }, [404, 409]),
      },
    },
    async (request, reply) => {
      await protectWebhook(world, request, "replay to the webhook of a live key");
      const counts = await deliveries.replayRange(world, request.account.org_id, request.params.id, request.body);
      return reply.code(202).send(counts);
    },
  );
}

type OfWebhook = { account: Account; params: { id: string } };

function protectWebhook(world: World, { account, params }: OfWebhook, what: string): Promise<void> {
  return protectLive(account, what, () => webhooks.environmentOf(world, account.org_id, params.id));
}
