// What the pages of received mail read: mails, rules, aliases, settings on spam.
import { queryOptions } from "@tanstack/react-query";
import type { AliasFilters, InboundFilters } from "../lib/inbound-filters.ts";
import { take, v1 } from "./client.ts";
import { LIVE_MS, PAGE_ROWS } from "./queries.ts";

/** `everyMs`: how often it is read again (lib/live.ts). */
export function inboundEmails({ live: _live, ...filters }: InboundFilters, everyMs: number | false = false) {
  return queryOptions({
    queryKey: ["inbound", filters],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/inbound-emails", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal })),
    refetchInterval: everyMs,
    placeholderData: (before) => before,
  });
}

/** The newest mails of a domain, as many as one page of the API has. */
export function newestOf(domainId: string, limit: number) {
  return queryOptions({
    queryKey: ["inbound", "newest", domainId, limit],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/inbound-emails", { params: { query: { domain_id: domainId, limit } }, signal })),
  });
}

/** Read again until something is done with it. */
export function inboundEmail(id: string) {
  return queryOptions({
    queryKey: ["inbound-email", id],
    queryFn: ({ signal }) => take(v1.GET("/v1/inbound-emails/{id}", { params: { path: { id } }, signal })),
    refetchInterval: ({ state }) =>
      ["received", "processing"].includes(state.data?.email.status ?? "") ? LIVE_MS : false,
  });
}

/** Why a stored rule holds for a mail, condition by condition. Nothing is changed. */
export function ruleTrace(rule_id: string, email_id: string) {
  return queryOptions({
    queryKey: ["rule-trace", rule_id, email_id],
    queryFn: ({ signal }) => take(v1.POST("/v1/inbound-rules/test", { body: { rule_id, email_id }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function inboundRules(domain_id: string) {
  return queryOptions({
    queryKey: ["rules", domain_id],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/inbound-rules", { params: { query: { domain_id, limit: 100 } }, signal })),
  });
}

export function inboundRule(id: string) {
  return queryOptions({
    queryKey: ["rules", "one", id],
    queryFn: ({ signal }) => take(v1.GET("/v1/inbound-rules/{id}", { params: { path: { id } }, signal })),
  });
}

export function aliases(filters: AliasFilters) {
  return queryOptions({
    queryKey: ["aliases", filters],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/aliases", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal })),
    placeholderData: (before) => before,
  });
}

export function domainSpam(id: string) {
  return queryOptions({
    queryKey: ["domain", id, "spam"],
    queryFn: ({ signal }) => take(v1.GET("/v1/domains/{id}/spam", { params: { path: { id } }, signal })),
  });
}

/** What is downloaded of a received mail. */
export function inboundDownloads(id: string) {
  const files = "/v1/inbound-emails/{id}/attachments/{attachment_id}/download";
  return {
    source: () => take(v1.GET("/v1/inbound-emails/{id}/raw", { params: { path: { id } }, parseAs: "blob" })),
    file: (attachment_id: string) => take(v1.GET(files, { params: { path: { id, attachment_id } }, parseAs: "blob" })),
  };
}
