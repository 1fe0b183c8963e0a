// One round of a scenario: a load, what is done to it meanwhile, the draining and the verdict.
import { drain, judge, type Verdict } from "./drain.ts";
import { type LoadResult, sendAll } from "./load.ts";
import { drainMailIn, judgeMailIn, mailIn, type ReceiveVerdict, sendMailIn } from "./mail-in.ts";
import type { Stage } from "./stage.ts";

export type ScenarioOptions = { rounds: number; seed: number; sends?: number; rows?: number; say?(text: string): void };

export type Round = {
  name: string;
  sends: number;
  pause_ms?: number;
  base_urls?: string[];
  /** Mail comes in as well, for as long as something is done; `startReceiving` was called. */
  receives?: boolean;
  /** What is done to it; goes on until the load is through, or is done once. */
  during(isLoading: () => boolean): Promise<void>;
  say?(text: string): void;
};

/** Of the mail that comes in beside the requests: some 100 a second. */
const BESIDE = { count: 200, connections: 4, pause_ms: 30 };

export type Played = { verdict: Verdict; load: LoadResult; received: ReceiveVerdict | null };

/** Plays it to its end; `verdict.ok` includes what is said of the mail that came in. */
export async function playRound(stage: Stage, round: Round): Promise<Played> {
  let isLoading = true;
  let isBreaking = true;
  const mail = round.receives ? mailIn(stage, { name: round.name, ...BESIDE }) : null;
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
  const breaking = round
    .during(() => isLoading)
    .finally(() => {
      isBreaking = false;
    });
  const receiving = mail ? sendMailIn(mail, () => isBreaking) : null;
  const [result] = await Promise.all([load, breaking, receiving]);
  const loadedAt = performance.now();
  await drain(stage);
  if (mail) await drainMailIn(stage);
  const drainedAt = performance.now();
  // First: the other verdict forgets what the receiver got.
  const received = mail ? await judgeMailIn(stage, mail) : null;
  const verdict = await judge(stage);
  const seconds = (ms: number): string => (ms / 1000).toFixed(1);
  round.say?.(
    `${round.name}: ${seconds(loadedAt - startedAt)} s of load, ${seconds(drainedAt - loadedAt)} s to drain, ` +
      `${result.repeated} requests repeated, longest gap ${seconds(result.longest_gap_ms)} s ${JSON.stringify(verdict)}`,
  );
  if (received) round.say?.(`${round.name}: mail that came in ${JSON.stringify(received)}`);
  return { verdict: { ...verdict, ok: verdict.ok && received?.ok !== false }, load: result, received };
}
