// Many seeds in a row, and what they came to.
import { type Played, playSeed, type Sabotage } from "./play.ts";

export type Campaign = {
  seeds: number;
  failed: { seed: number; problems: string[] }[];
  /** Summed over all seeds. */
  figures: Record<string, number>;
  seconds: number;
};

/** A failing seed says enough; more of them say the same. */
const FAILED_MAX = 20;
const PROBLEMS_MAX = 5;

export type CampaignOptions = { first: number; seeds: number; sabotage?: Sabotage; enough?: number };

/** Plays `seeds` seeds from `first` on, until `enough` have failed. */
export async function runCampaign(options: CampaignOptions): Promise<Campaign> {
  const { first, seeds, sabotage = {}, enough = FAILED_MAX } = options;
  const startedAt = performance.now();
  const campaign: Campaign = { seeds: 0, failed: [], figures: {}, seconds: 0 };
  for (let seed = first; seed < first + seeds && campaign.failed.length < enough; seed += 1) {
    const played = await playSeed(seed, sabotage);
    campaign.seeds += 1;
    addUp(campaign.figures, played);
    const problems = played.problems.slice(0, PROBLEMS_MAX);
    if (problems.length > 0) campaign.failed.push({ seed, problems });
  }
  campaign.seconds = Math.round((performance.now() - startedAt) / 100) / 10;
  return campaign;
}

function addUp(figures: Record<string, number>, played: Played): void {
  for (const [name, value] of Object.entries(played.figures)) figures[name] = (figures[name] ?? 0) + value;
}
