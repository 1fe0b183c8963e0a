// The filters of masked addresses as pages' addresses hold them, and the words for their states. Pure.
import { dense, oneOf, type Search, text } from "./list-filters.ts";
import type { Tone } from "./why.ts";

export const ALIAS_STATES = ["on", "off", "deleted"] as const;
export type MaskedFilters = {
  q?: string;
  state?: (typeof ALIAS_STATES)[number];
  forward_to?: string;
  pattern?: string;
  after?: string;
};

export function readMaskedFilters(search: Search): MaskedFilters {
  const [q, forward_to, pattern, after] = ["q", "forward_to", "pattern", "after"].map((name) => text(search, name));
  return dense({ q, state: oneOf(search, "state", ALIAS_STATES), forward_to, pattern, after });
}

export const FAILED_KINDS = ["forward", "reply"] as const;
export type FailedFilters = { kind?: (typeof FAILED_KINDS)[number]; alias_id?: string; after?: string };

export function readFailedFilters(search: Search): FailedFilters {
  const kind = oneOf(search, "kind", FAILED_KINDS);
  return dense({ kind, alias_id: text(search, "alias_id"), after: text(search, "after") });
}

/** Behind which pattern the list of one mailbox begins. */
export function readMailboxView(search: Search): { after?: string } {
  return dense({ after: text(search, "after") });
}

export const ACTIVITY_TYPES = ["forward", "reply", "block", "bounce", "quarantine", "auto_reply", "config"] as const;
export const OUTCOMES = ["sent", "deferred", "failed", "dropped", "held"] as const;
export const SHOWN = ["activity", "contacts", "check"] as const;
export type MaskedAliasView = {
  show?: (typeof SHOWN)[number];
  type?: (typeof ACTIVITY_TYPES)[number];
  outcome?: (typeof OUTCOMES)[number];
  blocked?: boolean;
  email?: string;
  after?: string;
};

export function readMaskedAliasView(search: Search): MaskedAliasView {
  return dense({
    show: oneOf(search, "show", SHOWN),
    type: oneOf(search, "type", ACTIVITY_TYPES),
    outcome: oneOf(search, "outcome", OUTCOMES),
    blocked: typeof search.blocked === "boolean" ? search.blocked : undefined,
    email: text(search, "email"),
    after: text(search, "after"),
  });
}

export const DESTINATION_STATES = ["pending", "verified", "suspended"] as const;
export type DestinationStatus = (typeof DESTINATION_STATES)[number];
export type DestinationFilters = { email?: string; status?: DestinationStatus; after?: string };

export function readDestinationFilters(search: Search): DestinationFilters {
  const status = oneOf(search, "status", DESTINATION_STATES);
  return dense({ email: text(search, "email"), status, after: text(search, "after") });
}

export const DESTINATION_WORDS: Record<DestinationStatus, [Tone, string]> = {
  pending: ["warn", "Not confirmed"],
  verified: ["good", "Confirmed"],
  suspended: ["bad", "Bounces"],
};

export const OUTCOME_TONES: Record<(typeof OUTCOMES)[number], Tone> = {
  sent: "good",
  deferred: "warn",
  failed: "bad",
  dropped: "idle",
  held: "warn",
};
