// The part of addy.io's API (https://app.addy.io/docs) that makes and manages aliases, for password managers that know it.

import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import { type Api, IdParams } from "../../http/http.ts";
import type { World } from "../../platform/world.ts";
import type { AliasPorts } from "../addresses/aliases.ts";
import type { AliasRecord, Format } from "../types.ts";
import { type OwnAliases, type OwnWorld, ownAliases, switchAlias } from "./own-aliases.ts";

const PAGE = { size: 100, number: 1 };
const BODY_BYTES_MAX = 16_384;
const FORMATS: Record<string, Format> = { uuid: "uuid", random_words: "words", random_characters: "random" };

const Text = (maxLength: number) => Type.Optional(Type.Union([Type.String({ maxLength }), Type.Null()]));

/** Mounts them under /api/v1; the scope has seen to the key. */
export function mountAddy(api: Api, world: OwnWorld, ports: AliasPorts): void {
  const own = (request: FastifyRequest) => ownAliases(world, ports, request.account);
  mountCreating(api, own);
  mountList(api, world, own);
  mountOne(api, own);
  api.get("/api/v1/api-token-details", { schema: { hide: true } }, async ({ account }) => ({
    name: account.key_name,
    created_at: null,
    expires_at: null,
  }));
  const { masked_domain } = world.config;
  api.get("/api/v1/domain-options", { schema: { hide: true } }, async () => ({
    data: [masked_domain],
    sharedDomains: [masked_domain],
    defaultAliasDomain: masked_domain,
    defaultAliasFormat: "random_characters",
  }));
}

type Own = (request: FastifyRequest) => Promise<OwnAliases>;

function mountCreating(api: Api, own: Own): void {
  const body = Type.Object({
    domain: Text(253),
    description: Text(500),
    format: Text(32),
    local_part: Text(64),
  });
  api.post(
    "/api/v1/aliases",
    { bodyLimit: BODY_BYTES_MAX, schema: { hide: true, operationId: "createMaskedAlias", body } },
    async (request, reply) => {
      const { domain, description, format, local_part } = request.body;
      const mine = await own(request);
      const made = await mine.create({
        description: description || null,
        ...(domain ? { domain_id: domain.toLowerCase() } : {}),
        ...(local_part ? { local_part } : { format: FORMATS[format ?? ""] ?? "random" }),
      });
      return reply.code(201).send({ data: shown(made, mine) });
    },
  );
}

function mountList(api: Api, world: Pick<World, "config">, own: Own): void {
  const querystring = Type.Object({
    "page[number]": Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
    "page[size]": Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE.size })),
    "filter[search]": Type.Optional(Type.String({ maxLength: 320 })),
    "filter[active]": Type.Optional(Type.String({ maxLength: 8 })),
    "filter[deleted]": Type.Optional(Type.String({ maxLength: 8 })),
  });
  api.get("/api/v1/aliases", { schema: { hide: true, querystring } }, async (request) => {
    const { "filter[search]": q, "filter[active]": active, "filter[deleted]": deleted } = request.query;
    const { "page[number]": number = PAGE.number, "page[size]": size = PAGE.size } = request.query;
    const mine = await own(request);
    const { aliases, total } = await mine.list(
      {
        ...(q ? { q } : {}),
        ...(active === undefined ? {} : { active: active === "true" }),
        ...(deleted === "only" ? { deleted: true } : {}),
      },
      { limit: size, offset: (number - 1) * size },
    );
    const last = Math.max(1, Math.ceil(total / size));
    const path = `${world.config.base_url}/api/v1/aliases`;
    const link = (page: number) => (page < 1 || page > last ? null : `${path}?page[number]=${page}&page[size]=${size}`);
    const from = (number - 1) * size;
    return {
      data: aliases.map((alias) => shown(alias, mine)),
      links: { first: link(1), last: link(last), prev: link(number - 1), next: link(number + 1) },
      meta: {
        ...{ current_page: number, last_page: last, path, per_page: size, total },
        ...(aliases.length === 0 ? { from: null, to: null } : { from: from + 1, to: from + aliases.length }),
      },
    };
  });
}

function mountOne(api: Api, own: Own): void {
  const schema = { hide: true, params: IdParams };
  const changing = { ...schema, operationId: "updateMaskedAlias" };
  api.get("/api/v1/aliases/:id", { schema }, async (request) => {
    const mine = await own(request);
    return { data: shown(await mine.get(request.params.id), mine) };
  });
  api.patch(
    "/api/v1/aliases/:id",
    {
      bodyLimit: BODY_BYTES_MAX,
      schema: { ...changing, body: Type.Object({ description: Text(500), from_name: Text(100) }) },
    },
    async (request) => {
      const { description, from_name } = request.body;
      const mine = await own(request);
      const changed = await mine.change(request.params.id, {
        ...(description === undefined ? {} : { description }),
        ...(from_name === undefined ? {} : { display_name: from_name }),
      });
      return { data: shown(changed, mine) };
    },
  );
  api.delete(
    "/api/v1/aliases/:id",
    { schema: { ...schema, operationId: "deleteMaskedAlias" } },
    async (request, reply) => {
      await (await own(request)).remove(request.params.id);
      return reply.code(204).send();
    },
  );
  api.post(
    "/api/v1/active-aliases",
    {
      bodyLimit: BODY_BYTES_MAX,
      schema: {
        hide: true,
        operationId: "updateMaskedAlias",
        body: Type.Object({ id: Type.String({ maxLength: 64 }) }),
      },
    },
    async (request) => {
      const mine = await own(request);
      const before = await mine.get(request.body.id);
      return { data: shown(await switchAlias(request, mine, { before, active: true }), mine) };
    },
  );
  api.delete("/api/v1/active-aliases/:id", { schema: changing }, async (request, reply) => {
    const mine = await own(request);
    await switchAlias(request, mine, { before: await mine.get(request.params.id), active: false });
    return reply.code(204).send();
  });
}

function shown(alias: AliasRecord, { mailbox }: OwnAliases) {
  return {
    id: alias.id,
    user_id: alias.org_id,
    aliasable_id: null,
    aliasable_type: null,
    local_part: alias.address,
    extension: null,
    domain: alias.domain,
    email: alias.email,
    active: alias.active,
    description: alias.masked_description,
    from_name: alias.display_name,
    emails_forwarded: alias.emails_forwarded,
    emails_blocked: alias.emails_blocked,
    emails_replied: alias.emails_replied,
    emails_sent: 0,
    recipients: [{ id: mailbox.id, email: mailbox.email }],
    created_at: timeOf(alias.created_at),
    updated_at: timeOf(alias.updated_at),
    deleted_at: null,
  };
}

function timeOf(time: Date): string {
  return time.toISOString().slice(0, 19).replace("T", " ");
}
