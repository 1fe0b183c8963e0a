// /v1/masked/destinations/{id}/patterns
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
  Named,
  PageOf,
  PageQuery,
  pageOf,
  Time,
} from "../../http/http.ts";
import type { World } from "../../platform/world.ts";
import * as patterns from "./patterns.ts";

const Text = "Of the form `*.lena@own.example`, `lena-*@own.example` or `*@own.example`, at a verified domain of yours";
const Limit = (description: string, maximum: number) => Type.Integer({ minimum: 1, maximum, description });
const limits = {
  aliases_hour: Limit(`Aliases that it makes within an hour. ${patterns.ALIASES_HOUR} at first`, 1_000),
  aliases_day: Limit(`The same for a day (UTC). ${patterns.ALIASES_DAY} at first`, 10_000),
};

const Pattern = Named(
  "MaskedPattern",
  Type.Object({
    id: Id,
    destination_id: Id,
    environment: Environment,
    pattern: Type.String({ description: Text }),
    domain: Type.String(),
    ...limits,
    aliases: Type.Integer({ description: "How many aliases it made, without deleted ones" }),
    created_at: Time,
  }),
);
const tags = ["Masked destinations"];
const PatternParams = Type.Object({
  id: Type.String({ maxLength: 1024 }),
  pattern_id: Type.String({ maxLength: 1024 }),
});

/** Mounts the patterns of mailboxes. */
export function mountPatterns(api: Api, world: World): void {
  const schema = { tags, params: IdParams };
  api.get(
    "/v1/masked/destinations/:id/patterns",
    {
      schema: {
        ...schema,
        operationId: "listMaskedPatterns",
        summary: "List the patterns of a mailbox, newest first",
        description: "Mail to an address that a pattern takes makes an alias of the mailbox.",
        querystring: Closed(PageQuery),
        response: answers({ 200: PageOf("patterns", Pattern) }, [404]),
      },
    },
    async (request) => patterns.listPatterns(world, request.account, request.params.id, pageOf(request.query)),
  );

  api.post(
    "/v1/masked/destinations/:id/patterns",
    {
      schema: {
        ...schema,
        operationId: "createMaskedPattern",
        summary: "Add a pattern: the first mail to an address that matches makes the alias",
        description:
          "Aliases, domain aliases and what has more fixed characters go first. Over the limits mail is deferred (450), and the mailbox gets a notice.",
        body: Closed({
          pattern: Type.String({ minLength: 1, maxLength: 320, description: Text }),
          aliases_hour: Type.Optional(limits.aliases_hour),
          aliases_day: Type.Optional(limits.aliases_day),
        }),
        response: answers({ 201: AnswerOf("pattern", Pattern) }, [404, 409]),
      },
    },
    async (request, reply) => {
      const pattern = await patterns.createPattern(world, request.account, request.params.id, request.body);
      return reply.code(201).send({ pattern });
    },
  );

  api.delete(
    "/v1/masked/destinations/:id/patterns/:pattern_id",
    {
      schema: {
        tags,
        params: PatternParams,
        operationId: "deleteMaskedPattern",
        summary: "Remove a pattern; the aliases that it made stay",
        description: "From now on it makes none.",
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async (request) => {
      const { id: destination_id, pattern_id: id } = request.params;
      await patterns.deletePattern(world, request.account, { destination_id, id });
      return { deleted: true, id };
    },
  );
}
