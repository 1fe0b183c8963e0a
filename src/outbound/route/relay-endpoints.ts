// /v1/domains/{id}/relay
import { Type } from "typebox";
import {
  AnswerOf,
  type Api,
  answers,
  Closed,
  Deleted,
  IdParams,
  Named,
  Nullable,
  OneOf,
  Time,
} from "../../http/http.ts";
import type { World } from "../../platform/world.ts";
import * as relays from "./relays.ts";

const Mode = Named(
  "RelayMode",
  OneOf(relays.RELAY_MODES, {
    description:
      "always: all mail of the domain leaves through the relay. fallback: only while no server's port 25 can be reached " +
      "from the sending machine",
  }),
);
const Tls = Named(
  "RelayTls",
  OneOf(relays.RELAY_TLS, {
    description: "starttls and implicit check the relay's certificate; none is for tests on one machine only",
  }),
);

const Relay = AnswerOf(
  "relay",
  Named(
    "Relay",
    Type.Object({
      host: Type.String(),
      port: Type.Integer(),
      username: Nullable(Type.String()),
      has_password: Type.Boolean({ description: "The password itself is never shown" }),
      tls: Tls,
      mode: Mode,
      in_use: Type.Boolean({ description: "Mail leaves through it now" }),
      created_at: Time,
      updated_at: Time,
    }),
  ),
);

const Params = {
  ...IdParams,
  properties: { id: Type.String({ maxLength: 1024, description: "The domain's id or its name" }) },
} as typeof IdParams;
const RelaySettings = Closed({
  host: Type.String({ minLength: 1, maxLength: 253, description: "A public host name or address" }),
  port: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 65_535, description: "587, or 465 with `tls` implicit, when absent" }),
  ),
  username: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255 }))),
  password: Type.Optional(
    Nullable(
      Type.String({
        minLength: 1,
        maxLength: 1024,
        description: "Kept when absent, if host, port and user name stay the same",
      }),
    ),
  ),
  tls: Type.Optional({ ...Tls, default: "starttls" }),
  mode: Type.Optional({ ...Mode, default: "always" }),
});

const tags = ["Domains"];

/** Mounts the endpoints of a domain's relay. */
export function mountRelays(api: Api, world: World): void {
  api.get(
    "/v1/domains/:id/relay",
    {
      schema: {
        operationId: "getDomainRelay",
        tags,
        summary: "The relay of a domain; 404 when it has none",
        description: "The password is never shown.",
        params: Params,
        response: answers({ 200: Relay }, [404]),
      },
    },
    async (request) => ({ relay: await relays.getRelay(world, request.account.org_id, request.params.id) }),
  );

  api.put(
    "/v1/domains/:id/relay",
    {
      config: { live_keys_only: "change the relay of a domain" },
      schema: {
        operationId: "setDomainRelay",
        tags,
        summary: "Send the domain's mail through a relay (SMTP with login) instead of to the recipients' servers",
        description:
          "Sets the relay as a whole; it is in effect within seconds, for mail that waits as well. The timeline shows " +
          "it as `mx_host`.",
        params: Params,
        body: RelaySettings,
        response: answers({ 200: Relay }, [404]),
      },
    },
    async (request) => ({
      relay: await relays.putRelay(world, request.account.org_id, request.params.id, request.body),
    }),
  );

  api.delete(
    "/v1/domains/:id/relay",
    {
      config: { live_keys_only: "change the relay of a domain" },
      schema: {
        operationId: "deleteDomainRelay",
        tags,
        summary: "Send the domain's mail directly again",
        description: "Mail that waits goes directly to the servers of its recipients, too.",
        params: Params,
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async (request) => ({
      deleted: true,
      id: await relays.deleteRelay(world, request.account.org_id, request.params.id),
    }),
  );
}
