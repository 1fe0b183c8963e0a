// Domains whose policy no server of theirs met, by name and demand: their next messages need not try for a while.

import { createLru, type Lru } from "../../platform/fair/lru.ts";
import type { Plan } from "../route/tls-policy.ts";
import { type Outcome, TLS_REPORT_ORIGIN } from "../types.ts";
import type { Delivery } from "./links.ts";

export type Refusals = Lru<{ plan: Plan; outcome: Outcome; untilMs: number }>;

const REFUSED_FOR_MS = 60_000;
const REFUSALS_MAX = 1_000;

/** Nothing refused yet. */
export function createRefusals(): Refusals {
  return createLru(REFUSALS_MAX);
}

/** The answer that the delivery's domain gave a moment ago, while its plan is the same; null: it has to be tried. */
export function knownRefusal(refusals: Refusals, delivery: Delivery, nowMs: number): Outcome | null {
  const known = refusals.get(keyOf(delivery));
  const holds = known && known.plan === delivery.plan && known.untilMs > nowMs;
  return holds ? { ...known.outcome, duration_ms: 0 } : null;
}

/** Notes it for a minute from `nowMs` (monotonic). */
export function rememberRefusal(refusals: Refusals, delivery: Delivery, outcome: Outcome, nowMs: number): void {
  refusals.set(keyOf(delivery), { plan: delivery.plan, outcome, untilMs: nowMs + REFUSED_FOR_MS });
}

function keyOf({ job, plan }: Delivery): string {
  return `${plan.domain} ${job.about.require_tls} ${job.about.origin === TLS_REPORT_ORIGIN}`;
}
