// The states of the API's records: the word and the colour of each.
import type { EmailStatus } from "./email-filters.ts";
import type { InboundStatus } from "./inbound-filters.ts";
import type { Tone } from "./why.ts";

const EMAIL_TONES: Record<EmailStatus, Tone> = {
  scheduled: "idle",
  queued: "idle",
  sending: "idle",
  deferred: "warn",
  delivered: "good",
  partially_delivered: "warn",
  bounced: "bad",
  complained: "bad",
  suppressed: "bad",
  failed: "bad",
  expired: "bad",
  canceled: "idle",
  simulated: "idle",
};

export function toneOfEmail(status: EmailStatus): Tone {
  return EMAIL_TONES[status] ?? "idle";
}

/** `partially_delivered` → `Partially delivered`. */
export function wordOf(state: string): string {
  const words = state.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function toneOfOrganization(state: "pending_review" | "active" | "suspended" | "moving"): Tone {
  return ({ pending_review: "warn", active: "good", suspended: "bad", moving: "warn" } as const)[state];
}

export function toneOfQueue(state: "suspended" | "resting" | "due" | "waiting"): Tone {
  return ({ suspended: "bad", resting: "warn", due: "good", waiting: "idle" } as const)[state];
}

export function toneOfSource(state: "ready" | "warming" | "unavailable" | "out_of_use" | "leaving"): Tone {
  return ({ ready: "good", warming: "good", unavailable: "bad", out_of_use: "warn", leaving: "idle" } as const)[state];
}

export function toneOfRelay(state: "resting" | "in_use" | "standby"): Tone {
  return ({ resting: "warn", in_use: "good", standby: "idle" } as const)[state];
}

export function toneOfDomain(status: "pending" | "verified" | "degraded" | "failed"): Tone {
  return ({ pending: "idle", verified: "good", degraded: "warn", failed: "bad" } as const)[status];
}

export function toneOfDelivery(status: "pending" | "delivered" | "retrying" | "failed"): Tone {
  return ({ pending: "idle", delivered: "good", retrying: "warn", failed: "bad" } as const)[status];
}

export function toneOfInbound(status: InboundStatus): Tone {
  return (
    {
      received: "idle",
      processing: "idle",
      delivered: "good",
      failed: "bad",
      quarantined: "warn",
      dropped: "idle",
    } as const
  )[status];
}
