// `kill`: kill -9 of the api, mta and hooks processes and of PostgreSQL at random points in the middle of the sends, each
// started again; clients repeat what was not answered.

import { drain, judge, sumUp, type Verdict } from "./drain.ts";
import { sendAll, sleep } from "./load.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Stage, setStage } from "./stage.ts";

const SENDS = 5_000;
const TARGETS = ["mta", "api", "hooks", "postgres"] as const;
type Target = (typeof TARGETS)[number];

export type KillOptions = { rounds: number; seed: number; sends?: number; say?(text: string): void };
export type KillVerdict = Verdict & { kills: Record<Target, number> };

/** Runs it; `ok` when nothing acknowledged is lost and every copy too many is flagged. */
export async function runKill(options: KillOptions): Promise<KillVerdict> {
  const kills = { mta: 0, api: 0, hooks: 0, postgres: 0 };
  const chance = chanceOf(options.seed);
  const stage = await setStage();
  try {
    // The answers take some time, as they do elsewhere: only then a kill finds mail in doubt.
    stage.sink.think(() => chance.between(0, 30));
    const rounds: Verdict[] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      const verdict = await runRound(stage, chance, { ...options, round, kills });
      options.say?.(`round ${round}: ${JSON.stringify(verdict)}`);
      rounds.push(verdict);
    }
    return { ...sumUp(rounds), kills };
  } finally {
    await stage.close();
  }
}

type Round = KillOptions & { round: number; kills: Record<Target, number> };

async function runRound(stage: Stage, chance: Chance, { round, sends = SENDS, kills, say }: Round): Promise<Verdict> {
  let isLoading = true;
  const load = sendAll({
    settings: stage.settings,
    recorder: stage.recorder,
    name: `round-${round}`,
    count: sends,
    from: `Shop <orders@${stage.domain}>`,
    recipient: (n) => `r${n}@recipient.example`,
  }).finally(() => {
    isLoading = false;
  });
  const killing = killWhile(stage, chance, kills, () => isLoading);
  const startedAt = performance.now();
  await Promise.all([load, killing]);
  const loadedAt = performance.now();
  await drain(stage);
  say?.(`  load ${Math.round(loadedAt - startedAt)} ms, then ${Math.round(performance.now() - loadedAt)} ms to drain`);
  return judge(stage);
}

/** Each target once in random order, then any, until the load is through. */
async function killWhile(
  stage: Stage,
  chance: Chance,
  kills: Record<Target, number>,
  isLoading: () => boolean,
): Promise<void> {
  const first = shuffle([...TARGETS], chance);
  while (isLoading() || first.length > 0) {
    await sleep(chance.between(100, 900));
    const target = first.pop() ?? chance.pick(TARGETS);
    kills[target] += 1;
    await killOne(stage, target);
  }
}

async function killOne(stage: Stage, target: Target): Promise<void> {
  if (target === "postgres") {
    process.kill(stage.postgres.pid, "SIGKILL");
    await stage.postgres.restart();
    return;
  }
  await stage.kill(target);
  await stage.start(target);
}

function shuffle<T>(items: T[], chance: Chance): T[] {
  for (let at = items.length - 1; at > 0; at -= 1) {
    const other = chance.between(0, at);
    [items[at], items[other]] = [items[other] as T, items[at] as T];
  }
  return items;
}
