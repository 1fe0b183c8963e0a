// GET /v1/me and /v1/usage: who a key acts for, and how much of the plan is used.
import { Type } from "typebox";
import { type Account, type Api, answers, Closed, Environment, Id, Named, OneOf, Time } from "../http/http.ts";
import type { World } from "../platform/world.ts";
import { PLANS } from "./plans.ts";
import * as queries from "./queries.ts";

export type UsagePorts = {
  /** Recipients of the organization's mail that count in the month's quota, and when the month ends. */
  usedThisMonth(account: Account): Promise<{ used: number; ends_at: Date }>;
};

const PLAN_NAMES = Object.keys(PLANS) as Account["plan"][];
const Plan = Named("Plan", OneOf(PLAN_NAMES, { description: "The plan of the organization" }));

const Me = Named(
  "Me",
  Type.Object({
    organization: Named(
      "Organization",
      Type.Object({
        id: Id,
        name: Type.String({ description: "The organization's name" }),
        plan: Plan,
        state: OneOf(["pending_review", "active", "suspended"], {
          description: "pending_review: test keys work, live mail does not leave yet",
        }),
      }),
    ),
    environment: Environment,
    key: Named("KeyInUse", Type.Object({ id: Id, name: Type.String({ description: "The key's name" }) })),
  }),
);

const Usage = Named(
  "Usage",
  Type.Object({
    period: Type.String({ description: "The month, in UTC, such as 2026-11" }),
    period_ends_at: Time,
    plan: Plan,
    quota_limit: Type.Integer({ description: "Recipients of live mail that the month has room for" }),
    quota_used: Type.Integer({ description: "Recipients so far" }),
    quota_remaining: Type.Integer({ description: "How many are left" }),
    requests_per_second: Type.Integer({ description: "Requests that the API takes from the organization" }),
  }),
);

/** Mounts what a key may ask about itself. */
export function mountMe(api: Api, world: World, ports: UsagePorts): void {
  api.get(
    "/v1/me",
    {
      schema: {
        operationId: "getMe",
        tags: ["API keys"],
        summary: "Get who the key acts for",
        description: "The organization, the environment and the key itself: to see that a key works, and whose it is.",
        querystring: Closed({}),
        response: answers({ 200: Me }),
      },
    },
    async ({ account }) => {
      const { id, name, plan, state } = await organizationOf(world, account.org_id);
      const key = { id: account.person?.id ?? account.key_id, name: account.key_name };
      return { organization: { id, name, plan, state }, environment: account.environment, key };
    },
  );

  api.get(
    "/v1/usage",
    {
      schema: {
        operationId: "getUsage",
        tags: ["API keys"],
        summary: "Get how much of the plan is used",
        description: "Counted by recipient and by month (UTC). Test mail does not count.",
        querystring: Closed({}),
        response: answers({ 200: Usage }),
      },
    },
    async ({ account }) => {
      const { plan, requests_per_second } = await organizationOf(world, account.org_id);
      const { used, ends_at } = await ports.usedThisMonth(account);
      return {
        period: new Date(world.clock.now()).toISOString().slice(0, 7),
        period_ends_at: ends_at,
        plan,
        quota_limit: account.monthly_quota,
        quota_used: used,
        quota_remaining: Math.max(0, account.monthly_quota - used),
        requests_per_second: requests_per_second ?? PLANS[plan].requests_per_second,
      };
    },
  );
}

async function organizationOf(world: Pick<World, "db">, orgId: string) {
  const [row] = await world.db.asOrg(orgId, (tx) => queries.findOrganization(tx, orgId));
  if (!row) throw new Error("the organization of a key is not there");
  return row;
}
