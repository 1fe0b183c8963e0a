// /v1/domains/{id}/warming
import { type Static, type TSchema, Type } from "typebox";
import {
  type Api,
  answers,
  Closed,
  Day,
  Id,
  type IdParams,
  Named,
  Nullable,
  OffsetQuery,
  OneOf,
  PageOf,
  pageOf,
  Rate,
  Time,
} from "../http/http.ts";
import { readName } from "../http/one-line.ts";
import type { World } from "../platform/world.ts";
import { DECISIONS, PHASES, START_PHASES, type WarmingPorts } from "./types.ts";
import * as warming from "./warming.ts";

const REASON_CHARS_MAX = 300;
const ID_CHARS_MAX = 1024;

const Limit = (what: string) =>
  Nullable(Type.Integer({ description: `Recipients ${what}; null: no limit; 0 while paused` }));

const Status = Named(
  "Warming",
  Type.Object({
    domain_id: Id,
    domain: Type.String(),
    phase: OneOf(PHASES, {
      description:
        "phase_1 to phase_4 have limits. not_started and warmed have none; a domain starts by itself when its SPF and " +
        "DKIM verify, unless the organization has turned that off",
    }),
    paused: Type.Boolean({
      description:
        "true: all mail of the domain is refused with 429 and limit 0 until resumed. Also set by more than 5 % hard bounces or 0.3 % complaints over the last 3 UTC days, of at least 20 recipients and 2 such events",
    }),
    paused_reason: Nullable(Type.String()),
    warming_started_at: Nullable(Time),
    phase_started_at: Nullable(Time),
    days_in_current_phase: Type.Integer({
      description: "The day of the phase, from 1, by UTC days; paused days do not count. 0 before the start",
    }),
    current_limits: Named(
      "WarmingLimits",
      Type.Object({
        daily_limit: Limit("a UTC day"),
        hourly_limit: Limit("an hour: a tenth of the day"),
        per_minute_limit: Limit("a minute: a twenty-fifth of the hour, at least 10"),
      }),
    ),
    today_sent: Type.Integer({
      description:
        "Recipients accepted today (UTC), scheduled mail on the day it leaves; without limits: handed to delivery",
    }),
    this_hour_sent: Type.Integer(),
    remaining_today: Nullable(Type.Integer()),
    remaining_this_hour: Nullable(Type.Integer()),
    delivery_rate: Nullable(Rate),
    bounce_rate: Nullable({ ...Rate, description: "Hard bounces: what the rules go by" }),
    complaint_rate: Nullable({
      ...Rate,
      description: "All three over the last 3 UTC days; null when nothing was sent",
    }),
    next_phase: Nullable(OneOf(PHASES)),
    next_phase_at: Nullable({ ...Time, description: "The earliest time; null while paused" }),
    held_reason: Nullable(
      Type.String({
        description:
          "Why the phase goes on although its days are over: over the last 3 UTC days deliveries were below 95 %, hard " +
          "bounces above 2 %, complaints above 0.1 %, or nothing was sent",
      }),
    ),
  }),
);

const HistoryDay = Named(
  "WarmingDay",
  Type.Object({
    date: Day,
    phase: OneOf(START_PHASES),
    daily_limit: Nullable(Type.Integer()),
    sent: Type.Integer(),
    delivered: Type.Integer(),
    bounced: Type.Integer({ description: "Hard and soft" }),
    hard_bounced: Type.Integer(),
    complained: Type.Integer(),
    decision: OneOf(DECISIONS, { description: "What was decided when the day was over" }),
    reason: Nullable(Type.String()),
  }),
);

const Params = Type.Object({
  id: Type.String({ maxLength: ID_CHARS_MAX, description: "The domain's id or its name" }),
}) as typeof IdParams;
const tags = ["Warming"];

/** A body that may be absent. */
function optional<S extends TSchema>(schema: S) {
  return Type.Unsafe<Static<S> | null | undefined>({ ...schema, nullable: true });
}

/** Mounts the warming endpoints. */
export function mountWarming(api: Api, world: World, ports: WarmingPorts): void {
  mountReading(api, world, ports);
  mountStart(api, world, ports);
  mountPausing(api, world, ports);
}

function mountReading(api: Api, world: World, ports: WarmingPorts): void {
  api.get(
    "/v1/domains/:id/warming",
    {
      schema: {
        operationId: "getWarming",
        tags,
        summary: "How much the domain may send now, and what comes next",
        description: "The limits of the current phase, what is used of them, and when the next phase begins.",
        params: Params,
        response: answers({ 200: Status }, [404]),
      },
    },
    async (request) => warming.getStatus(world, ports, request.account.org_id, request.params.id),
  );

  api.get(
    "/v1/domains/:id/warming/history",
    {
      schema: {
        operationId: "listWarmingHistory",
        tags,
        summary: "What was decided day by day, newest first",
        description: "One row for each day with its figures and what they led to.",
        params: Params,
        querystring: Closed(OffsetQuery),
        response: answers({ 200: PageOf("history", HistoryDay) }, [404]),
      },
    },
    async (request) => warming.listHistory(world, request.account.org_id, request.params.id, pageOf(request.query)),
  );
}

function mountStart(api: Api, world: World, ports: WarmingPorts): void {
  const phase = OneOf(START_PHASES, {
    description:
      "Where to begin, on its first day; warmed for a domain that is warm already. Default phase_1; required (else 409) " +
      "for a domain that has started",
  });
  api.post(
    "/v1/domains/:id/warming/start",
    {
      config: { live_domain_only: "change the limits of live mail" },
      schema: {
        operationId: "startWarming",
        tags,
        summary: "Start warming, or begin again at a phase",
        description:
          "A domain starts by itself when its SPF and DKIM verify. Start it by hand to begin at another phase, or at `warmed` where providers know the domain already. Mail that waits leaves by the new limits.",
        params: Params,
        body: optional(Closed({ phase: Type.Optional(phase) })),
        response: answers({ 200: Status }, [404, 409]),
      },
    },
    async (request) => {
      const start = { id: request.params.id, phase: request.body?.phase };
      return warming.startWarming(world, ports, request.account.org_id, start);
    },
  );
}

function mountPausing(api: Api, world: World, ports: WarmingPorts): void {
  const reason = Type.String({
    minLength: 1,
    maxLength: REASON_CHARS_MAX,
    description: "Shown as paused_reason; one line",
  });
  api.post(
    "/v1/domains/:id/warming/pause",
    {
      config: { live_domain_only: "change the limits of live mail" },
      schema: {
        operationId: "pauseWarming",
        tags,
        summary: "Refuse all mail of the domain until resumed; the days of the phase stand still",
        description: "Mail of the domain gets 429 until it is resumed. 409 when the domain is not warming.",
        params: Params,
        body: optional(Closed({ reason: Type.Optional(reason) })),
        response: answers({ 200: Status }, [404, 409]),
      },
    },
    async (request) => {
      const given = request.body?.reason;
      const reason = given === undefined ? given : readName("reason", given, REASON_CHARS_MAX);
      const pause = { id: request.params.id, reason };
      return warming.pauseWarming(world, ports, request.account.org_id, pause);
    },
  );

  api.post(
    "/v1/domains/:id/warming/resume",
    {
      config: { live_domain_only: "change the limits of live mail" },
      schema: {
        operationId: "resumeWarming",
        tags,
        summary: "Go on with the day of the phase at which it was paused",
        description: "Sending goes on under the limits of the day at which it was paused. 409 when it is not paused.",
        params: Params,
        body: optional(Closed({})),
        response: answers({ 200: Status }, [404, 409]),
      },
    },
    async (request) => warming.resumeWarming(world, ports, request.account.org_id, request.params.id),
  );
}
