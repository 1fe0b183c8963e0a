// Which simulation a seed is: one in five is of webhooks, the others of sending.
import { type OutboundSabotage, type Played, playOutbound } from "./outbound-play.ts";
import { playWebhooks } from "./webhook-play.ts";

export type { OutboundSabotage as Sabotage, Played } from "./outbound-play.ts";

const WEBHOOKS_EVERY = 5;

/** Plays it; the same seed does the same, always. */
export function playSeed(seed: number, sabotage: OutboundSabotage = {}): Promise<Played> {
  return seed % WEBHOOKS_EVERY === 0 ? playWebhooks(seed, sabotage) : playOutbound(seed, sabotage);
}
