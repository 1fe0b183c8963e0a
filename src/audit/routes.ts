// /v1/audit-log
import { Type } from "typebox";
import {
  type Api,
  answers,
  Closed,
  Id,
  Named,
  Nullable,
  OneOf,
  PageOf,
  PageQuery,
  pageOf,
  Time,
} from "../http/http.ts";
import type { World } from "../platform/world.ts";
import * as audit from "./audit.ts";

const AuditChange = Named(
  "AuditChange",
  Type.Object({
    field: Type.String({ description: "Its name; `a.b`: b within a" }),
    before: Nullable(Type.String({ description: "As text; null: none, or not known" })),
    after: Nullable(Type.String({ description: "As text; null: none" })),
  }),
);

const Entry = Named(
  "AuditEntry",
  Type.Object({
    id: Id,
    at: Time,
    actor: OneOf(["key", "person", "command"], {
      description: "person: somebody in the dashboard. command: somebody at the command line of the service",
    }),
    key_id: Nullable(Id),
    person_id: Nullable(Id),
    name: Type.String({
      description: "Of the key as it was then, the person's address, or the user at the command line",
    }),
    ip: Nullable(Type.String({ description: "The client's address; null for commands" })),
    operation: Type.String({ description: "The operationId, such as updateDomain, or the command" }),
    target: Named(
      "AuditTarget",
      Type.Record(Type.String(), Type.String(), {
        description: "What was changed: names from the path, and the id of the record. No address of a person",
      }),
    ),
    fields: Type.Array(Type.String(), { description: "Names of the fields that were given" }),
    changes: Type.Array(AuditChange, { description: "No free text, address (`…`) or secret" }),
    request_id: Nullable(Type.String({ format: "uuid", description: "X-Request-ID of the answer" })),
  }),
);

const day = Type.String({ maxLength: 40, description: "A day or an RFC 3339 time, inclusive" });

/** Mounts the endpoint of the audit log. */
export function mountAudit(api: Api, world: World): void {
  api.get(
    "/v1/audit-log",
    {
      schema: {
        operationId: "listAuditLog",
        tags: ["Audit log"],
        summary: "List changes that keys, people and commands made, newest first",
        description: "Kept for 400 days. Sending is not in it: each e-mail has its timeline.",
        querystring: Closed({
          ...PageQuery,
          operation: Type.Optional(Type.String({ maxLength: 100 })),
          key_id: Type.Optional(Id),
          from_date: Type.Optional(day),
          to_date: Type.Optional(day),
        }),
        response: answers({ 200: PageOf("entries", Entry) }),
      },
    },
    async (request) => {
      const { limit: _limit, offset: _offset, ...query } = request.query;
      return audit.listEntries(world, request.account.org_id, query, pageOf(request.query));
    },
  );
}
