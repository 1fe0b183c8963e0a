// /v1/inbound-rules and /v1/domains/{id}/rules
import { Type } from "typebox";
import { protectLive } from "../../accounts/accounts.ts";
import { FORWARD_TO_MAX, WEBHOOK_IDS, WEBHOOK_IDS_MAX } from "../../aliases/aliases.ts";
import { ACTIONS } from "../../aliases/types.ts";
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
  OffsetQuery,
  OneOf,
  PageOf,
  pageOf,
  Time,
} from "../../http/http.ts";
import type { World } from "../../platform/world.ts";
import type { Inbound } from "../inbound.ts";
import * as rules from "./rules.ts";
import { tryRule } from "./rules-try.ts";

const RuleMatch = Named(
  "InboundRuleMatch",
  Type.Object(
    {},
    {
      additionalProperties: true,
      description:
        "{all: […]}, {any: […]}, {not: …} or a condition {field, comparator, value, header_name}; at most 20 conditions, three groups within each other. Texts are compared up to 10,000 characters; `matches` looks at the first 2,048 of them, and where a text is cut there `$` does not hold. `exists`: a text that is not empty, a verdict (spf, dkim, dmarc) that is not none, a spam score that was given, a flag that is set",
    },
  ),
);

const Rule = Named(
  "InboundRule",
  Type.Object({
    id: Id,
    org_id: Id,
    domain_id: Id,
    alias_id: Nullable(Id),
    name: Type.String(),
    priority: Type.Integer(),
    active: Type.Boolean(),
    match: { ...RuleMatch, description: "As a tree, also when it was given flat" },
    action: OneOf(ACTIONS),
    forward_to: Type.Array(Type.String()),
    webhook_ids: Type.Array(Id),
    hits: Type.Integer({ description: "Mails that it decided" }),
    last_hit_at: Nullable(Time),
    created_at: Time,
    updated_at: Time,
  }),
);
const One = AnswerOf("rule", Rule);

const conditions = {
  match: Type.Optional(RuleMatch),
  conditions: Type.Optional(
    Type.Array(RuleMatch, {
      minItems: 1,
      maxItems: 20,
      description: "Instead of `match`: conditions that must all hold",
    }),
  ),
};
const name = Type.String({ minLength: 1, maxLength: rules.NAME_CHARS_MAX });
const action = Named(
  "RuleAction",
  OneOf(ACTIONS, {
    description:
      "What is done with mail for which it is the first to hold: webhook (to `webhook_ids`, or to those of the alias or domain when empty), forward (to `forward_to`), store, drop",
  }),
);
const settings = {
  priority: Type.Optional(
    Type.Integer({ minimum: 0, maximum: rules.PRIORITY_MAX, description: "Low runs first; left out: last" }),
  ),
  active: Type.Optional(Type.Boolean()),
  forward_to: Type.Optional(Type.Array(Type.String({ maxLength: 1500 }), { maxItems: FORWARD_TO_MAX })),
  webhook_ids: Type.Optional(
    Type.Array(Id, { maxItems: WEBHOOK_IDS_MAX, uniqueItems: true, description: WEBHOOK_IDS }),
  ),
};
const aliasId = Type.Optional(
  Nullable(Type.String({ minLength: 1, maxLength: 64, description: "Of this alias alone" })),
);
const tags = ["Inbound rules"];

/** Mounts the endpoints of routing rules. */
export function mountRules(api: Api, world: World, inbound: Inbound): void {
  mountCollection(api, world);
  mountRule(api, world);
  mountTogether(api, world, inbound);
  mountOfDomain(api, world);
}

function mountCollection(api: Api, world: World): void {
  api.post(
    "/v1/inbound-rules",
    {
      schema: {
        operationId: "createInboundRule",
        tags,
        summary: "Create a routing rule of a domain or of an alias",
        description:
          "Names a domain or an alias. The rules of an alias are asked before those of its domain; the first that holds decides.",
        body: Closed({
          name,
          domain_id: Type.Optional(
            Type.String({ minLength: 1, maxLength: 1024, description: "The domain's id or its name" }),
          ),
          alias_id: aliasId,
          ...conditions,
          action,
          ...settings,
        }),
        response: answers({ 201: One }, [404]),
      },
    },
    async (request, reply) =>
      reply.code(201).send({ rule: await rules.createRule(world, request.account, request.body) }),
  );

  api.get(
    "/v1/inbound-rules",
    {
      schema: {
        operationId: "listInboundRules",
        tags,
        summary: "List routing rules in the order they are asked, domain by domain",
        description: "The rules of aliases stand before those of their domain.",
        querystring: Closed({
          ...OffsetQuery,
          domain_id: Type.Optional(Id),
          alias_id: Type.Optional(Id),
          active: Type.Optional(Type.Boolean()),
        }),
        response: answers({ 200: PageOf("rules", Rule) }),
      },
    },
    async (request) => {
      const { limit: _limit, offset: _offset, ...filter } = request.query;
      return rules.listRules(world, request.account.org_id, filter, pageOf(request.query));
    },
  );
}

function mountRule(api: Api, world: World): void {
  const schema = { tags, params: IdParams };
  api.get(
    "/v1/inbound-rules/:id",
    {
      schema: {
        ...schema,
        operationId: "getInboundRule",
        summary: "Get a routing rule",
        description: "One rule, with how often it decided.",
        response: answers({ 200: One }, [404]),
      },
    },
    async (request) => ({ rule: await rules.getRule(world, request.account.org_id, request.params.id) }),
  );

  api.patch(
    "/v1/inbound-rules/:id",
    {
      schema: {
        ...schema,
        operationId: "updateInboundRule",
        summary: "Change a routing rule; what is left out stays",
        description: "Holds for mail that comes from now on.",
        body: Closed({ name: Type.Optional(name), ...conditions, action: Type.Optional(action), ...settings }),
        response: answers({ 200: One }, [404]),
      },
    },
    async (request) => {
      const { account, params } = request;
      await protectRules(world, account, [params.id]);
      return { rule: await rules.changeRule(world, account.org_id, params.id, request.body ?? {}) };
    },
  );

  api.delete(
    "/v1/inbound-rules/:id",
    {
      schema: {
        ...schema,
        operationId: "deleteInboundRule",
        summary: "Delete a routing rule; mail it decided keeps its id",
        description: "Mail that comes from now on is judged by the other rules.",
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async (request) => {
      await protectRules(world, request.account, [request.params.id]);
      await rules.deleteRule(world, request.account.org_id, request.params.id);
      return { deleted: true, id: request.params.id };
    },
  );
}

const Step = Named(
  "InboundRuleStep",
  Type.Object(
    {
      path: Type.String({ description: "Of the condition, such as match.all[1]" }),
      field: Type.String(),
      comparator: Type.String(),
      found: Type.Array(Type.Unknown(), { description: "What the mail has there; at most 5 values, cut short" }),
      matched: Type.Boolean(),
    },
    { additionalProperties: true },
  ),
);

function mountTogether(api: Api, world: World, inbound: Inbound): void {
  api.post(
    "/v1/inbound-rules/reorder",
    {
      schema: {
        operationId: "reorderInboundRules",
        tags,
        summary: "Put rules of one domain in this order: priorities 10, 20, …",
        description: "Rules that are not named keep their priorities.",
        body: Closed({ ids: Type.Array(Id, { minItems: 1, maxItems: rules.PER_DOMAIN_MAX, uniqueItems: true }) }),
        response: answers({ 200: Type.Object({ rules: Type.Array(Rule) }) }, [404]),
      },
    },
    async (request) => {
      await protectRules(world, request.account, request.body.ids);
      return { rules: await rules.reorderRules(world, request.account.org_id, request.body.ids) };
    },
  );

  api.post(
    "/v1/inbound-rules/test",
    {
      config: { heavy: true },
      schema: {
        operationId: "testInboundRule",
        tags,
        summary: "Try a rule out on stored mail; nothing is changed",
        description:
          "A stored rule, or conditions that are not stored yet, against one mail or the newest ones; the answer shows each condition with what it found.",
        body: Closed({
          rule_id: Type.Optional({ ...Id, description: "A stored rule, instead of `match` or `conditions`" }),
          ...conditions,
          email_id: Type.Optional({ ...Id, description: "The received mail to look at; absent: the newest ones" }),
          domain_id: Type.Optional({ ...Id, description: "Only mail of this domain" }),
          limit: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 100, description: "Without `email_id`: so many of the newest; 10" }),
          ),
        }),
        response: answers(
          {
            200: Type.Object({
              results: Type.Array(
                Named(
                  "InboundRuleTrial",
                  Type.Object({ email_id: Id, matched: Type.Boolean(), steps: Type.Array(Step) }),
                ),
              ),
              tested: Type.Integer(),
              matched: Type.Integer(),
            }),
          },
          [404],
        ),
      },
    },
    async (request) => tryRule(world, inbound, request.account, request.body),
  );
}

function mountOfDomain(api: Api, world: World): void {
  api.post(
    "/v1/domains/:id/rules",
    {
      schema: {
        operationId: "createDomainRule",
        tags,
        summary: "Create a routing rule of this domain",
        description: "The same as `POST /v1/inbound-rules` with the domain set.",
        params: IdParams,
        body: Closed({ name, alias_id: aliasId, ...conditions, action, ...settings }),
        response: answers({ 201: One }, [404]),
      },
    },
    async (request, reply) => {
      return reply
        .code(201)
        .send({ rule: await rules.createDomainRule(world, request.account, request.params.id, request.body) });
    },
  );

  api.get(
    "/v1/domains/:id/rules",
    {
      schema: {
        operationId: "listDomainRules",
        tags,
        summary: "List the routing rules of this domain in the order they are asked",
        description: "The same as `GET /v1/inbound-rules` for this domain.",
        params: IdParams,
        querystring: Closed({ ...OffsetQuery }),
        response: answers({ 200: PageOf("rules", Rule) }, [404]),
      },
    },
    async (request) => rules.listDomainRules(world, request.account.org_id, request.params.id, pageOf(request.query)),
  );
}

function protectRules(world: World, account: Account, ids: readonly string[]): Promise<void> {
  return protectLive(account, "change the rule of a live key", () => rules.environmentOf(world, account.org_id, ids));
}
