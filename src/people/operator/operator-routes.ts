// What operators settle: every organization's plan, state and limits, and with them the review of new ones. The organization's own
// audit log shows each change.
import { Type } from "typebox";
import { changeOrganization, organizationNames, pageOrganizations, showOrganization } from "../../accounts/accounts.ts";
import { changesBetween, notePerson, ORGANIZATION_FIELDS } from "../../audit/audit.ts";
import { AnswerOf, type Api, answers, Closed, Id, Named, Nullable, OneOf, Time } from "../../http/http.ts";
import { readName } from "../../http/one-line.ts";
import { isUuid } from "../../platform/database/db.ts";
import { notFound } from "../../platform/refusal.ts";
import { listMembers } from "../members/members.ts";
import type { PeopleWorld } from "../types.ts";

const tags = ["Operator"];
const OPERATOR = { needs: "operator" } as const;
const Plan = OneOf(["free", "starter", "growth", "scale", "enterprise"]);
const State = OneOf(["pending_review", "active", "suspended"]);
const ShownState = OneOf(["pending_review", "active", "suspended", "moving"], {
  description: "moving: it is being moved to another cell, and answers 503 meanwhile",
});

const OrganizationLimits = Named(
  "OperatedOrganization",
  Type.Object({
    id: Id,
    name: Type.String(),
    plan: Plan,
    state: ShownState,
    requests_per_second: Type.Integer(),
    monthly_quota: Type.Integer(),
    own: Type.Array(OneOf(["requests_per_second", "monthly_quota"]), {
      description: "The limits that are its own: a change of plan leaves them",
    }),
    purpose: Nullable(Type.String({ description: "What its people said they will send when they signed up" })),
    created_at: Time,
  }),
);

const NAME_CHARS_MAX = 191;

const Changes = Closed(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: NAME_CHARS_MAX })),
    plan: Type.Optional(Plan),
    state: Type.Optional(State),
    requests_per_second: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 }))),
    monthly_quota: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: 1_000_000_000_000 }))),
  },
  { minProperties: 1, description: "null: the plan's limit again" },
);

const Review = Named(
  "OrganizationReview",
  Type.Object({
    test_mails: Type.Integer({ description: "Accepted with its test keys; counted up to 100,000" }),
    domains: Type.Array(Type.Object({ domain: Type.String(), type: Type.String(), status: Type.String() })),
    people: Type.Array(Type.Object({ email: Type.String(), name: Type.String(), role: Type.String() })),
  }),
);

/** Mounts them. */
export function mountOperator(api: Api, world: PeopleWorld): void {
  mountListing(api, world);
  mountChange(api, world);
}

function mountListing(api: Api, world: PeopleWorld): void {
  api.get(
    "/dashboard/api/operator/organizations",
    {
      config: OPERATOR,
      schema: {
        operationId: "listOrganizations",
        tags,
        summary: "List organizations, the oldest first",
        querystring: Closed({
          query: Type.Optional(Type.String({ maxLength: 191, description: "Part of the name, or the id" })),
          state: Type.Optional(ShownState),
          after: Type.Optional({ ...Id, description: "`next` of the page before" }),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
        }),
        response: answers({
          200: Named(
            "OperatedOrganizationList",
            Type.Object({
              organizations: Type.Array(OrganizationLimits),
              total: Type.Integer(),
              total_is_at_least: Type.Optional(Type.Boolean()),
              next: Nullable(Id),
            }),
          ),
        }),
      },
    },
    async (request) => pageOrganizations(world, { ...request.query, limit: request.query.limit ?? 50 }),
  );

  api.get(
    "/dashboard/api/operator/organizations/:id/review",
    {
      config: OPERATOR,
      schema: {
        operationId: "getOrganizationReview",
        tags,
        summary: "What an organization did so far: test mail, domains, people",
        params: Type.Object({ id: Type.String({ maxLength: 100 }) }),
        response: answers({ 200: AnswerOf("review", Review) }, [404]),
      },
    },
    async (request) => {
      const id = await knownOrganization(world, request.params.id);
      const [figures, people] = await Promise.all([world.reviewFigures(id), listMembers(world, id)]);
      return { review: { ...figures, people: people.map(({ email, name, role }) => ({ email, name, role })) } };
    },
  );
}

async function knownOrganization(world: PeopleWorld, id: string): Promise<string> {
  if (!isUuid(id) || !(await organizationNames(world, [id])).has(id)) throw notFound("organization");
  return id;
}

function mountChange(api: Api, world: PeopleWorld): void {
  api.put(
    "/dashboard/api/operator/organizations/:id",
    {
      config: { ...OPERATOR, dangerous: true },
      schema: {
        operationId: "changeOrganization",
        tags,
        summary: "Change an organization's plan, state, limits or name",
        description:
          "active: it was reviewed, live mail leaves. suspended: sends are 403, queued mail waits. It counts from the next request on. 409 while it is being moved.",
        params: Type.Object({ id: Type.String({ maxLength: 100 }) }),
        body: Changes,
        response: answers({ 200: AnswerOf("organization", OrganizationLimits) }, [404, 409]),
      },
    },
    async (request) => {
      const id = await knownOrganization(world, request.params.id);
      const { name, requests_per_second, monthly_quota, ...words } = request.body;
      const before = await showOrganization(world, id);
      const organization = await changeOrganization(world, id, {
        ...words,
        ...(name === undefined ? {} : { name: readName("name", name, NAME_CHARS_MAX) }),
        ...(requests_per_second === undefined ? {} : { requestsPerSecond: String(requests_per_second ?? "default") }),
        ...(monthly_quota === undefined ? {} : { monthlyQuota: String(monthly_quota ?? "default") }),
      });
      const by = { person: request.session.person, request };
      const fields = Object.keys(request.body);
      const changes = changesBetween(before ?? organization, organization, ORGANIZATION_FIELDS);
      await notePerson(world, id, { ...by, operation: "changeOrganization", target: { id }, fields, changes });
      return { organization };
    },
  );
}
