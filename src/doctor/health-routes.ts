// /dashboard/api/operator/health: what runs, what `postern doctor` found last, and having it look again.
import { Type } from "typebox";
import { organizationNamed } from "../accounts/accounts.ts";
import { notePerson } from "../audit/audit.ts";
import { AnswerOf, type Api, answers, Named, Nullable, OneOf, Time } from "../http/http.ts";
import type { World } from "../platform/world.ts";
import { type Examine, looker, readHealth } from "./health.ts";

const tags = ["Health"];
const HEALTH = "/dashboard/api/operator/health";
const OPERATOR = { needs: "operator" } as const;

const Check = Named(
  "HealthCheck",
  Type.Object({
    name: Type.String(),
    status: OneOf(["ok", "warning", "problem", "skipped"]),
    says: Type.String(),
    remedy: Nullable(Type.String()),
  }),
);

const Look = Named(
  "HealthLook",
  Type.Object({ machine: Type.String(), at: Time, asked_by: Type.String(), checks: Type.Array(Check) }),
);

const Health = Named(
  "Health",
  Type.Object({
    machine: Type.String({ description: "That answers" }),
    versions: Type.Object({ postern: Type.String(), node: Type.String(), database: Type.String() }),
    database: Type.Object({ bytes: Type.Integer(), started_at: Time }),
    disk: Nullable(Type.Object({ folder: Type.String(), free_bytes: Type.Integer(), bytes: Type.Integer() })),
    certificate: Nullable(
      Type.Object({ names: Type.Array(Type.String()), not_after: Nullable(Time), failure: Nullable(Type.String()) }),
    ),
    nodes: Type.Array(
      Named(
        "SendingNode",
        Type.Object({
          machine: Type.String(),
          pid: Type.Integer(),
          roles: Type.Array(Type.String()),
          started_at: Time,
          seen_at: Time,
        }),
      ),
      { description: "Processes that send" },
    ),
    looks: Type.Array(Look, { description: "The last of each machine, the newest first" }),
  }),
);
const One = AnswerOf("health", Health);

/** Mounts them on the scope of the dashboard's own API. */
export function mountHealth(api: Api, world: World, examine: Examine): void {
  const look = looker(world, examine);
  api.get(
    HEALTH,
    {
      config: OPERATOR,
      schema: {
        operationId: "getHealth",
        tags,
        summary: "What runs, and what the last look of each machine found",
        response: answers({ 200: One }),
      },
    },
    async () => ({ health: await readHealth(world) }),
  );

  api.post(
    `${HEALTH}/look`,
    {
      config: OPERATOR,
      schema: {
        operationId: "lookAtHealth",
        tags,
        summary: "Have `postern doctor` look at this machine now; it takes some seconds",
        response: answers({ 200: One }),
      },
    },
    async (request) => {
      const { person } = request.session;
      await look(person.email);
      await notePerson(world, await organizationNamed(world, null), { person, request, operation: "lookAtHealth" });
      return { health: await readHealth(world) };
    },
  );
}
