// The filters of received mail and of what decides on it, as pages' addresses hold them. Pure.
import { dense, oneOf, type Search, text } from "./list-filters.ts";

export const INBOUND_STATES = ["received", "processing", "delivered", "failed", "quarantined", "dropped"] as const;
export type InboundStatus = (typeof INBOUND_STATES)[number];
export type InboundFilters = {
  q?: string;
  from?: string;
  to?: string;
  subject?: string;
  status?: InboundStatus;
  domain_id?: string;
  thread_id?: string;
  has_attachments?: boolean;
  from_date?: string;
  to_date?: string;
  after?: string;
  live?: boolean;
};

export function readInboundFilters(search: Search): InboundFilters {
  const words = ["q", "from", "to", "subject", "domain_id", "thread_id", "from_date", "to_date", "after"];
  return dense({
    ...Object.fromEntries(words.map((name) => [name, text(search, name)])),
    status: oneOf(search, "status", INBOUND_STATES),
    has_attachments: typeof search.has_attachments === "boolean" ? search.has_attachments : undefined,
    live: search.live === true ? true : undefined,
  });
}

export const ACTIONS = ["webhook", "forward", "store", "drop"] as const;
export type Action = (typeof ACTIONS)[number];
export type AliasFilters = { q?: string; domain_id?: string; action?: Action; after?: string };

export function readAliasFilters(search: Search): AliasFilters {
  const words = ["q", "domain_id", "after"];
  return dense({
    ...Object.fromEntries(words.map((name) => [name, text(search, name)])),
    action: oneOf(search, "action", ACTIONS),
  });
}

export type OfDomain = { domain_id?: string };

export function readOfDomain(search: Search): OfDomain {
  return dense({ domain_id: text(search, "domain_id") });
}

/** What is done with mail, in a word or two. */
export const ACTION_WORDS: Record<Action, string> = {
  webhook: "Webhook",
  forward: "Forward",
  store: "Keep only",
  drop: "Put aside",
};
