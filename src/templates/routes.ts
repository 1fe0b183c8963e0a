// /v1/templates
import { Type } from "typebox";
import {
  AnswerOf,
  type Api,
  answers,
  Closed,
  Deleted,
  Id,
  Named,
  Nullable,
  PageOf,
  PageQuery,
  pageOf,
  Time,
  Variables,
} from "../http/http.ts";
import { spentHere } from "../platform/fair/processor-shares.ts";
import { createTurns } from "../platform/fair/turns.ts";
import type { World } from "../platform/world.ts";
import { longAside } from "./long-sources.ts";
import { SLUG_LENGTH_MAX, SLUG_PATTERN } from "./slug.ts";
import { SUBJECT_LENGTH_MAX } from "./sources.ts";
import * as templates from "./templates.ts";
import { Default, TemplateVariable } from "./variable-schema.ts";
import { VARIABLES_MAX } from "./variables.ts";
import { mountVersions } from "./version-routes.ts";

/** Two bodies of 512 KiB, in which JSON may write a character with six. */
const BODY_BYTES_MAX = 8 * 1024 * 1024;
const DESCRIPTION_LENGTH_MAX = 1_000;

const LANGUAGE =
  'Handlebars-style: {{name}}, {{{unescaped}}}, {{user.name}}, {{items[0].name}}, {{#if}}…{{else if}}…{{else}}…{{/if}}, {{#unless}}, {{#each}} with this, @index, @first, @last, @key and ../, {{default name "friend"}}. At most 512 KiB';

const VariableBody = Named(
  "TemplateVariableRequest",
  Closed({
    name: Type.String({ minLength: 1, maxLength: 256 }),
    required: Type.Optional(
      Type.Boolean({
        description: "When omitted: whether a source reads it outside {{default}}, {{#if}} and {{#unless}}",
      }),
    ),
    default: Type.Optional(Default),
  }),
);

const Template = Named(
  "Template",
  Type.Object({
    id: Id,
    org_id: Id,
    name: Type.String(),
    slug: Type.String(),
    description: Nullable(Type.String()),
    subject: Type.String({ description: "Variables are not escaped in a subject" }),
    html_body: Nullable(Type.String({ description: "Variables are HTML-escaped unless in triple braces" })),
    text_body: Nullable(Type.String({ description: "Variables are not escaped in plain text" })),
    variables: Type.Array(TemplateVariable, {
      description: "The declared variables, then those that the sources read beyond them",
    }),
    active: Type.Boolean({ description: "false: sending with it is 409 invalid_state" }),
    version: Type.Integer({ description: "Begins at 1; every PUT makes a new one" }),
    created_at: Time,
    updated_at: Time,
  }),
);
const One = AnswerOf("template", Template);

const body = {
  slug: Type.String({
    minLength: 2,
    maxLength: SLUG_LENGTH_MAX,
    pattern: SLUG_PATTERN,
    description: "Unique in the organization; must not look like a UUID. Made from the name when omitted",
  }),
  name: Type.String({ minLength: 1, maxLength: 191 }),
  description: Nullable(Type.String({ maxLength: DESCRIPTION_LENGTH_MAX })),
  subject: Type.String({ minLength: 1, maxLength: SUBJECT_LENGTH_MAX, description: "One line, in the same language" }),
  html_body: Nullable(Type.String({ description: LANGUAGE })),
  text_body: Nullable(
    Type.String({ description: "The same language without escaping. When null, made from the HTML on sending" }),
  ),
  variables: Nullable(
    Type.Array(VariableBody, {
      maxItems: VARIABLES_MAX,
      description: "When omitted or null, found in the sources. A declared name speaks for all names below it",
    }),
  ),
  active: Type.Boolean({ default: true }),
};

const PreviewAnswer = Named(
  "TemplatePreview",
  Type.Object({
    subject: Type.String(),
    html_body: Nullable(Type.String()),
    text_body: Nullable(Type.String()),
    missing_variables: Type.Array(Type.String(), {
      description: "Required, without default, not given; shown empty here",
    }),
    unused_variables: Type.Array(Type.String(), { description: "Given, but no source reads them" }),
    warnings: Type.Array(
      Named(
        "TemplateWarning",
        Type.Object({
          code: Type.String({
            description: "empty_subject, gmail_clipping, no_text_part, unescaped_output or broken_link",
          }),
          field: Type.String({ description: "subject, html_body or text_body" }),
          message: Type.String(),
        }),
      ),
    ),
  }),
);

const byIdOrSlug = Type.Object({ id: Type.String({ maxLength: 1024, description: "UUID or slug" }) });
const tags = ["Templates"];

/** Mounts the template endpoints. */
export function mountTemplates(api: Api, world: World): void {
  const { db, clock, random } = world;
  const workshop = { db, clock, random, inTurn: createTurns(clock, spentHere(world)) };
  mountWriting(api, workshop);
  mountRemoval(api, workshop);
  mountReading(api, workshop);
  mountPreview(api, workshop);
  mountVersions(api, workshop);
}

function mountWriting(api: Api, world: templates.Workshop): void {
  const { name, slug, subject, active, ...rest } = body;
  const optional = {
    description: Type.Optional(rest.description),
    html_body: Type.Optional(rest.html_body),
    text_body: Type.Optional(rest.text_body),
    variables: Type.Optional(rest.variables),
  };
  api.post(
    "/v1/templates",
    {
      bodyLimit: BODY_BYTES_MAX,
      preValidation: longAside(world),
      schema: {
        operationId: "createTemplate",
        tags,
        summary: "Create a template",
        description: "400 `template_error` carries `field`, `line` and `column` of the first mistake in a source.",
        body: Closed({ name, subject, slug: Type.Optional(slug), ...optional, active: Type.Optional(active) }),
        response: answers({ 201: One }, [409]),
      },
    },
    async (request, reply) => {
      const template = await templates.createTemplate(world, request.account, request.body);
      return reply.code(201).send({ template });
    },
  );

  api.put(
    "/v1/templates/:id",
    {
      bodyLimit: BODY_BYTES_MAX,
      preValidation: longAside(world),
      schema: {
        operationId: "updateTemplate",
        tags,
        summary: "Change the fields that are given; makes a new version",
        description: "What is left out stays. Mail that was accepted before keeps the version it was rendered with.",
        params: byIdOrSlug,
        body: Closed({
          name: Type.Optional(name),
          subject: Type.Optional(subject),
          slug: Type.Optional(slug),
          ...optional,
          active: Type.Optional(Type.Boolean()),
        }),
        response: answers({ 200: One }, [404, 409]),
      },
    },
    async (request) => ({
      template: await templates.updateTemplate(world, request.account, request.params.id, request.body),
    }),
  );
}

function mountRemoval(api: Api, world: templates.Workshop): void {
  api.delete(
    "/v1/templates/:id",
    {
      schema: {
        operationId: "deleteTemplate",
        tags,
        summary: "Delete a template and its versions",
        description: "Mail that was accepted with it is sent all the same.",
        params: byIdOrSlug,
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async (request) => ({
      deleted: true,
      id: await templates.deleteTemplate(world, request.account.org_id, request.params.id),
    }),
  );
}

function mountReading(api: Api, world: templates.Workshop): void {
  api.get(
    "/v1/templates",
    {
      schema: {
        operationId: "listTemplates",
        tags,
        summary: "List templates, newest first",
        description:
          "A page has the bodies of its first templates, at most 4 MiB together. Those behind have null for both " +
          "`html_body` and `text_body`: get them one by one.",
        querystring: Closed({
          ...PageQuery,
          query: Type.Optional(
            Type.String({
              maxLength: 191,
              description: "Substring of name, slug, subject or description, without case",
            }),
          ),
          active: Type.Optional(Type.Boolean()),
        }),
        response: answers({ 200: PageOf("templates", Template) }),
      },
    },
    async (request) => {
      const { query, active } = request.query;
      return templates.listTemplates(world, request.account.org_id, { ...pageOf(request.query), query, active });
    },
  );

  api.get(
    "/v1/templates/:id",
    {
      schema: {
        operationId: "getTemplate",
        tags,
        summary: "Get a template by UUID or slug",
        description: "The newest version.",
        params: byIdOrSlug,
        response: answers({ 200: One }, [404]),
      },
    },
    async (request) => ({
      template: await templates.getTemplate(world, request.account.org_id, request.params.id),
    }),
  );
}

function mountPreview(api: Api, world: templates.Workshop): void {
  api.post(
    "/v1/templates/:id/preview",
    {
      bodyLimit: BODY_BYTES_MAX,
      preValidation: longAside(world),
      schema: {
        operationId: "previewTemplate",
        tags,
        summary: "Render a template without sending it",
        description:
          "What a recipient would get, and which variables are missing or unused. A given subject or body replaces the " +
          "template's. Nothing is stored.",
        params: byIdOrSlug,
        body: Nullable(
          Closed({
            variables: Type.Optional(Variables),
            subject: Type.Optional(body.subject),
            html_body: Type.Optional({ ...body.html_body, description: "As in createTemplate" }),
            text_body: Type.Optional({ ...body.text_body, description: "As in createTemplate" }),
          }),
        ),
        response: answers({ 200: PreviewAnswer }, [404]),
      },
    },
    async (request) => templates.previewTemplate(world, request.account.org_id, request.params.id, request.body ?? {}),
  );
}
