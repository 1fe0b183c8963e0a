// /v1/domains/{id}/stats: paid plans only.
import { type TObject, Type } from "typebox";
import { requirePlan } from "../accounts/accounts.ts";
import {
  type Account,
  type Api,
  answers,
  Closed,
  Day,
  Extended,
  Id,
  type IdParams,
  Named,
  Nullable,
  Rate,
  Time,
} from "../http/http.ts";
import type { World } from "../platform/world.ts";
import * as stats from "./stats.ts";

const DAYS_MAX = 90;
const HOURS_MAX = 336;
const ID_CHARS_MAX = 1024;

const Figures = Named(
  "MailFigures",
  Type.Object({
    total_sent: Type.Integer({
      description: "Recipients whose first attempt has an outcome; sending again by hand counts",
    }),
    total_delivered: Type.Integer({ description: "Accepted by the recipient's mail exchanger" }),
    total_deferred: Type.Integer({
      description: "Recipients whose first attempt was deferred; many are delivered later",
    }),
    total_bounced: Type.Integer({ description: "Refused for good, delayed bounces included" }),
    total_hard_bounce: Type.Integer({ description: "Of these, because of the recipient's address" }),
    total_complaints: Type.Integer({ description: "Marked as spam, on the day the report came" }),
    total_suppressed: Type.Integer({ description: "Recipients left out because they are suppressed" }),
    total_failed: Type.Integer({ description: "Not delivered in time, without a server's refusal" }),
    delivery_rate: Rate,
    bounce_rate: Rate,
    hard_bounce_rate: Rate,
    complaint_rate: Rate,
  }),
);

const Params = Type.Object({
  id: Type.String({ maxLength: ID_CHARS_MAX, description: "The domain's id or its name" }),
}) as typeof IdParams;
const tags = ["Statistics"];
/** What holds for all figures is said at the tag Statistics. */
const description = "Needs a paid plan: 403 `plan_limit_reached` on the free one.";

const days = (preset: number) =>
  Closed({
    days: Type.Optional(
      Type.Integer({ minimum: 1, maximum: DAYS_MAX, default: preset, description: "UTC days, today included" }),
    ),
  });

type Question = { account: Account; params: { id: string } };

/** Mounts the statistics endpoints. */
export function mountStats(api: Api, world: World): void {
  mountSummary(api, world);
  mountDaily(api, world);
  mountHourly(api, world);
  mountIsps(api, world);
}

/** The organization and the domain asked for, once the plan allows statistics. */
function allowed({ account, params }: Question): [orgId: string, idOrName: string] {
  requirePlan(account, "statistics");
  return [account.org_id, params.id];
}

function ofDomain<P extends TObject["properties"]>(properties: P) {
  return Type.Object({ domain_id: Id, domain: Type.String(), ...properties });
}

function mountSummary(api: Api, world: World): void {
  const Summary = Named(
    "DomainStats",
    ofDomain({
      period_days: Type.Integer(),
      metrics: Extended("DomainMetrics", Figures, { period_days: Type.Integer() }),
      today_sent: Type.Integer({ description: "total_sent of the current UTC day" }),
      this_hour_sent: Type.Integer({ description: "total_sent of the current hour" }),
    }),
  );
  api.get(
    "/v1/domains/:id/stats",
    {
      schema: {
        operationId: "getDomainStats",
        tags,
        summary: "What became of a domain's mail, in one row",
        description,
        params: Params,
        querystring: days(7),
        response: answers({ 200: Summary }, [404]),
      },
    },
    async (request) => stats.summarize(world, ...allowed(request), request.query.days ?? 7),
  );
}

function mountDaily(api: Api, world: World): void {
  const Daily = Named(
    "DomainStatsDaily",
    ofDomain({
      days: Type.Integer(),
      stats: Type.Array(Extended("DomainStatsDay", Figures, { date: Day }), {
        description: "Oldest first, one row for every day",
      }),
    }),
  );
  api.get(
    "/v1/domains/:id/stats/daily",
    {
      schema: {
        operationId: "listDomainStatsDaily",
        tags,
        summary: "What became of a domain's mail, day by day",
        description,
        params: Params,
        querystring: days(30),
        response: answers({ 200: Daily }, [404]),
      },
    },
    async (request) => stats.listDaily(world, ...allowed(request), request.query.days ?? 30),
  );
}

function mountHourly(api: Api, world: World): void {
  const hours = Type.Integer({ minimum: 1, maximum: HOURS_MAX, default: 48, description: "The current hour included" });
  const Hourly = Named(
    "DomainStatsHourly",
    ofDomain({
      hours: Type.Integer(),
      stats: Type.Array(Extended("DomainStatsHour", Figures, { hour: Time }), {
        description: "Oldest first, one row for every hour",
      }),
    }),
  );
  api.get(
    "/v1/domains/:id/stats/hourly",
    {
      schema: {
        operationId: "listDomainStatsHourly",
        tags,
        summary: "What became of a domain's mail, hour by hour",
        description,
        params: Params,
        querystring: Closed({ hours: Type.Optional(hours) }),
        response: answers({ 200: Hourly }, [404]),
      },
    },
    async (request) => stats.listHourly(world, ...allowed(request), request.query.hours ?? 48),
  );
}

function mountIsps(api: Api, world: World): void {
  const Reason = Named(
    "BounceReason",
    Type.Object({
      reason: Type.String({ description: "The bounce class, such as invalid_recipient" }),
      code: Nullable(Type.String({ description: "Enhanced status code (RFC 3463)" })),
      count: Type.Integer(),
    }),
  );
  const Isp = Extended("IspStats", Figures, {
    isp: Type.String({
      description:
        "By the MX that answered, not by the address: google, microsoft, yahoo, apple, proton, gmx, … ; other: " +
        "none of these, or none was asked (suppressed, no such domain)",
    }),
    top_bounce_reasons: Type.Array(Reason, { description: "The five most frequent" }),
  });
  api.get(
    "/v1/domains/:id/stats/isp",
    {
      schema: {
        operationId: "listDomainStatsByIsp",
        tags,
        summary: "What became of a domain's mail, by mailbox provider",
        description,
        params: Params,
        querystring: days(7),
        response: answers({ 200: ofDomain({ days: Type.Integer(), isps: Type.Array(Isp) }) }, [404]),
      },
    },
    async (request) => stats.listIsps(world, ...allowed(request), request.query.days ?? 7),
  );
}
