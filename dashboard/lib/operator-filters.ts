// The filters of operators' lists, as a page's address holds them. Pure.
import { dense, oneOf, type Search, text } from "./list-filters.ts";

export const QUEUE_STATES = ["suspended", "resting", "due", "waiting"] as const;
export type QueueFilters = { query?: string; state?: (typeof QUEUE_STATES)[number]; after?: string };

export function readQueueFilters(search: Search): QueueFilters {
  const state = oneOf(search, "state", QUEUE_STATES);
  return dense({ query: text(search, "query"), state, after: text(search, "after") });
}
