// /dashboard/api/operator/sources: the sending addresses of all organizations, and taking one out of use.
import { Type } from "typebox";
import { AnswerOf, type Api, answers, Closed, Id, Named, Nullable, OneOf, Time } from "../../http/http.ts";
import type { World } from "../../platform/world.ts";
import { SOURCE_STATES } from "./source-queries.ts";
import * as sources from "./sources.ts";

const tags = ["Sources and relays"];
const OPERATOR = { needs: "operator" } as const;
const SOURCES = "/dashboard/api/operator/sources";
const NOTE_LENGTH_MAX = 300;

const Reverse = Named(
  "ReverseName",
  Type.Object({
    state: OneOf(sources.REVERSE_STATES, {
      description:
        "matches: the address has the name of its EHLO, which leads back to it. differs: it has other names. one_way: the name does not lead back. missing: it has none. unknown: it could not be looked up",
    }),
    names: Type.Array(Type.String()),
  }),
);

const Source = Named(
  "OperatedSource",
  Type.Object({
    id: Id,
    ip: Nullable(Type.String({ description: "null: the machines' own address, which all organizations share" })),
    ehlo: Type.String(),
    organization_id: Nullable(Id),
    organization: Nullable(Type.String()),
    pool: Nullable(Type.String()),
    weight: Type.Integer(),
    state: OneOf(SOURCE_STATES, {
      description:
        "unavailable: no sending machine has it. out_of_use: an operator took it out. leaving: its pool has it no longer, and mail that was placed there leaves from the others",
    }),
    machines: Type.Array(Type.String(), { description: "Sending machines that have it" }),
    reverse: Nullable(Reverse),
    warmup: Nullable(
      Named(
        "OperatedWarmup",
        Type.Object({ day: Type.Integer(), daily_limit: Type.Integer(), used_today: Type.Integer() }),
      ),
    ),
    waiting: Type.Integer({ description: "Deliveries that were placed here and wait" }),
    is_at_least: Type.Boolean({ description: "There is more: a lane is counted up to 1,000" }),
    resting: Type.Integer({ description: "Destinations whose servers rest for mail from here" }),
    resting_reason: Nullable(Type.String()),
    last_7_days: Named(
      "OperatedFigures",
      Type.Object({
        delivered: Type.Integer(),
        deferred: Type.Integer(),
        bounced: Type.Integer(),
        blocked: Type.Integer({ description: "Of the deferred and bounced: refused for the address itself" }),
      }),
    ),
    held_at: Nullable(Time),
    held_by: Nullable(Type.String()),
    held_note: Nullable(Type.String()),
  }),
);
const One = AnswerOf("source", Source);
const params = Type.Object({ id: Type.String({ maxLength: 100 }) });

/** Mounts them on the scope of the dashboard's own API. */
export function mountSources(api: Api, world: World): void {
  api.get(
    SOURCES,
    {
      config: OPERATOR,
      schema: {
        operationId: "listSources",
        tags,
        summary: "List sending addresses in their order, the shared one first",
        querystring: Closed({
          query: Type.Optional(
            Type.String({ maxLength: 253, description: "Part of the address, its name, its pool or its organization" }),
          ),
          state: Type.Optional(OneOf(SOURCE_STATES)),
          after: Type.Optional(Type.String({ maxLength: 100, description: "`next` of the page before" })),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
        }),
        response: answers({
          200: Named(
            "OperatedSourceList",
            Type.Object({
              sources: Type.Array(Source),
              total: Type.Integer(),
              next: Nullable(Type.String()),
              read_at: Time,
            }),
          ),
        }),
      },
    },
    async (request) => sources.listSources(world, { ...request.query, limit: request.query.limit ?? 50 }),
  );
  mountOrders(api, world);
}

function mountOrders(api: Api, world: World): void {
  api.post(
    `${SOURCES}/:id/hold`,
    {
      config: OPERATOR,
      schema: {
        operationId: "holdSource",
        tags,
        summary: "Take an address out of use",
        description:
          "Within seconds mail of its pool leaves from the pool's other addresses. If the pool has no other address, its mail is deferred and may expire.",
        params,
        body: Closed({ note: Type.Optional(Nullable(Type.String({ maxLength: NOTE_LENGTH_MAX }))) }),
        response: answers({ 200: One }, [404, 409]),
      },
    },
    async (request) => {
      const { person } = request.session;
      const note = request.body.note?.trim() || null;
      return { source: await sources.holdSource(world, request.params.id, { person, request, note }) };
    },
  );

  api.post(
    `${SOURCES}/:id/give-back`,
    {
      config: OPERATOR,
      schema: {
        operationId: "giveBackSource",
        tags,
        summary: "Use it again",
        params,
        response: answers({ 200: One }, [404, 409]),
      },
    },
    async (request) => {
      const { person } = request.session;
      return { source: await sources.giveBackSource(world, request.params.id, { person, request }) };
    },
  );
}
