// /dashboard/api/operator/queue: the queue by destination, and what operators order for one.
import { Type } from "typebox";
import { AnswerOf, type Api, answers, Closed, Id, Named, Nullable, OneOf, Time } from "../../http/http.ts";
import type { World } from "../../platform/world.ts";
import { listDestinations, readDestinationView } from "./destinations.ts";
import { DESTINATION_STATES } from "./operate-queries.ts";
import * as orders from "./orders.ts";

const tags = ["Queue"];
const OPERATOR = { needs: "operator" } as const;
const QUEUE = "/dashboard/api/operator/queue";
const NOTE_LENGTH_MAX = 300;

const Suspension = {
  suspended_at: Nullable(Time),
  suspended_by: Nullable(Type.String()),
  note: Nullable(Type.String()),
  is_dropping: Type.Boolean({ description: "What was dropped is being worked off" }),
  dropped: Type.Integer({ description: "By the last drop, so far" }),
};

const Destination = Named(
  "QueuedDestination",
  Type.Object({
    domain: Type.String(),
    state: OneOf(DESTINATION_STATES, {
      description:
        "suspended: by an operator. resting: its servers do not answer or refuse us. due: mail may leave now. waiting: all of it waits for its time",
    }),
    due: Type.Integer(),
    in_hand: Type.Integer({ description: "Of a sending process now" }),
    deferred: Type.Integer({ description: "Tried, and not due" }),
    scheduled: Type.Integer({ description: "Not tried yet, and not due" }),
    is_at_least: Type.Boolean({ description: "There is more: a lane is counted up to 1,000 here" }),
    organizations: Type.Integer(),
    first_due_at: Nullable(Time),
    oldest_at: Nullable(Type.Unsafe<Date | string>({ ...Time, description: "When the oldest was accepted" })),
    paused_until: Nullable(Time),
    last_reply: Nullable(Type.String()),
    ...Suspension,
  }),
);

const Lane = Named(
  "QueuedLane",
  Type.Object({
    organization_id: Id,
    organization: Type.String(),
    class: OneOf(["transactional", "bulk"]),
    ip: Nullable(Type.String({ description: "null: the shared address" })),
    pool: Nullable(Type.String()),
    by_relay: Type.Boolean({ description: "Leaves through the relay of its sender's domain" }),
    due: Type.Integer(),
    in_hand: Type.Integer(),
    deferred: Type.Integer(),
    scheduled: Type.Integer(),
    oldest_at: Nullable(Time),
    next_due_at: Nullable(Time),
    paused_until: Nullable(Time),
    reason: Nullable(Type.String({ description: "Why its site rests" })),
    why: OneOf(["suspended", "organization_waits", "resting", "due", "in_hand", "deferred", "scheduled"]),
  }),
);

const DestinationView = Named(
  "QueuedDestinationView",
  Type.Object({
    domain: Type.String(),
    waiting: Type.Integer({ description: "Exact at read_at" }),
    ...Suspension,
    lanes: Type.Array(Lane, { description: "Those with the most mail, at most 100" }),
    lanes_total: Type.Integer(),
    read_at: Time,
  }),
);
const One = AnswerOf("destination", DestinationView);

const params = Type.Object({ domain: Type.String({ maxLength: 1024 }) });

/** Mounts them on the scope of the dashboard's own API. */
export function mountQueue(api: Api, world: World): void {
  mountReading(api, world);
  mountSuspending(api, world);
  mountWork(api, world);
}

function mountReading(api: Api, world: World): void {
  api.get(
    QUEUE,
    {
      config: OPERATOR,
      schema: {
        operationId: "listQueue",
        tags,
        summary: "List destinations with mail, those with the most first, and those that are suspended",
        querystring: Closed({
          query: Type.Optional(Type.String({ maxLength: 253, description: "Part of the domain" })),
          state: Type.Optional(OneOf(DESTINATION_STATES)),
          after: Type.Optional(Type.String({ maxLength: 300, description: "`next` of the page before" })),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
        }),
        response: answers({
          200: Named(
            "QueuedDestinationList",
            Type.Object({
              destinations: Type.Array(Destination),
              total: Type.Integer(),
              next: Nullable(Type.String()),
              read_at: Time,
            }),
          ),
        }),
      },
    },
    async (request) => listDestinations(world, { ...request.query, limit: request.query.limit ?? 50 }),
  );

  api.get(
    `${QUEUE}/:domain`,
    {
      config: OPERATOR,
      schema: {
        operationId: "getQueueDestination",
        tags,
        summary: "One destination with its lanes, counted whole",
        params,
        response: answers({ 200: One }, [404]),
      },
    },
    async (request) => ({
      destination: await readDestinationView(world, orders.readDestination(request.params.domain)),
    }),
  );
}

function mountSuspending(api: Api, world: World): void {
  api.post(
    `${QUEUE}/:domain/suspend`,
    {
      config: OPERATOR,
      schema: {
        operationId: "suspendDestination",
        tags,
        summary: "Let mail to a destination wait, of every organization",
        description:
          "Within seconds nothing of it is begun. It has a day left from then on, and the sender's own `expires_at` holds.",
        params,
        body: Closed({ note: Type.Optional(Nullable(Type.String({ maxLength: NOTE_LENGTH_MAX }))) }),
        response: answers({ 200: One }, [404, 409]),
      },
    },
    async (request) => {
      const domain = orders.readDestination(request.params.domain);
      await orders.suspend(world, domain, request.body.note?.trim() || null, {
        person: request.session.person,
        request,
      });
      return { destination: await readDestinationView(world, domain) };
    },
  );

  api.post(
    `${QUEUE}/:domain/resume`,
    {
      config: OPERATOR,
      schema: {
        operationId: "resumeDestination",
        tags,
        summary: "Let it leave again; what is left of a drop stays",
        params,
        response: answers({ 200: One }, [404, 409]),
      },
    },
    async (request) => {
      const domain = orders.readDestination(request.params.domain);
      await orders.resume(world, domain, { person: request.session.person, request });
      return { destination: await readDestinationView(world, domain) };
    },
  );
}

function mountWork(api: Api, world: World): void {
  api.post(
    `${QUEUE}/:domain/retry`,
    {
      config: OPERATOR,
      schema: {
        operationId: "retryDestination",
        tags,
        summary: "Try deferred mail now, at most 50,000 deliveries of it, and call servers that rest",
        params,
        response: answers(
          {
            200: Named(
              "RetriedDestination",
              Type.Object({
                hastened: Type.Integer({ description: "Deliveries that are due now" }),
                more: Type.Boolean({ description: "There are more: ask again" }),
              }),
            ),
          },
          [404, 409],
        ),
      },
    },
    async (request) =>
      orders.retry(world, orders.readDestination(request.params.domain), { person: request.session.person, request }),
  );

  api.post(
    `${QUEUE}/:domain/drop`,
    {
      config: { ...OPERATOR, dangerous: true },
      schema: {
        operationId: "dropDestination",
        tags,
        summary: "Give up what waits for a suspended destination",
        description:
          "Each recipient becomes `failed` with an `email.bounced`; its sender may send it again. It is worked off in the background.",
        params,
        body: Closed({
          accepted_before: { ...Time, description: "`read_at` of the count that was confirmed: later mail stays" },
        }),
        response: answers({ 200: One }, [404, 409]),
      },
    },
    async (request) => {
      const domain = orders.readDestination(request.params.domain);
      const before = new Date(request.body.accepted_before);
      await orders.drop(world, domain, before, { person: request.session.person, request });
      return { destination: await readDestinationView(world, domain) };
    },
  );
}
