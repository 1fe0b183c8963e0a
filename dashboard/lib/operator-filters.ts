// The filters of operators' lists, as a page's address holds them. Pure.
import { dense, oneOf, type Search, text } from "./list-filters.ts";

export const QUEUE_STATES = ["suspended", "resting", "due", "waiting"] as const;
export type QueueFilters = { query?: string; state?: (typeof QUEUE_STATES)[number]; after?: string };

export function readQueueFilters(search: Search): QueueFilters {
  const state = oneOf(search, "state", QUEUE_STATES);
  return dense({ query: text(search, "query"), state, after: text(search, "after") });
}

export const SOURCE_STATES = ["ready", "warming", "unavailable", "out_of_use", "leaving"] as const;
export type SourceFilters = { query?: string; state?: (typeof SOURCE_STATES)[number]; after?: string };

export function readSourceFilters(search: Search): SourceFilters {
  const state = oneOf(search, "state", SOURCE_STATES);
  return dense({ query: text(search, "query"), state, after: text(search, "after") });
}

export const RELAY_STATES = ["resting", "in_use", "standby"] as const;
export type RelayFilters = { query?: string; state?: (typeof RELAY_STATES)[number]; after?: string };

export function readRelayFilters(search: Search): RelayFilters {
  const state = oneOf(search, "state", RELAY_STATES);
  return dense({ query: text(search, "query"), state, after: text(search, "after") });
}

export const MAILBOXES = ["postmaster", "abuse", "feedback", "fbl", "hostmaster", "security"] as const;
export type OwnMailFilters = { query?: string; mailbox?: (typeof MAILBOXES)[number]; after?: string };

export function readOwnMailFilters(search: Search): OwnMailFilters {
  const mailbox = oneOf(search, "mailbox", MAILBOXES);
  return dense({ query: text(search, "query"), mailbox, after: text(search, "after") });
}
