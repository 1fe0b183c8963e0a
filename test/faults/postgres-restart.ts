// `postgres-restart`: the database is stopped at once, stopped in good order or killed in the middle of the sends, with mail
// that comes in beside them, and
// started again: clients see some seconds of 503, the processes stay up and go on by themselves.
import { sumUp, type Verdict } from "./drain.ts";
import { sleep } from "./load.ts";
import { type ReceiveVerdict, startReceiving, sumUpMailIn } from "./mail-in.ts";
import { playRound, type ScenarioOptions } from "./round.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Stage, setStage } from "./stage.ts";

const SENDS = 1_000;
/** Signals as `pg_ctl stop -m` and the kernel give them. */
const WAYS = { immediate: "SIGQUIT", fast: "SIGINT", kill: "SIGKILL" } as const;
const OUTAGE_MS_MAX = 30_000;

export type RestartVerdict = Verdict & {
  restarts: Record<string, number>;
  longest_outage_ms: number;
  received: ReceiveVerdict;
};

/** Runs it; `ok` when besides nothing is lost the API was never away for more than 30 s. */
export async function runPostgresRestart(options: ScenarioOptions): Promise<RestartVerdict> {
  const { rounds, seed, sends = SENDS, say } = options;
  const restarts: Record<string, number> = { immediate: 0, fast: 0, kill: 0 };
  const chance = chanceOf(seed);
  const stage = await setStage();
  try {
    stage.sink.think(() => chance.between(0, 20));
    await startReceiving(stage);
    const verdicts: Verdict[] = [];
    const mail: ReceiveVerdict[] = [];
    let longest = 0;
    for (let round = 1; round <= rounds; round += 1) {
      const way = (Object.keys(WAYS) as (keyof typeof WAYS)[])[round % 3] as keyof typeof WAYS;
      restarts[way] = (restarts[way] ?? 0) + 1;
      const { verdict, load, received } = await playRound(stage, {
        name: `round-${round} (${way})`,
        sends,
        // As slow as clients are: the restart shall meet work at every stage.
        pause_ms: 5,
        receives: true,
        during: () => restartOnce(stage, chance, way),
        ...(say ? { say } : {}),
      });
      longest = Math.max(longest, load.longest_gap_ms);
      verdicts.push(verdict);
      if (received) mail.push(received);
    }
    const summed = sumUp(verdicts);
    const received = sumUpMailIn(mail);
    const ok = summed.ok && received.ok && longest <= OUTAGE_MS_MAX;
    return { ...summed, ok, restarts, longest_outage_ms: longest, received };
  } finally {
    await stage.close();
  }
}

async function restartOnce(stage: Stage, chance: Chance, way: keyof typeof WAYS): Promise<void> {
  await sleep(chance.between(50, 700));
  process.kill(stage.postgres.pid, WAYS[way]);
  await waitFor(() => !stage.postgres.alive());
  await sleep(chance.between(0, 1_500));
  await stage.postgres.restart();
}

async function waitFor(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(10);
}
