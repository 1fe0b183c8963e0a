// What the pages of operators read: one function a question, each with the name under which the answer is kept.
import { queryOptions } from "@tanstack/react-query";
import type { OrganizationFilters } from "../lib/list-filters.ts";
import type { OwnMailFilters, QueueFilters, RelayFilters, SourceFilters } from "../lib/operator-filters.ts";
import { people, take } from "./client.ts";
import { PAGE_ROWS } from "./queries.ts";

/** Queues move by themselves. */
const AGAIN_MS = 15_000;
const REVIEWS_SHOWN = 5;
/** While a drop is worked off. */
const SOON_MS = 2_000;

export function organizations(filters: OrganizationFilters) {
  return queryOptions({
    queryKey: ["operator", "organizations", filters],
    queryFn: ({ signal }) =>
      take(
        people.GET("/dashboard/api/operator/organizations", {
          params: { query: { ...filters, limit: PAGE_ROWS } },
          signal,
        }),
      ),
    placeholderData: (before) => before,
  });
}

/** Those that wait for a review, whatever the list is narrowed to. */
export const reviews = queryOptions({
  queryKey: ["operator", "organizations", "reviews"],
  queryFn: ({ signal }) =>
    take(
      people.GET("/dashboard/api/operator/organizations", {
        params: { query: { state: "pending_review", limit: REVIEWS_SHOWN } },
        signal,
      }),
    ),
});

export function review(id: string) {
  return queryOptions({
    queryKey: ["operator", "organizations", "review", id],
    queryFn: ({ signal }) =>
      take(people.GET("/dashboard/api/operator/organizations/{id}/review", { params: { path: { id } }, signal })),
  });
}

export function queue(filters: QueueFilters) {
  return queryOptions({
    queryKey: ["operator", "queue", filters],
    queryFn: ({ signal }) =>
      take(
        people.GET("/dashboard/api/operator/queue", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal }),
      ),
    placeholderData: (before) => before,
    refetchInterval: AGAIN_MS,
  });
}

export function destination(domain: string) {
  return queryOptions({
    queryKey: ["operator", "queue", "of", domain],
    queryFn: ({ signal }) =>
      take(people.GET("/dashboard/api/operator/queue/{domain}", { params: { path: { domain } }, signal })),
    refetchInterval: ({ state }) => (state.data?.destination.is_dropping ? SOON_MS : AGAIN_MS),
  });
}

export function sources(filters: SourceFilters) {
  return queryOptions({
    queryKey: ["operator", "sources", filters],
    queryFn: ({ signal }) =>
      take(
        people.GET("/dashboard/api/operator/sources", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal }),
      ),
    placeholderData: (before) => before,
    refetchInterval: AGAIN_MS,
  });
}

export function relays(filters: RelayFilters) {
  return queryOptions({
    queryKey: ["operator", "relays", filters],
    queryFn: ({ signal }) =>
      take(
        people.GET("/dashboard/api/operator/relays", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal }),
      ),
    placeholderData: (before) => before,
    refetchInterval: AGAIN_MS,
  });
}

export const health = queryOptions({
  queryKey: ["operator", "health"],
  queryFn: ({ signal }) => take(people.GET("/dashboard/api/operator/health", { signal })),
  refetchInterval: AGAIN_MS,
});

const OWN_MAIL = "/dashboard/api/operator/mail/{id}";

export function ownMail(filters: OwnMailFilters) {
  return queryOptions({
    queryKey: ["operator", "mail", filters],
    queryFn: ({ signal }) =>
      take(people.GET("/dashboard/api/operator/mail", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal })),
    placeholderData: (before) => before,
    refetchInterval: AGAIN_MS,
  });
}

export function oneOwnMail(id: string) {
  return queryOptions({
    queryKey: ["operator", "mail", "of", id],
    queryFn: ({ signal }) => take(people.GET(OWN_MAIL, { params: { path: { id } }, signal })),
  });
}

/** What is downloaded of it. */
export function ownMailDownloads(id: string) {
  const files = `${OWN_MAIL}/attachments/{attachment_id}/download` as const;
  return {
    source: () => take(people.GET(`${OWN_MAIL}/raw`, { params: { path: { id } }, parseAs: "blob" })),
    file: (attachment_id: string) =>
      take(people.GET(files, { params: { path: { id, attachment_id } }, parseAs: "blob" })),
  };
}
