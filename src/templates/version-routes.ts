// /v1/templates/{id}/versions: what a template was before. Versions are never changed; a PUT with an older one's sources makes it
// the current one again, under a new number.
import { Type } from "typebox";
import {
  AnswerOf,
  type Api,
  answers,
  Closed,
  Extended,
  Named,
  Nullable,
  OffsetQuery,
  PageOf,
  Time,
} from "../http/http.ts";
import { notFound } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./queries.ts";
import { getTemplate } from "./templates.ts";
import { TemplateVariable } from "./variable-schema.ts";

const tags = ["Templates"];
const VERSION_MAX = 2_147_483_647;

const Listed = Named(
  "ListedTemplateVersion",
  Type.Object({
    version: Type.Integer({ description: "Begins at 1" }),
    subject: Type.String(),
    created_at: Time,
    created_by: Nullable(
      Type.String({ description: "The API key's name or the person's address; null where it was not noted" }),
    ),
  }),
);
const Version = Extended("TemplateVersion", Listed, {
  html_body: Nullable(Type.String()),
  text_body: Nullable(Type.String()),
  variables: Type.Array(TemplateVariable),
  declared: Nullable(
    Type.Array(Type.String(), {
      description: "The names that its author declared; null: all were found in the sources",
    }),
  ),
});

const id = Type.String({ maxLength: 1024, description: "UUID or slug" });

/** Mounts them. */
export function mountVersions(api: Api, world: Pick<World, "db">): void {
  api.get(
    "/v1/templates/:id/versions",
    {
      schema: {
        operationId: "listTemplateVersions",
        tags,
        summary: "List a template's versions, newest first",
        description: "Each with its subject, and when and by whom it was made.",
        params: Type.Object({ id }),
        querystring: Closed({
          ...OffsetQuery,
          before: Type.Optional(
            Type.Integer({ minimum: 1, maximum: VERSION_MAX, description: "Only versions before this one" }),
          ),
        }),
        response: answers({ 200: PageOf("versions", Listed) }, [404]),
      },
    },
    async (request) => {
      const { limit = 50, offset = 0, before = null } = request.query;
      const { org_id } = request.account;
      const template = await getTemplate(world, org_id, request.params.id);
      return world.db.asOrg(org_id, async (tx) => ({
        versions: await queries.listVersions(tx, org_id, template.id, { before, limit, offset }),
        ...(await queries.countVersions(tx, org_id, template.id)),
        ...{ limit, offset },
      }));
    },
  );

  api.get(
    "/v1/templates/:id/versions/:version",
    {
      schema: {
        operationId: "getTemplateVersion",
        tags,
        summary: "Get one version of a template with its sources",
        description:
          "updateTemplate with its sources, and those of its variables that were declared, makes it the current one again.",
        params: Type.Object({ id, version: Type.String({ maxLength: 1024, description: "Its number" }) }),
        response: answers({ 200: AnswerOf("version", Version) }, [404]),
      },
    },
    async (request) => {
      const { org_id } = request.account;
      const template = await getTemplate(world, org_id, request.params.id);
      const number = /^[1-9]\d{0,9}$/.test(request.params.version) ? Number(request.params.version) : 0;
      const [version] =
        number > 0 && number <= VERSION_MAX
          ? await world.db.asOrg(org_id, (tx) => queries.findVersion(tx, org_id, template.id, number))
          : [];
      if (!version) throw notFound("version");
      return { version: { ...version, declared: version.declared?.map(({ name }) => name) ?? null } };
    },
  );
}
