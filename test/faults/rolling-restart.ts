// `rolling-restart`: an upgrade of a running service, twenty times: two processes of each role, stopped with SIGTERM and
// started again one after the other under load, and the one that takes mail, while mail comes in. No request fails twice,
// nothing is lost, and nothing is even in doubt.

import { freePort } from "../support/free-port.ts";
import { sumUp, type Verdict } from "./drain.ts";
import { sleep } from "./load.ts";
import { type ReceiveVerdict, startReceiving, sumUpMailIn } from "./mail-in.ts";
import { playRound, type ScenarioOptions } from "./round.ts";
import { chanceOf } from "./seeded.ts";
import { type Role, type Stage, setStage } from "./stage.ts";

const SENDS = 3_000;
const RESTARTS = 20;
const STOP_MS_MAX = 60_000;

export type RollingVerdict = Verdict & {
  restarts: number;
  failed_with_one_retry: number;
  longest_stop_ms: number;
  unclean_exits: number;
  /** Of the mail that came in meanwhile. */
  received: ReceiveVerdict;
};

type Tally = { restarts: number; longest_stop_ms: number; unclean_exits: number };

/** Runs it. */
export async function runRollingRestart({
  rounds,
  seed,
  sends = SENDS,
  say,
}: ScenarioOptions): Promise<RollingVerdict> {
  const chance = chanceOf(seed);
  const stage = await setStage({ roles: ["mta", "hooks", "api"] });
  try {
    await startReceiving(stage);
    const second = await freePort();
    const places = new Map<string, [Role, Record<string, string>]>([
      ["api", ["api", {}]],
      ["mta", ["mta", {}]],
      ["hooks", ["hooks", {}]],
      ["mx", ["mx", {}]],
      ["api-2", ["api", { POSTERN_HTTP: `127.0.0.1:${second}` }]],
      ["mta-2", ["mta", {}]],
      ["hooks-2", ["hooks", {}]],
    ]);
    for (const name of ["api-2", "mta-2", "hooks-2"]) await stage.start(...startOf(places, name));
    stage.sink.think(() => chance.between(0, 20));
    const tally: Tally = { restarts: 0, longest_stop_ms: 0, unclean_exits: 0 };
    const verdicts: Verdict[] = [];
    const mail: ReceiveVerdict[] = [];
    let failed = 0;
    for (let round = 1; round <= rounds; round += 1) {
      const { verdict, load, received } = await playRound(stage, {
        name: `round-${round}`,
        sends,
        pause_ms: 80, // 200 a second
        base_urls: [stage.settings.base_url, `http://127.0.0.1:${second}`],
        receives: true,
        during: (isLoading) => restartAll(stage, places, tally, isLoading),
        ...(say ? { say } : {}),
      });
      failed += load.acknowledged - load.within_one_retry;
      verdicts.push(verdict);
      if (received) mail.push(received);
    }
    const summed = sumUp(verdicts);
    const received = sumUpMailIn(mail);
    const isSmooth = failed + summed.duplicates + received.duplicates + tally.unclean_exits === 0;
    const ok =
      summed.ok &&
      received.ok &&
      isSmooth &&
      tally.longest_stop_ms <= STOP_MS_MAX &&
      tally.restarts >= RESTARTS * rounds;
    return { ...summed, ...tally, failed_with_one_retry: failed, received, ok };
  } finally {
    await stage.close();
  }
}

type Places = Map<string, [Role, Record<string, string>]>;

function startOf(places: Places, name: string): [Role, string, Record<string, string>] {
  const [role, env] = places.get(name) as [Role, Record<string, string>];
  return [role, name, env];
}

async function restartAll(stage: Stage, places: Places, tally: Tally, isLoading: () => boolean): Promise<void> {
  const names = [...places.keys()];
  for (let turn = 0; turn < RESTARTS || isLoading(); turn += 1) {
    const name = names[turn % names.length] as string;
    const { code, ms } = await stage.stop(name);
    tally.restarts += 1;
    tally.longest_stop_ms = Math.max(tally.longest_stop_ms, ms);
    if (code !== 0) tally.unclean_exits += 1;
    await stage.start(...startOf(places, name));
    await sleep(100);
  }
}
