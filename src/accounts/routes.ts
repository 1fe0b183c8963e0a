// /v1/api-keys
import { Type } from "typebox";
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
import { invalid } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import * as accounts from "./accounts.ts";
import { KEY_KINDS } from "./keys.ts";
import { mountMe, type UsagePorts } from "./me-routes.ts";

const KeyKind = OneOf(KEY_KINDS, {
  description: "mask: masked addresses of one destination, in password managers",
});
const Key = Named(
  "ApiKey",
  Type.Object({
    id: Id,
    name: Type.String(),
    environment: Environment,
    kind: KeyKind,
    destination_id: Type.Unsafe<string | null>({
      ...Nullable(Id),
      description: "Of a mask key; null once it was removed",
    }),
    key_prefix: Type.String({ description: "The first 12 characters of the secret" }),
    last_four: Type.String(),
    created_at: Time,
    last_used_at: Nullable(Time),
    revoked_at: Nullable(Time),
  }),
);

const Name = Type.String({ minLength: 1, maxLength: 191 });
const tags = ["API keys"];

/** Mounts the endpoints of API keys, and what a key may ask about itself. */
export function mountAccounts(
  api: Api,
  world: World,
  ports: UsagePorts & { findDestination: accounts.FindDestination },
): void {
  mountMe(api, world, ports);
  api.post(
    "/v1/api-keys",
    {
      schema: {
        operationId: "createApiKey",
        tags,
        summary: "Create an API key; the secret is shown once",
        description:
          "A live key makes keys of both kinds, a test key only test keys. We keep a digest: a lost secret cannot be shown again.",
        body: Closed({
          name: Name,
          environment: Environment,
          kind: Type.Optional(KeyKind),
          destination: Type.Optional(
            Type.String({
              maxLength: 1500,
              description: "The mailbox of a mask key; a new one is asked for its consent",
            }),
          ),
        }),
        response: answers({ 201: Type.Object({ key: Key, secret: Type.String() }) }),
      },
    },
    async (request, reply) => reply.code(201).send(await create(world, ports, request.account, request.body)),
  );

  api.get(
    "/v1/api-keys",
    {
      schema: {
        operationId: "listApiKeys",
        tags,
        summary: "List API keys, revoked ones included",
        description: "Newest first. Revoked keys stay in the list, with `revoked_at`.",
        querystring: Closed(PageQuery),
        response: answers({ 200: PageOf("keys", Key) }),
      },
    },
    async (request) => accounts.listKeys(world, request.account.org_id, pageOf(request.query)),
  );

  api.get(
    "/v1/api-keys/:id",
    {
      schema: {
        operationId: "getApiKey",
        tags,
        summary: "Get an API key",
        description: "The record of a key; never its secret.",
        params: IdParams,
        response: answers({ 200: AnswerOf("key", Key) }, [404]),
      },
    },
    async (request) => ({ key: await accounts.getKey(world, request.account.org_id, request.params.id) }),
  );

  mountChanges(api, world);
}

type CreateBody = accounts.CreateKey & { kind?: "full" | "mask"; destination?: string };
type Ports = { findDestination: accounts.FindDestination };

function create(world: World, { findDestination }: Ports, account: Account, body: CreateBody) {
  const { kind = "full", destination, ...asked } = body;
  if (kind === "mask" && destination === undefined) {
    throw invalid("destination", "the 'destination' field is required for a mask key: the mailbox of its addresses");
  }
  if (kind === "full" && destination !== undefined) {
    throw invalid("destination", "the 'destination' field is for keys of kind mask only");
  }
  if (destination === undefined) return accounts.createKey(world, account, asked);
  return accounts.createMaskKey(world, findDestination, account, { ...asked, destination });
}

function mountChanges(api: Api, world: World): void {
  api.put(
    "/v1/api-keys/:id",
    {
      schema: {
        operationId: "renameApiKey",
        tags,
        summary: "Rename an API key",
        description: "Only the name changes; the secret stays valid. A test key cannot rename live keys.",
        params: IdParams,
        body: Closed({ name: Name }),
        response: answers({ 200: AnswerOf("key", Key) }, [404]),
      },
    },
    async (request) => ({
      key: await accounts.renameKey(world, request.account, request.params.id, request.body.name),
    }),
  );

  api.delete(
    "/v1/api-keys/:id",
    {
      schema: {
        operationId: "revokeApiKey",
        tags,
        summary: "Revoke an API key at once",
        description:
          "Requests with the key get 401 from now on. A key may revoke itself; a test key cannot revoke live keys.",
        params: IdParams,
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async (request) => {
      await accounts.revokeKey(world, request.account, request.params.id);
      return { deleted: true, id: request.params.id };
    },
  );
}
