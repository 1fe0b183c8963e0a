// /dashboard/api/operator/relays: the relays of all organizations.
import { Type } from "typebox";
import { type Api, answers, Closed, Id, Named, Nullable, OneOf, Time } from "../../http/http.ts";
import type { World } from "../../platform/world.ts";
import { RELAY_MODES, RELAY_TLS } from "../route/relays.ts";
import { listRelays } from "./relayed.ts";
import { RELAY_STATES } from "./relayed-queries.ts";

const Relay = Named(
  "OperatedRelay",
  Type.Object({
    domain_id: Id,
    domain: Type.String(),
    organization_id: Id,
    organization: Type.String(),
    host: Type.String(),
    port: Type.Integer(),
    has_login: Type.Boolean(),
    tls: OneOf(RELAY_TLS),
    mode: OneOf(RELAY_MODES),
    state: OneOf(RELAY_STATES, {
      description:
        "resting: it does not answer or refuses us, and mail waits. in_use: mail leaves through it. standby: it would be used while port 25 is closed",
    }),
    waiting: Type.Integer(),
    is_at_least: Type.Boolean({ description: "There is more: a lane is counted up to 1,000" }),
    oldest_at: Nullable(Time),
    paused_until: Nullable(Time),
    last_error: Nullable(Type.String({ description: "Why it rests, or what was said to mail that waits" })),
    created_at: Time,
    updated_at: Time,
  }),
);

/** Mounts them on the scope of the dashboard's own API. */
export function mountRelayed(api: Api, world: World): void {
  api.get(
    "/dashboard/api/operator/relays",
    {
      config: { needs: "operator" } as const,
      schema: {
        operationId: "listRelays",
        tags: ["Sources and relays"],
        summary: "List the relays of all organizations, those with the most mail first",
        querystring: Closed({
          query: Type.Optional(
            Type.String({ maxLength: 253, description: "Part of the relay's host, the domain or the organization" }),
          ),
          state: Type.Optional(OneOf(RELAY_STATES)),
          after: Type.Optional(Type.String({ maxLength: 60, description: "`next` of the page before" })),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
        }),
        response: answers({
          200: Named(
            "OperatedRelayList",
            Type.Object({
              relays: Type.Array(Relay),
              total: Type.Integer(),
              next: Nullable(Type.String()),
              port_25_is_closed: Type.Boolean({ description: "From every sending machine" }),
              read_at: Time,
            }),
          ),
        }),
      },
    },
    async (request) => listRelays(world, { ...request.query, limit: request.query.limit ?? 50 }),
  );
}
