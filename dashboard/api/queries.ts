// What pages read: one function a question, each with the name under which the answer is kept.
import { queryOptions } from "@tanstack/react-query";
import type { EmailFilters } from "../lib/email-filters.ts";
import type { DeliveryFilters, LogFilters, PageView, SuppressionFilters } from "../lib/list-filters.ts";
import { take, v1 } from "./client.ts";

export const PAGE_ROWS = 50;
export const LIVE_MS = 4_000;

/** The most rows that one question gives, and those that are read where one of all is chosen. */
const ROWS_MAX = 100;
const CHOICE_MAX = 1_000;

/** The first page with the rows of all that follow. */
async function allRows<Name extends string, Page extends Record<Name, { id: string }[]>>(
  name: Name,
  read: (query: { limit: number; after?: string }) => Promise<Page>,
): Promise<Page> {
  const first = await read({ limit: ROWS_MAX });
  const rows: { id: string }[] = [...first[name]];
  for (let found = rows.length; found === ROWS_MAX && rows.length < CHOICE_MAX; ) {
    const next: { id: string }[] = (await read({ limit: ROWS_MAX, after: rows.at(-1)?.id }))[name];
    rows.push(...next);
    found = next.length;
  }
  return { ...first, [name]: rows };
}

export const domains = queryOptions({
  queryKey: ["domains"],
  queryFn: ({ signal }) => allRows("domains", (query) => take(v1.GET("/v1/domains", { params: { query }, signal }))),
  staleTime: 30_000,
});

export function domainsPage({ after }: PageView) {
  const query = { after, limit: PAGE_ROWS };
  return queryOptions({
    queryKey: ["domains", "page", after],
    queryFn: ({ signal }) => take(v1.GET("/v1/domains", { params: { query }, signal })),
    placeholderData: (before) => before,
  });
}

/** `everyMs`: how often it is read again (lib/live.ts). */
export function emails({ live: _live, ...filters }: EmailFilters, everyMs: number | false) {
  return queryOptions({
    queryKey: ["emails", filters],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/emails", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal })),
    refetchInterval: everyMs,
    placeholderData: (before) => before,
  });
}

/** As many events as one question takes; as long as deliveries are kept. */
const EVENT_IDS_MAX = 100;
const KEPT_DAYS = 90;
const WAITING = new Set(["pending", "retrying"]);

/** States in which something may still happen. */
const MOVING = new Set(["scheduled", "queued", "sending", "deferred"]);

export function email(id: string, everyMs: number | false) {
  return queryOptions({
    queryKey: ["email", id],
    queryFn: ({ signal }) => take(v1.GET("/v1/emails/{id}", { params: { path: { id } }, signal })),
    refetchInterval: ({ state }) => (MOVING.has(state.data?.email.status ?? "") ? everyMs : false),
  });
}

export function emailEvents(id: string, everyMs: number | false) {
  return queryOptions({
    queryKey: ["email", id, "events"],
    queryFn: ({ signal }) => take(v1.GET("/v1/emails/{id}/events", { params: { path: { id } }, signal })),
    refetchInterval: everyMs,
  });
}

export function emailContent(id: string) {
  return queryOptions({
    queryKey: ["email", id, "content"],
    queryFn: ({ signal }) => take(v1.GET("/v1/emails/{id}/content", { params: { path: { id } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function isMoving(status: string): boolean {
  return MOVING.has(status);
}

export function suppressions(filters: SuppressionFilters) {
  return queryOptions({
    queryKey: ["suppressions", filters],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/suppressions", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal })),
    placeholderData: (before) => before,
  });
}

/** While its records are not all found, the server looks by itself; the page looks with it. */
export function domain(id: string) {
  return queryOptions({
    queryKey: ["domain", id],
    queryFn: ({ signal }) => take(v1.GET("/v1/domains/{id}", { params: { path: { id } }, signal })),
    refetchInterval: LIVE_MS * 2,
  });
}

export function dnsRecords(id: string) {
  return queryOptions({
    queryKey: ["domain", id, "dns"],
    queryFn: ({ signal }) => take(v1.GET("/v1/domains/{id}/dns", { params: { path: { id } }, signal })),
    refetchInterval: LIVE_MS * 2,
  });
}

export function domainStats(id: string) {
  return queryOptions({
    queryKey: ["domain", id, "stats"],
    queryFn: ({ signal }) => take(v1.GET("/v1/domains/{id}/stats", { params: { path: { id } }, signal })),
  });
}

export const webhooks = queryOptions({
  queryKey: ["webhooks"],
  queryFn: ({ signal }) => allRows("webhooks", (query) => take(v1.GET("/v1/webhooks", { params: { query }, signal }))),
});

export function webhooksPage({ after }: PageView) {
  const query = { after, limit: PAGE_ROWS };
  return queryOptions({
    queryKey: ["webhooks", "page", after],
    queryFn: ({ signal }) => take(v1.GET("/v1/webhooks", { params: { query }, signal })),
    placeholderData: (before) => before,
  });
}

export function webhook(id: string) {
  return queryOptions({
    queryKey: ["webhooks", id],
    queryFn: ({ signal }) => take(v1.GET("/v1/webhooks/{id}", { params: { path: { id } }, signal })),
  });
}

export function deliveriesOf(id: string, filters: DeliveryFilters) {
  return queryOptions({
    queryKey: ["webhooks", id, "deliveries", filters],
    queryFn: ({ signal }) =>
      take(
        v1.GET("/v1/webhooks/{id}/deliveries", {
          params: { path: { id }, query: { ...filters, limit: PAGE_ROWS } },
          signal,
        }),
      ),
    refetchInterval: LIVE_MS,
    placeholderData: (before) => before,
  });
}

export function allDeliveries(filters: LogFilters) {
  return queryOptions({
    queryKey: ["webhooks", "deliveries", filters],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/webhook-deliveries", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal })),
    refetchInterval: LIVE_MS,
    placeholderData: (before) => before,
  });
}

/** The webhook deliveries of what happened to one e-mail: an event of its timeline has the same id at webhooks. */
export function deliveriesOfEvents(eventIds: readonly string[]) {
  const query = { event_ids: eventIds.slice(-EVENT_IDS_MAX).join(","), days: KEPT_DAYS, limit: PAGE_ROWS };
  return queryOptions({
    queryKey: ["webhooks", "deliveries", "of", eventIds],
    queryFn: ({ signal }) => take(v1.GET("/v1/webhook-deliveries", { params: { query }, signal })),
    enabled: eventIds.length > 0,
    refetchInterval: ({ state }) =>
      state.data?.deliveries.some(({ status }) => WAITING.has(status)) ? LIVE_MS : false,
    placeholderData: (before) => before,
  });
}

export function apiKeys({ after }: PageView) {
  const query = { after, limit: PAGE_ROWS };
  return queryOptions({
    queryKey: ["keys", after],
    queryFn: ({ signal }) => take(v1.GET("/v1/api-keys", { params: { query }, signal })),
    placeholderData: (before) => before,
  });
}

/** One e-mail at most: whether there is any like this. */
export function anyEmail(like: Pick<EmailFilters, "status">) {
  return queryOptions({
    queryKey: ["emails", "any", like],
    queryFn: ({ signal }) => take(v1.GET("/v1/emails", { params: { query: { ...like, limit: 1 } }, signal })),
  });
}
