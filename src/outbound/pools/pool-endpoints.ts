// /v1/ip-pools
import { Type } from "typebox";
import {
  AnswerOf,
  type Api,
  answers,
  Closed,
  Deleted,
  Id,
  IdParams,
  Named,
  Nullable,
  OneOf,
  PageOf,
  PageQuery,
  pageOf,
  Time,
} from "../../http/http.ts";
import type { World } from "../../platform/world.ts";
import * as pools from "./pools.ts";

const Figures = Named(
  "IpPoolFigures",
  Type.Object({
    delivered: Type.Integer(),
    deferred: Type.Integer(),
    bounced: Type.Integer(),
    blocked: Type.Integer({ description: "Of the deferred and bounced: refused for the address itself" }),
  }),
);

const Address = Named(
  "IpPoolAddress",
  Type.Object({
    ip: Type.String(),
    ehlo: Type.String({ description: "The name it gives in EHLO; its reverse DNS should say the same" }),
    weight: Type.Integer(),
    state: OneOf(["ready", "warming", "unavailable"], {
      description: "unavailable: no sending machine has this address now; others of the pool send its mail",
    }),
    warmup: Nullable(
      Named(
        "IpPoolWarmup",
        Type.Object(
          {
            started_at: Time,
            day: Type.Integer({ description: "From 1, by calendar days (UTC)" }),
            daily_limit: Type.Integer({ description: "Attempts that this address may make today" }),
            used_today: Type.Integer(),
          },
          { description: "null: no daily limit" },
        ),
      ),
    ),
    today: Figures,
    last_7_days: Figures,
  }),
);

const Pool = Named(
  "IpPool",
  Type.Object({
    id: Id,
    name: Type.String(),
    ips: Type.Array(Address),
    created_at: Time,
    updated_at: Time,
  }),
);

const Addresses = Type.Array(
  Named(
    "IpPoolAddressRequest",
    Closed({
      ip: Type.String({ minLength: 2, maxLength: 45, description: "An address of a sending machine" }),
      ehlo: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 253 }))),
      weight: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 100, default: 1, description: "Its share of the pool's mail" }),
      ),
      warmup: Type.Optional(
        Type.Boolean({
          default: true,
          description: "Raise its daily limit from 50 over some weeks; false for an address that is warm already",
        }),
      ),
    }),
  ),
  { minItems: 1, maxItems: pools.ADDRESSES_MAX },
);

const Params = {
  ...IdParams,
  properties: { id: Type.String({ maxLength: 1024, description: "The pool's id or its name" }) },
} as typeof IdParams;
const tags = ["IP pools"];

/** Mounts the endpoints of IP pools. */
export function mountPools(api: Api, world: World): void {
  mountCollection(api, world);
  mountPool(api, world);
}

function mountCollection(api: Api, world: World): void {
  api.post(
    "/v1/ip-pools",
    {
      config: { live_keys_only: "change IP pools" },
      schema: {
        operationId: "createIpPool",
        tags,
        summary: "Create a pool of dedicated addresses (Scale and Enterprise)",
        description:
          "Mail of a domain, or a single e-mail, set to the pool leaves from its addresses by their weights.",
        body: Closed({
          name: Type.String({ pattern: pools.POOL_NAME, description: "What `ip_pool` refers to" }),
          ips: Addresses,
        }),
        response: answers({ 201: AnswerOf("ip_pool", Pool) }, [409]),
      },
    },
    async (request, reply) =>
      reply.code(201).send({ ip_pool: await pools.createPool(world, request.account, request.body) }),
  );

  api.get(
    "/v1/ip-pools",
    {
      schema: {
        operationId: "listIpPools",
        tags,
        summary: "List pools with the health and warm-up of their addresses, newest first",
        description:
          "Each address with what it sent today and in the last 7 days, and its daily limit while it warms up.",
        querystring: Closed(PageQuery),
        response: answers({ 200: PageOf("ip_pools", Pool) }),
      },
    },
    async (request) => pools.listPools(world, request.account.org_id, pageOf(request.query)),
  );
}

function mountPool(api: Api, world: World): void {
  api.get(
    "/v1/ip-pools/:id",
    {
      schema: {
        operationId: "getIpPool",
        tags,
        summary: "Get a pool by id or name",
        description: "Its addresses with their health and warm-up.",
        params: Params,
        response: answers({ 200: AnswerOf("ip_pool", Pool) }, [404]),
      },
    },
    async (request) => ({ ip_pool: await pools.getPool(world, request.account.org_id, request.params.id) }),
  );

  api.put(
    "/v1/ip-pools/:id",
    {
      config: { live_keys_only: "change IP pools" },
      schema: {
        operationId: "updateIpPool",
        tags,
        summary: "Set the addresses of a pool; mail waiting at one that goes leaves from the rest",
        description: "The list replaces the one before. An address that stays keeps its warm-up.",
        params: Params,
        body: Closed({ ips: Addresses }),
        response: answers({ 200: AnswerOf("ip_pool", Pool) }, [404, 409]),
      },
    },
    async (request) => ({
      ip_pool: await pools.updatePool(world, request.account, request.params.id, request.body.ips),
    }),
  );

  api.delete(
    "/v1/ip-pools/:id",
    {
      config: { live_keys_only: "change IP pools" },
      schema: {
        operationId: "deleteIpPool",
        tags,
        summary: "Remove a pool; its domains, and mail that waits, go to the shared address",
        description: "409 while domains or queued mail need it, unless `force` is true.",
        params: Params,
        querystring: Closed({
          force: Type.Optional(
            Type.Boolean({ default: false, description: "Remove it although domains or queued mail need it" }),
          ),
        }),
        response: answers({ 200: Deleted }, [404, 409]),
      },
    },
    async (request) => {
      const { account, params, query } = request;
      return { deleted: true, id: await pools.deletePool(world, account.org_id, params.id, query.force ?? false) };
    },
  );
}
