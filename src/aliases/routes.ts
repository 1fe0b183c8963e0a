// /v1/aliases
import { Type } from "typebox";
import { protectLive } from "../accounts/accounts.ts";
import {
  type Account,
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
} from "../http/http.ts";
import type { World } from "../platform/world.ts";
import * as aliases from "./aliases.ts";
import { ACTIONS, FORWARD_MODES } from "./types.ts";

const DESCRIPTION_MAX = 500;

const Alias = Named(
  "Alias",
  Type.Object({
    id: Id,
    org_id: Id,
    domain_id: Id,
    address: Type.String({ description: "The local part: exact, or a glob" }),
    domain: Type.String(),
    is_masked: Type.Boolean({ description: "Always false here; masked aliases are at /v1/masked/aliases" }),
    action: OneOf(ACTIONS),
    forward_to: Type.Array(Type.String()),
    forward_mode: OneOf(FORWARD_MODES),
    webhook_ids: Type.Array(Id),
    description: Nullable(Type.String()),
    active: Type.Boolean(),
    emails_received: Type.Integer(),
    last_received_at: Nullable(Time),
    created_at: Time,
    updated_at: Time,
  }),
);
const One = AnswerOf("alias", Alias);

const LocalPart = Type.String({
  maxLength: 255,
  description:
    "Exact (`support`), a glob (`support*`, `?` is one character), or `*`. Compared without regard to case. An exact alias goes before globs, a longer glob before a shorter one",
});
const settings = {
  action: Type.Optional(
    OneOf(ACTIONS, {
      description:
        "webhook: event to `webhook_ids`, or to the endpoints of the domain when that is empty. forward: to `forward_to`. store: kept, no event. drop: accepted and put aside",
    }),
  ),
  forward_to: Type.Optional(Type.Array(Type.String({ maxLength: 1500 }), { maxItems: aliases.FORWARD_TO_MAX })),
  forward_mode: Type.Optional(
    OneOf(FORWARD_MODES, {
      description:
        "preserve_from: From stays, unless DMARC would refuse the forward. masked: From becomes the alias, the sender's address is in Reply-To",
    }),
  ),
  webhook_ids: Type.Optional(
    Type.Array(Id, { maxItems: aliases.WEBHOOK_IDS_MAX, uniqueItems: true, description: aliases.WEBHOOK_IDS }),
  ),
  description: Type.Optional(Nullable(Type.String({ maxLength: DESCRIPTION_MAX }))),
  active: Type.Optional(
    Type.Boolean({ description: "false: mail is refused with 550, also where there is a catch-all" }),
  ),
};
const tags = ["Domain aliases"];

/** Mounts the endpoints of domain aliases. */
export function mountAliases(api: Api, world: World, ports: aliases.AliasPorts): void {
  mountCollection(api, world, ports);
  mountAlias(api, world, ports);
}

function mountCollection(api: Api, world: World, ports: aliases.AliasPorts): void {
  api.post(
    "/v1/aliases",
    {
      schema: {
        operationId: "createAlias",
        tags,
        summary: "Create an alias of a domain",
        description:
          "Decides what happens to mail for the address. The exact alias goes before globs, the longer glob before the shorter, and all before the catch-all.",
        body: Closed({
          domain_id: Type.String({ minLength: 1, maxLength: 1024, description: "The domain's id or its name" }),
          local_part: LocalPart,
          ...settings,
        }),
        response: answers({ 201: One }, [404, 409]),
      },
    },
    async (request, reply) => {
      await protectForwards(request);
      const alias = await aliases.createAlias(world, ports, request.account, request.body);
      return reply.code(201).send({ alias });
    },
  );

  api.get(
    "/v1/aliases",
    {
      schema: {
        operationId: "listAliases",
        tags,
        summary: "List aliases, newest first",
        description: "Filters are combined.",
        querystring: Closed({
          ...PageQuery,
          domain_id: Type.Optional(Id),
          action: Type.Optional(OneOf(ACTIONS)),
          active: Type.Optional(Type.Boolean()),
          q: Type.Optional(Type.String({ maxLength: 320, description: "Part of the address or the description" })),
        }),
        response: answers({ 200: PageOf("aliases", Alias) }),
      },
    },
    async (request) => {
      const { limit: _limit, offset: _offset, ...filter } = request.query;
      return aliases.listAliases(world, request.account.org_id, filter, pageOf(request.query));
    },
  );
}

function mountAlias(api: Api, world: World, ports: aliases.AliasPorts): void {
  const schema = { tags, params: IdParams };
  api.get(
    "/v1/aliases/:id",
    {
      schema: {
        ...schema,
        operationId: "getAlias",
        summary: "Get an alias",
        description: "One alias with its counters.",
        response: answers({ 200: One }, [404]),
      },
    },
    async (request) => ({ alias: await aliases.getAlias(world, request.account.org_id, request.params.id) }),
  );

  api.patch(
    "/v1/aliases/:id",
    {
      schema: {
        ...schema,
        operationId: "updateAlias",
        summary: "Change an alias; what is left out stays",
        description: "Holds for mail that comes from now on.",
        body: Closed({ local_part: Type.Optional(LocalPart), ...settings }),
        response: answers({ 200: One }, [404, 409]),
      },
    },
    async (request) => {
      const change = { id: request.params.id, changes: request.body ?? {} };
      await protectAlias(world, request);
      await protectForwards({ account: request.account, body: change.changes });
      return { alias: await aliases.changeAlias(world, ports, request.account.org_id, change) };
    },
  );

  api.delete(
    "/v1/aliases/:id",
    {
      schema: {
        ...schema,
        operationId: "deleteAlias",
        summary: "Delete an alias; the mail it took stays",
        description: "Mail to the address goes to a glob or the catch-all from now on, or is refused with 550.",
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async (request) => {
      await protectAlias(world, request);
      await aliases.deleteAlias(world, request.account.org_id, request.params.id);
      return { deleted: true, id: request.params.id };
    },
  );
}

/** What a test key forwards to somebody would be live mail: an alias takes all that comes. */
async function protectForwards({ account, body }: { account: Account; body: { action?: string } }): Promise<void> {
  if (body.action === "forward") await protectLive(account, "forward live mail", async () => "live");
}

async function protectAlias(world: World, { account, params }: { account: Account; params: { id: string } }) {
  const find = () => aliases.environmentOf(world, account.org_id, params.id);
  await protectLive(account, "change the alias of a live key", find);
}
