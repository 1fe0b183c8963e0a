// What operators settle: every organization's plan, state and limits, and with them the review of new ones. The organization's own
// audit log shows each change.
import { Type } from "typebox";
import { changeOrganization, listOrganizations } from "../../accounts/accounts.ts";
import { notePerson } from "../../audit/audit.ts";
import { AnswerOf, type Api, answers, Closed, Id, Named, Nullable, OneOf, Time } from "../../http/http.ts";
import { isUuid } from "../../platform/database/db.ts";
import { notFound } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";

const tags = ["Operator"];
const OPERATOR = { needs: "operator" } as const;
const Plan = OneOf(["free", "starter", "growth", "scale", "enterprise"]);
const State = OneOf(["pending_review", "active", "suspended"]);

const OrganizationLimits = Named(
  "OperatedOrganization",
  Type.Object({
    id: Id,
    name: Type.String(),
    plan: Plan,
    state: State,
    requests_per_second: Type.Integer(),
    monthly_quota: Type.Integer(),
    own: Type.Array(OneOf(["requests_per_second", "monthly_quota"]), {
      description: "The limits that are its own: a change of plan leaves them",
    }),
    purpose: Nullable(Type.String({ description: "What its people said they will send when they signed up" })),
    created_at: Time,
  }),
);

const Changes = Closed(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 191, pattern: "^[^\\n\\r]*\\S[^\\n\\r]*$" })),
    plan: Type.Optional(Plan),
    state: Type.Optional(State),
    requests_per_second: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 }))),
    monthly_quota: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: 1_000_000_000_000 }))),
  },
  { minProperties: 1, description: "null: the plan's limit again" },
);

/** Mounts them. */
export function mountOperator(api: Api, world: World): void {
  api.get(
    "/dashboard/api/operator/organizations",
    {
      config: OPERATOR,
      schema: {
        operationId: "listOrganizations",
        tags,
        summary: "List every organization, the oldest first",
        response: answers({
          200: Named("OperatedOrganizationList", Type.Object({ organizations: Type.Array(OrganizationLimits) })),
        }),
      },
    },
    async () => ({ organizations: await listOrganizations(world) }),
  );

  api.put(
    "/dashboard/api/operator/organizations/:id",
    {
      config: { ...OPERATOR, dangerous: true },
      schema: {
        operationId: "changeOrganization",
        tags,
        summary: "Change an organization's plan, state, limits or name",
        description:
          "active: it was reviewed, live mail leaves. suspended: sends are 403, queued mail waits. It counts from the next request on.",
        params: Type.Object({ id: Type.String({ maxLength: 100 }) }),
        body: Changes,
        response: answers({ 200: AnswerOf("organization", OrganizationLimits) }, [404]),
      },
    },
    async (request) => {
      const { id } = request.params;
      const known = isUuid(id) && (await listOrganizations(world)).some((one) => one.id === id);
      if (!known) throw notFound("organization");
      const { requests_per_second, monthly_quota, ...words } = request.body;
      const organization = await changeOrganization(world, id, {
        ...words,
        ...(requests_per_second === undefined ? {} : { requestsPerSecond: String(requests_per_second ?? "default") }),
        ...(monthly_quota === undefined ? {} : { monthlyQuota: String(monthly_quota ?? "default") }),
      });
      const { person } = request.session;
      const fields = Object.keys(request.body);
      await notePerson(world, id, { person, request, operation: "changeOrganization", target: { id }, fields });
      return { organization };
    },
  );
}
