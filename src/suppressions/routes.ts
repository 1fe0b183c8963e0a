// /v1/suppressions
import { Readable } from "node:stream";
import { Type } from "typebox";
import {
  AnswerOf,
  type Api,
  answers,
  Closed,
  Deleted,
  Nullable,
  OneOf,
  PageOf,
  PageQuery,
  pageOf,
} from "../http/http.ts";
import type { World } from "../platform/world.ts";
import { exportSuppressions } from "./export.ts";
import { SCOPE_ID_CHARS_MAX } from "./import/scope.ts";
import { mountImports } from "./import-routes.ts";
import { ReasonWord, ScopeWord, Suppression } from "./shape.ts";
import * as suppressions from "./suppressions.ts";

const FilterQuery = {
  query: Type.Optional(
    Type.String({
      maxLength: 320,
      description:
        "In any case. With something before its @, the beginning of the address, found at once; else a part of it, " +
        "looked for in the whole list: seconds at millions",
    }),
  ),
  reason: Type.Optional(ReasonWord),
  scope_type: Type.Optional(ScopeWord),
  scope_id: Type.Optional(Type.String({ maxLength: SCOPE_ID_CHARS_MAX })),
  source: Type.Optional(Type.String({ maxLength: 64, description: "Such as manual or import:sendgrid" })),
};
const Email = Type.String({ minLength: 1, maxLength: 1_000 });
const ScopeId = Type.String({ maxLength: 1_000, description: "Required except for the scope org" });
const tags = ["Suppressions"];

/** Mounts the suppression endpoints and those of the imports. */
export function mountSuppressions(api: Api, world: World): void {
  mountList(api, world);
  mountCheck(api, world);
  mountExport(api, world);
  mountAdd(api, world);
  mountRemove(api, world);
  mountImports(api, world);
}

function mountList(api: Api, world: World): void {
  api.get(
    "/v1/suppressions",
    {
      schema: {
        operationId: "listSuppressions",
        tags,
        summary: "List suppressed addresses, the newest first; expired entries are not shown",
        description: "Filters are combined. An expired entry holds nothing back and is not listed.",
        querystring: Closed({ ...FilterQuery, ...PageQuery }),
        response: answers({ 200: PageOf("suppressions", Suppression) }),
      },
    },
    async (request) => {
      const { limit: _limit, offset: _offset, after: _after, ...filter } = request.query;
      return suppressions.listSuppressions(world, request.account.org_id, filter, pageOf(request.query));
    },
  );
}

function mountCheck(api: Api, world: World): void {
  api.get(
    "/v1/suppressions/check",
    {
      schema: {
        operationId: "checkSuppression",
        tags,
        summary: "Would a mail to this address be suppressed?",
        description:
          "`suppressed` and `entry` (the strongest that applies) are about a mail with this domain, template, list and " +
          "stream; without them only org-wide entries apply. `entries` are all entries of the address, at most 100.",
        querystring: Closed({
          email: Email,
          domain_id: Type.Optional(Type.String({ format: "uuid" })),
          template_id: Type.Optional(Type.String({ format: "uuid" })),
          list: Type.Optional(Type.String({ maxLength: SCOPE_ID_CHARS_MAX })),
          stream: Type.Optional(Type.String({ maxLength: SCOPE_ID_CHARS_MAX, description: "A class or a tag" })),
        }),
        response: answers({
          200: Type.Object({
            suppressed: Type.Boolean(),
            entry: Nullable(Suppression),
            entries: Type.Array(Suppression),
          }),
        }),
      },
    },
    async (request) => suppressions.checkSuppression(world, request.account.org_id, request.query),
  );
}

function mountExport(api: Api, world: World): void {
  api.get(
    "/v1/suppressions/export",
    {
      schema: {
        operationId: "exportSuppressions",
        tags,
        summary: "Download the list as CSV",
        description:
          "A cell that a spreadsheet would run as a formula begins with an apostrophe; the import takes it off.",
        produces: ["text/csv"],
        querystring: Closed(FilterQuery),
        response: answers({ 200: Type.String() }),
      },
    },
    async (request, reply) => {
      const pieces = exportSuppressions(world, request.account.org_id, request.query);
      reply.header("content-disposition", 'attachment; filename="suppressions.csv"');
      reply.header("x-content-type-options", "nosniff");
      return reply.type("text/csv; charset=utf-8").send(Readable.from(pieces) as never);
    },
  );
}

function mountAdd(api: Api, world: World): void {
  api.post(
    "/v1/suppressions",
    {
      schema: {
        operationId: "addSuppression",
        tags,
        summary: "Suppress an address, or unsubscribe it within a scope; the same again answers 200",
        description:
          "One entry an address and scope. Where there is one already, a weaker reason does not replace a stronger one " +
          "(complaint, hard_bounce, unsubscribe, manual), and what a recipient asked for is not shortened.",
        body: Closed({
          email: Email,
          reason: Type.Optional(OneOf(["manual", "unsubscribe"], { default: "manual" })),
          scope_type: Type.Optional({ ...ScopeWord, default: "org" }),
          scope_id: Type.Optional(Nullable(ScopeId)),
          note: Type.Optional(Nullable(Type.String({ maxLength: 1_000 }))),
          expires_at: Type.Optional(
            Nullable(Type.String({ format: "date-time", description: "When mail may go out again; never, if absent" })),
          ),
        }),
        response: answers({
          200: AnswerOf("suppression", Suppression, { description: "Was suppressed in this scope already" }),
          201: AnswerOf("suppression", Suppression),
        }),
      },
    },
    async (request, reply) => {
      const { suppression, created } = await suppressions.addSuppression(world, request.account.org_id, request.body);
      return reply.code(created ? 201 : 200).send({ suppression });
    },
  );
}

function mountRemove(api: Api, world: World): void {
  api.delete(
    "/v1/suppressions/:identifier",
    {
      schema: {
        operationId: "removeSuppression",
        tags,
        summary: "Remove an entry by its id, or an address's org-wide entry by the URL-encoded address",
        description:
          "Mail to the address may go out again at once. An entry that covers a domain, template or list is removed by its id.",
        params: Type.Object({ identifier: Type.String({ maxLength: 1_024 }) }),
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async (request) => {
      const id = await suppressions.removeSuppression(world, request.account.org_id, request.params.identifier);
      return { deleted: true, id };
    },
  );
}
