// /v1/masked/aliases and /v1/masked/domain
import { Type } from "typebox";
import {
  AnswerOf,
  type Api,
  answers,
  Closed,
  Deleted,
  Environment,
  Id,
  IdParams,
  Metadata,
  Named,
  Nullable,
  OneOf,
  PageOf,
  PageQuery,
  pageOf,
  Time,
} from "../http/http.ts";
import type { World } from "../platform/world.ts";
import * as aliases from "./addresses/aliases.ts";
import { mountPeople } from "./addresses/people-routes.ts";
import { mountPgpKeys } from "./addresses/pgp-routes.ts";
import { maskedDomain } from "./addresses/service-domain.ts";
import { mountCheck } from "./check-routes.ts";
import { mountFailed } from "./held/failed-routes.ts";
import { mountPatterns } from "./patterns/pattern-routes.ts";
import { mountMaskedSettings } from "./settings-routes.ts";
import type { BouncePorts } from "./settle/ports.ts";
import {
  FORMATS,
  LIST_UNSUBSCRIBE,
  ON_DISABLED,
  OWN_NAME,
  REDACT,
  REPLY_REPORT,
  TRACKING_PIXELS,
  UNOPENED_FILES,
} from "./types.ts";

const TEXT_MAX = 500;
const NAME_MAX = 100;

const Alias = Named(
  "MaskedAlias",
  Type.Object({
    id: Id,
    org_id: Id,
    environment: Environment,
    domain_id: Type.Unsafe<string | null>({ ...Nullable(Id), description: "null: the service's masked domain" }),
    email: Type.String({ description: "The full address" }),
    address: Type.String({ description: "The local part" }),
    domain: Type.String(),
    forward_to: Type.Array(Type.String(), {
      description:
        "Without destinations whose address cannot be read any more, because the service's master key was lost",
    }),
    action: OneOf(["forward"]),
    is_masked: Type.Boolean({ description: "Always true here; domain aliases are at /v1/aliases" }),
    masked_description: Nullable(Type.String()),
    display_name: Nullable(Type.String()),
    metadata: Metadata,
    active: Type.Boolean(),
    disabled_reason: Type.Unsafe<string | null>({
      ...Nullable(Type.String()),
      description:
        "owner, or destination_bouncing: every mailbox bounced, and mail is deferred with 450; a mailbox that is confirmed, again or by another forward_to, switches it on",
    }),
    on_disabled: OneOf(ON_DISABLED),
    reply_enabled: Type.Boolean(),
    redact: OneOf(REDACT),
    unopened_files: OneOf(UNOPENED_FILES),
    own_name: OneOf(OWN_NAME),
    reply_report: OneOf(REPLY_REPORT),
    tracking_pixels: OneOf(TRACKING_PIXELS),
    list_unsubscribe: OneOf(LIST_UNSUBSCRIBE),
    pattern: Type.Unsafe<string | null>({
      ...Nullable(Type.String()),
      description: "The pattern that made it; null: it was created",
    }),
    emails_received: Type.Integer(),
    emails_forwarded: Type.Integer(),
    emails_replied: Type.Integer(),
    emails_blocked: Type.Integer(),
    last_activity_at: Nullable(Time),
    created_at: Time,
    updated_at: Time,
  }),
);
const One = AnswerOf("alias", Alias);

const ForwardTo = Type.Array(Type.String({ maxLength: 1500 }), {
  minItems: 1,
  maxItems: aliases.FORWARD_TO_MAX,
  description: "Real mailboxes. Nothing is forwarded to one before its owner has confirmed by the link we mail to it",
});
const settings = {
  description: Type.Optional(Nullable(Type.String({ maxLength: TEXT_MAX, description: "For you alone" }))),
  display_name: Type.Optional(
    Nullable(Type.String({ maxLength: NAME_MAX, description: "The name that replies from the alias show" })),
  ),
  metadata: Type.Optional({ ...Metadata, description: "Yours; at most 2 KiB as JSON" }),
  active: Type.Optional(Type.Boolean({ description: "false: mail is treated as `on_disabled` says" })),
  on_disabled: Type.Optional(
    OneOf(ON_DISABLED, { description: "drop: mail is taken and thrown away. reject: it is refused with 550" }),
  ),
  reply_enabled: Type.Optional(Type.Boolean({ description: "false: nothing can be sent from the alias" })),
  redact: Type.Optional(
    OneOf(REDACT, {
      description:
        "Where replies may show the destination's address. all: nowhere. quoted: in what the author wrote before the first quote. off: in bodies. Headers, file names and calendars never show it; a reply that would show it where it must not is held, and its author is informed",
    }),
  ),
  unopened_files: Type.Optional(
    OneOf(UNOPENED_FILES, {
      description:
        "A reply with a file that nobody can look into (under a password, damaged, packed by an unknown method). hold: it does not leave. send: it leaves, and the activity says where it is. Its author is informed which file",
    }),
  ),
  own_name: Type.Optional(
    OneOf(OWN_NAME, {
      description:
        "The author's own name, as the From line of the reply has it. It never stands beside the address, in heads of attached mail or in calendars. leave: elsewhere it stays. replace: before the first quote and the line above it display_name, or the alias, stands there",
    }),
  ),
  reply_report: Type.Optional(
    OneOf(REPLY_REPORT, { description: "When the author of a sent reply is mailed what was changed in it" }),
  ),
  tracking_pixels: Type.Optional(
    OneOf(TRACKING_PIXELS, { description: "cut: forwards have no pictures that nobody is to see" }),
  ),
  list_unsubscribe: Type.Optional(
    OneOf(LIST_UNSUBSCRIBE, { description: "What unsubscribing in a forward does. original: what its author set" }),
  ),
};
const tags = ["Masked aliases"];

/** Mounts the endpoints of masked addresses. */
export function mountMasked(api: Api, world: World, ports: aliases.AliasPorts & BouncePorts): void {
  mountCollection(api, world, ports);
  mountAlias(api, world, ports);
  mountPeople(api, world, ports);
  mountPatterns(api, world);
  mountPgpKeys(api, world);
  mountMaskedSettings(api, world);
  mountCheck(api, world);
  mountFailed(api, world, ports);
  api.get(
    "/v1/masked/domain",
    {
      schema: {
        operationId: "getMaskedDomain",
        tags,
        summary: "The service's masked domain, and the records its operator publishes",
        description: "Its records are the operator's to publish.",
        response: answers({
          200: Type.Object({
            domain: Type.String(),
            records: Type.Array(
              Named(
                "MaskedDomainRecord",
                Type.Object({
                  purpose: OneOf(["mx", "spf", "dkim", "dmarc"], { description: "What the record is for" }),
                  type: OneOf(["MX", "TXT"]),
                  name: Type.String(),
                  value: Type.String(),
                  priority: Nullable(Type.Integer()),
                }),
              ),
            ),
          }),
        }),
      },
    },
    async () => maskedDomain(world),
  );
}

function mountCollection(api: Api, world: World, ports: aliases.AliasPorts): void {
  api.post(
    "/v1/masked/aliases",
    {
      schema: {
        operationId: "createMaskedAlias",
        tags,
        summary: "Create a masked alias",
        description:
          "Mail to it is forwarded to mailboxes that have confirmed; replies from there leave from the alias. Mailboxes that are new get a mail with a link.",
        body: Closed({
          forward_to: ForwardTo,
          domain_id: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 1024,
              description:
                "A verified domain of yours that receives, by id or name; default: the service's masked domain",
            }),
          ),
          local_part: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
          format: Type.Optional(
            OneOf(FORMATS, { description: "How the local part is made when none is given; default random" }),
          ),
          ...settings,
        }),
        response: answers({ 201: One }, [404, 409]),
      },
    },
    async (request, reply) => {
      const alias = await aliases.createAlias(world, ports, request.account, request.body);
      return reply.code(201).send({ alias });
    },
  );

  api.get(
    "/v1/masked/aliases",
    {
      schema: {
        operationId: "listMaskedAliases",
        tags,
        summary: "List masked aliases, newest first",
        description: "Deleted ones only with `deleted=true`.",
        querystring: Closed({
          ...PageQuery,
          domain_id: Type.Optional(Id),
          active: Type.Optional(Type.Boolean()),
          deleted: Type.Optional(Type.Boolean({ description: "true: the deleted ones, which may be restored" })),
          forward_to: Type.Optional(Type.String({ maxLength: 320, description: "Exactly this destination" })),
          pattern: Type.Optional(Type.String({ maxLength: 320, description: "Made by exactly this pattern" })),
          q: Type.Optional(
            Type.String({ maxLength: 320, description: "Part of the address, the description or the display name" }),
          ),
        }),
        response: answers({ 200: PageOf("aliases", Alias) }),
      },
    },
    async (request) => {
      const { limit: _limit, offset: _offset, ...query } = request.query;
      return aliases.listAliases(world, request.account, query, pageOf(request.query));
    },
  );
}

function mountAlias(api: Api, world: World, ports: aliases.AliasPorts): void {
  const schema = { tags, params: IdParams };
  api.get(
    "/v1/masked/aliases/:id",
    {
      schema: {
        ...schema,
        operationId: "getMaskedAlias",
        summary: "Get a masked alias",
        description: "One alias with its counters.",
        response: answers({ 200: One }, [404]),
      },
    },
    async (request) => ({ alias: await aliases.getAlias(world, request.account, request.params.id) }),
  );

  api.put(
    "/v1/masked/aliases/:id",
    {
      schema: {
        ...schema,
        operationId: "updateMaskedAlias",
        summary: "Change a masked alias; what is left out stays",
        description: "Holds for mail that comes from now on. New mailboxes have to confirm first.",
        body: Closed({ forward_to: Type.Optional(ForwardTo), ...settings }),
        response: answers({ 200: One }, [404, 409]),
      },
    },
    async (request) => {
      const change = { id: request.params.id, changes: request.body ?? {} };
      return { alias: await aliases.changeAlias(world, ports, request.account, change) };
    },
  );

  api.delete(
    "/v1/masked/aliases/:id",
    {
      schema: {
        ...schema,
        operationId: "deleteMaskedAlias",
        summary: "Delete a masked alias; its address is never given out again",
        description: "Mail to it is refused from now on. It can be restored for 30 days.",
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async (request) => {
      await aliases.deleteAlias(world, request.account, request.params.id);
      return { deleted: true, id: request.params.id };
    },
  );

  api.post(
    "/v1/masked/aliases/:id/restore",
    {
      schema: {
        ...schema,
        operationId: "restoreMaskedAlias",
        summary: "Restore an alias that was deleted within the last 30 days",
        description: "It works as before, with its contacts.",
        response: answers({ 200: One }, [404, 409]),
      },
    },
    async (request) => ({ alias: await aliases.restoreAlias(world, request.account, request.params.id) }),
  );
}
