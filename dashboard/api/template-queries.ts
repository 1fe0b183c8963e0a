// What the pages of templates read.
import { queryOptions } from "@tanstack/react-query";
import type { TemplateFilters } from "../lib/list-filters.ts";
import { type Schemas, take, v1 } from "./client.ts";
import { PAGE_ROWS } from "./queries.ts";

export function templates(filters: TemplateFilters) {
  return queryOptions({
    queryKey: ["templates", filters],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/templates", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal })),
    placeholderData: (before) => before,
  });
}

export function template(id: string) {
  return queryOptions({
    queryKey: ["templates", "one", id],
    queryFn: ({ signal }) => take(v1.GET("/v1/templates/{id}", { params: { path: { id } }, signal })),
  });
}

/** What a recipient would get of these sources. Nothing is saved; an answer is kept only while it is shown. */
export function templatePreview(id: string, body: Schemas["PreviewTemplateRequest"]) {
  return queryOptions({
    queryKey: ["template-preview", id, body],
    queryFn: ({ signal }) => take(v1.POST("/v1/templates/{id}/preview", { params: { path: { id } }, body, signal })),
    placeholderData: (before) => before,
    gcTime: 0,
  });
}

export function templateVersions(id: string, before?: number) {
  return queryOptions({
    queryKey: ["templates", "one", id, "versions", before ?? null],
    queryFn: ({ signal }) =>
      take(
        v1.GET("/v1/templates/{id}/versions", {
          params: { path: { id }, query: { ...(before === undefined ? {} : { before }), limit: PAGE_ROWS } },
          signal,
        }),
      ),
    placeholderData: (last) => last,
  });
}

/** A version is never changed. */
export function templateVersion(id: string, version: number) {
  return queryOptions({
    queryKey: ["templates", "version", id, version],
    queryFn: ({ signal }) =>
      take(
        v1.GET("/v1/templates/{id}/versions/{version}", { params: { path: { id, version: String(version) } }, signal }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });
}
