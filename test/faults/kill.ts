// `kill`: kill -9 of the api, mta, hooks and mx processes and of PostgreSQL at random points in the middle of the sends, each
// started again, while mail comes in; clients repeat what was not answered.

import { sumUp, type Verdict } from "./drain.ts";
import { sleep } from "./load.ts";
import { type ReceiveVerdict, startReceiving, sumUpMailIn } from "./mail-in.ts";
import { playRound, type ScenarioOptions } from "./round.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Stage, setStage } from "./stage.ts";

const SENDS = 5_000;
const TARGETS = ["mta", "api", "hooks", "mx", "postgres"] as const;
type Target = (typeof TARGETS)[number];

type Tally = { kills: Record<Target, number>; in_flight: number };

export type KillVerdict = Verdict & {
  kills: Record<Target, number>;
  /** Deliveries that killed senders held, and of a hundred of them, how many arrived twice. */
  in_flight: number;
  second_copies_percent: number;
  /** Second copies whose first had been answered while its sender lived. All others nobody can avoid: no answer had come. */
  second_copies_after_answer: number;
  /** Of the mail that came in meanwhile. */
  received: ReceiveVerdict;
};

/** What a server answered is known after a kill: a second copy is left where no answer had come. */
const SECOND_COPIES_PERCENT_MAX = 1;
/** A share of fewer deliveries says nothing: the kill alone decides how many had no answer yet. */
const SHARE_COUNTS_FROM = 1_000;
/** Of so few deliveries, second copies that an answer should have prevented. It may still have been on its way to the sender. */
const AFTER_ANSWER_MAX = 5;
const COUNT_EVERY_MS = 20;

/** Runs it; `ok` when nothing acknowledged is lost, at neither door, and every copy too many is flagged, and they are few. */
export async function runKill({ rounds, seed, sends = SENDS, say }: ScenarioOptions): Promise<KillVerdict> {
  const tally: Tally = { kills: { mta: 0, api: 0, hooks: 0, mx: 0, postgres: 0 }, in_flight: 0 };
  const chance = chanceOf(seed);
  const stage = await setStage();
  try {
    await startReceiving(stage);
    // The answers take some time, as they do elsewhere: only then a kill finds mail in doubt.
    stage.sink.think(() => chance.between(0, 30));
    const verdicts: Verdict[] = [];
    const mail: ReceiveVerdict[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      const during = (isLoading: () => boolean) => killWhile(stage, chance, tally, isLoading);
      const { verdict, received } = await playRound(stage, {
        name: `round-${round}`,
        sends,
        receives: true,
        during,
        ...(say ? { say } : {}),
      });
      verdicts.push(verdict);
      if (received) mail.push(received);
    }
    const received = sumUpMailIn(mail);
    const summed = sumUp(verdicts);
    const second_copies_percent = (100 * summed.duplicates) / Math.max(1, tally.in_flight);
    const second_copies_after_answer = stage.sink.repeated();
    const isFew =
      tally.in_flight >= SHARE_COUNTS_FROM
        ? second_copies_percent <= SECOND_COPIES_PERCENT_MAX
        : second_copies_after_answer <= AFTER_ANSWER_MAX;
    const ok = summed.ok && received.ok && isFew;
    return { ...summed, ok, ...tally, second_copies_percent, second_copies_after_answer, received };
  } finally {
    await stage.close();
  }
}

/**
 * Each target once in random order, then any, until the load is through. What was killed is started again meanwhile: the
 * next one need not wait for it, and meets the others in the middle of their start.
 */
async function killWhile(stage: Stage, chance: Chance, tally: Tally, isLoading: () => boolean): Promise<void> {
  const first = shuffle([...TARGETS], chance);
  const starting = new Map<Target, Promise<unknown>>();
  while (isLoading() || first.length > 0) {
    await sleep(chance.between(100, 900));
    const target = first.pop() ?? chance.pick(TARGETS);
    // A process needs the database to start: killed again and again, it would keep all of them from ever being there.
    await (target === "postgres" ? Promise.all(starting.values()) : starting.get(target));
    tally.kills[target] += 1;
    starting.set(target, (await killOne(stage, target, tally)).again);
  }
  await Promise.all(starting.values());
}

/** Resolves when it is dead; `again` when it runs again. */
async function killOne(stage: Stage, target: Target, tally: Tally): Promise<{ again: Promise<unknown> }> {
  if (target === "postgres") {
    process.kill(stage.postgres.pid, "SIGKILL");
    return { again: stage.postgres.restart() };
  }
  if (target === "mta") stage.sink.senderDies();
  await stage.kill(target);
  const again = stage.start(target);
  if (target !== "mta") return { again };
  const counted = countHeld(stage).then((held) => {
    tally.in_flight += held;
  });
  return { again: Promise.all([again, counted]) };
}

/** What the dead process held. While the database is away as well it is asked again: its next owner takes longer to start. */
async function countHeld(stage: Stage): Promise<number> {
  const held = "select count(*)::int as held from delivery where owner is not null";
  for (;;) {
    try {
      return (await stage.rows<{ held: number }>(held))[0]?.held ?? 0;
    } catch {
      await sleep(COUNT_EVERY_MS);
    }
  }
}

function shuffle<T>(items: T[], chance: Chance): T[] {
  for (let at = items.length - 1; at > 0; at -= 1) {
    const other = chance.between(0, at);
    [items[at], items[other]] = [items[other] as T, items[at] as T];
  }
  return items;
}
