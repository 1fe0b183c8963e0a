// One round of a scenario: a load, what is done to it meanwhile, the draining and the verdict.
import { drain, judge, type Verdict } from "./drain.ts";
import { type LoadResult, sendAll } from "./load.ts";
import type { Stage } from "./stage.ts";

export type ScenarioOptions = { rounds: number; seed: number; sends?: number; rows?: number; say?(text: string): void };

export type Round = {
  name: string;
  sends: number;
  pause_ms?: number;
  base_urls?: string[];
  /** What is done to it; goes on until the load is through, or is done once. */
  during(isLoading: () => boolean): Promise<void>;
  say?(text: string): void;
};

/** Plays it to its end. */
export async function playRound(stage: Stage, round: Round): Promise<{ verdict: Verdict; load: LoadResult }> {
  let isLoading = true;
  const startedAt = performance.now();
  const load = sendAll({
    live_key: stage.settings.live_key,
    base_urls: round.base_urls ?? [stage.settings.base_url],
    recorder: stage.recorder,
    name: round.name,
    count: round.sends,
    from: `Shop <orders@${stage.domain}>`,
    recipient: (n) => `r${n}@d${n % 40}.recipients.example`,
    ...(round.pause_ms === undefined ? {} : { pause_ms: round.pause_ms }),
  }).finally(() => {
    isLoading = false;
  });
  const [result] = await Promise.all([load, round.during(() => isLoading)]);
  const loadedAt = performance.now();
  await drain(stage);
  const drainedAt = performance.now();
  const verdict = await judge(stage);
  const seconds = (ms: number): string => (ms / 1000).toFixed(1);
  round.say?.(
    `${round.name}: ${seconds(loadedAt - startedAt)} s of load, ${seconds(drainedAt - loadedAt)} s to drain, ` +
      `${result.repeated} requests repeated, longest gap ${seconds(result.longest_gap_ms)} s ${JSON.stringify(verdict)}`,
  );
  return { verdict, load: result };
}
