// `kill`: kill -9 of the api, mta and hooks processes and of PostgreSQL at random points in the middle of the sends, each
// started again; clients repeat what was not answered.

import { sumUp, type Verdict } from "./drain.ts";
import { sleep } from "./load.ts";
import { playRound, type ScenarioOptions } from "./round.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Stage, setStage } from "./stage.ts";

const SENDS = 5_000;
const TARGETS = ["mta", "api", "hooks", "postgres"] as const;
type Target = (typeof TARGETS)[number];

export type KillVerdict = Verdict & { kills: Record<Target, number> };

/** Runs it; `ok` when nothing acknowledged is lost and every copy too many is flagged. */
export async function runKill({ rounds, seed, sends = SENDS, say }: ScenarioOptions): Promise<KillVerdict> {
  const kills = { mta: 0, api: 0, hooks: 0, postgres: 0 };
  const chance = chanceOf(seed);
  const stage = await setStage();
  try {
    // The answers take some time, as they do elsewhere: only then a kill finds mail in doubt.
    stage.sink.think(() => chance.between(0, 30));
    const verdicts: Verdict[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      const during = (isLoading: () => boolean) => killWhile(stage, chance, kills, isLoading);
      const { verdict } = await playRound(stage, { name: `round-${round}`, sends, during, ...(say ? { say } : {}) });
      verdicts.push(verdict);
    }
    return { ...sumUp(verdicts), kills };
  } finally {
    await stage.close();
  }
}

/**
 * Each target once in random order, then any, until the load is through. What was killed is started again meanwhile: the
 * next one need not wait for it, and meets the others in the middle of their start.
 */
async function killWhile(
  stage: Stage,
  chance: Chance,
  kills: Record<Target, number>,
  isLoading: () => boolean,
): Promise<void> {
  const first = shuffle([...TARGETS], chance);
  const starting = new Map<Target, Promise<unknown>>();
  while (isLoading() || first.length > 0) {
    await sleep(chance.between(100, 900));
    const target = first.pop() ?? chance.pick(TARGETS);
    // A process needs the database to start: killed again and again, it would keep all of them from ever being there.
    await (target === "postgres" ? Promise.all(starting.values()) : starting.get(target));
    kills[target] += 1;
    starting.set(target, (await killOne(stage, target)).again);
  }
  await Promise.all(starting.values());
}

/** Resolves when it is dead; `again` when it runs again. */
async function killOne(stage: Stage, target: Target): Promise<{ again: Promise<unknown> }> {
  if (target === "postgres") {
    process.kill(stage.postgres.pid, "SIGKILL");
    return { again: stage.postgres.restart() };
  }
  await stage.kill(target);
  return { again: stage.start(target) };
}

function shuffle<T>(items: T[], chance: Chance): T[] {
  for (let at = items.length - 1; at > 0; at -= 1) {
    const other = chance.between(0, at);
    [items[at], items[other]] = [items[other] as T, items[at] as T];
  }
  return items;
}
