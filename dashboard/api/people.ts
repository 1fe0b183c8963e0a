// Who is signed in, and what people's pages read: one function a question, each with the name under which the answer is kept.
import { type QueryClient, queryOptions } from "@tanstack/react-query";
import { actFor, actingFor } from "../lib/acting.ts";
import { setAnybodyIn } from "../lib/asked.ts";
import type { AuditFilters } from "../lib/list-filters.ts";
import { Declined, door, type PeopleSchemas, people, take, v1 } from "./client.ts";
import { PAGE_ROWS } from "./queries.ts";

export type Session = PeopleSchemas["Session"];

/** Null: nobody is signed in. */
export const session = queryOptions({
  queryKey: ["session"],
  queryFn: async ({ signal }) => {
    try {
      return keepSession(await take(door.GET("/dashboard/api/session", { signal })));
    } catch (error) {
      if (error instanceof Declined && error.status === 401) return null;
      throw error;
    }
  },
  staleTime: 60_000,
});

/** What follows from who is signed in: for which organization this tab acts, and whom to ask. */
function keepSession(found: Session): Session {
  const organization = actingFor(found.organizations);
  if (organization !== null) actFor(organization.id);
  setAnybodyIn(true);
  return found;
}

/** Somebody signed in, or out (null): nothing that was read before counts, as it may be another's. */
export function become(queries: QueryClient, found: Session | null): void {
  if (found === null) setAnybodyIn(false);
  queries.setQueryData(session.queryKey, found === null ? null : keepSession(found));
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== session.queryKey[0] });
}

/** How one may sign in here. */
export const waysIn = queryOptions({
  queryKey: ["ways-in"],
  queryFn: ({ signal }) => take(door.GET("/dashboard/api/ways-in", { signal })),
  staleTime: Number.POSITIVE_INFINITY,
});

export const sessions = queryOptions({
  queryKey: ["sessions"],
  queryFn: ({ signal }) => take(people.GET("/dashboard/api/sessions", { signal })),
});

export const passkeys = queryOptions({
  queryKey: ["passkeys"],
  queryFn: ({ signal }) => take(people.GET("/dashboard/api/person/passkeys", { signal })),
});

export function members(org_id: string) {
  return queryOptions({
    queryKey: ["people", org_id],
    queryFn: ({ signal }) =>
      take(people.GET("/dashboard/api/organizations/{org_id}/people", { params: { path: { org_id } }, signal })),
  });
}

export function invitations(org_id: string) {
  return queryOptions({
    queryKey: ["people", org_id, "invitations"],
    queryFn: ({ signal }) =>
      take(people.GET("/dashboard/api/organizations/{org_id}/invitations", { params: { path: { org_id } }, signal })),
  });
}

export const usage = queryOptions({
  queryKey: ["usage"],
  queryFn: ({ signal }) => take(v1.GET("/v1/usage", { signal })),
});

export function auditLog(filters: AuditFilters) {
  return queryOptions({
    queryKey: ["audit-log", filters],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/audit-log", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal })),
    placeholderData: (before) => before,
  });
}
