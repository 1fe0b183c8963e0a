// What the pages of masked addresses read.
import { queryOptions } from "@tanstack/react-query";
import type { DestinationFilters, FailedFilters, MaskedAliasView, MaskedFilters } from "../lib/masked-filters.ts";
import { take, v1 } from "./client.ts";
import { LIVE_MS, PAGE_ROWS } from "./queries.ts";

export function maskedAliases({ state, ...filters }: MaskedFilters) {
  const of = { on: { active: true }, off: { active: false }, deleted: { deleted: true } };
  const query = { ...filters, ...(state === undefined ? {} : of[state]), limit: PAGE_ROWS };
  return queryOptions({
    queryKey: ["masked", "aliases", query],
    queryFn: ({ signal }) => take(v1.GET("/v1/masked/aliases", { params: { query }, signal })),
    placeholderData: (before) => before,
  });
}

export function maskedAlias(id: string) {
  return queryOptions({
    queryKey: ["masked", "alias", id],
    queryFn: ({ signal }) => take(v1.GET("/v1/masked/aliases/{id}", { params: { path: { id } }, signal })),
  });
}

export function maskedActivity(id: string, { type, outcome, after }: MaskedAliasView) {
  const query = { type, outcome, after, limit: PAGE_ROWS };
  return queryOptions({
    queryKey: ["masked", "alias", id, "activity", query],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/masked/aliases/{id}/activity", { params: { path: { id }, query }, signal })),
    refetchInterval: LIVE_MS * 2,
    placeholderData: (before) => before,
  });
}

export function maskedContacts(id: string, { blocked, email, after }: MaskedAliasView) {
  const query = { blocked, email, after, limit: PAGE_ROWS };
  return queryOptions({
    queryKey: ["masked", "alias", id, "contacts", query],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/masked/aliases/{id}/contacts", { params: { path: { id }, query }, signal })),
    placeholderData: (before) => before,
  });
}

/** Read again while somebody has not confirmed: the page ticks by itself. */
export function maskedDestinations(filters: DestinationFilters) {
  return queryOptions({
    queryKey: ["masked", "destinations", filters],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/masked/destinations", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal })),
    refetchInterval: ({ state }) =>
      state.data?.destinations.some(({ status }) => status === "pending") ? LIVE_MS * 2 : false,
    placeholderData: (before) => before,
  });
}

/** One mailbox, with its key. */
export function maskedDestination(id: string) {
  return queryOptions({
    queryKey: ["masked", "destinations", "of", id],
    queryFn: ({ signal }) => take(v1.GET("/v1/masked/destinations/{id}", { params: { path: { id } }, signal })),
    refetchInterval: ({ state }) => (state.data?.destination.status === "pending" ? LIVE_MS * 2 : false),
  });
}

export function maskedPatterns(id: string, after: string | undefined) {
  const query = { after, limit: PAGE_ROWS };
  return queryOptions({
    queryKey: ["masked", "destinations", "of", id, "patterns", query],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/masked/destinations/{id}/patterns", { params: { path: { id }, query }, signal })),
    placeholderData: (before) => before,
  });
}

export function maskedFailed(filters: FailedFilters) {
  const query = { ...filters, limit: PAGE_ROWS };
  return queryOptions({
    queryKey: ["masked", "failed", query],
    queryFn: ({ signal }) => take(v1.GET("/v1/masked/failed", { params: { query }, signal })),
    refetchInterval: LIVE_MS * 2,
    placeholderData: (before) => before,
  });
}

export const maskedSettings = queryOptions({
  queryKey: ["masked", "settings"],
  queryFn: ({ signal }) => take(v1.GET("/v1/masked/settings", { signal })),
});
