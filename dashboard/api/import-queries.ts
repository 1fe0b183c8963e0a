// What the page of an import reads.
import { queryOptions } from "@tanstack/react-query";
import { take, v1 } from "./client.ts";

const PROGRESS_MS = 1_000;
const MOVING = new Set(["reading", "committing"]);

/** Read again while it is read or added. */
export function suppressionImport(id: string) {
  return queryOptions({
    queryKey: ["import", id],
    queryFn: ({ signal }) => take(v1.GET("/v1/imports/suppressions/jobs/{id}", { params: { path: { id } }, signal })),
    refetchInterval: ({ state }) => (MOVING.has(state.data?.job.status ?? "") ? PROGRESS_MS : false),
  });
}
