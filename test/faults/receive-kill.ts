// `receive-kill`: kill -9 of the mx process and of PostgreSQL at random points while mail comes in: everything that got its
// 250 is there afterwards, whole, processed and reported by its webhook (mail-in.ts).

import { sleep } from "./load.ts";
import {
  drainMailIn,
  judgeMailIn,
  type MailIn,
  mailIn,
  type ReceiveVerdict,
  sendMailIn,
  startReceiving,
  sumUpMailIn,
} from "./mail-in.ts";
import type { ScenarioOptions } from "./round.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Stage, setStage } from "./stage.ts";

const MAILS = 2_000;
const CONNECTIONS = 16;
const TARGETS = ["mx", "postgres"] as const;

type Target = (typeof TARGETS)[number];
type Kills = Record<Target, number>;

/** Runs it; `ok` when nothing that was taken is missing anywhere. */
export async function runReceiveKill(options: ScenarioOptions): Promise<ReceiveVerdict & { kills: Kills }> {
  const { rounds, seed, sends = MAILS, say } = options;
  const chance = chanceOf(seed);
  const kills: Kills = { mx: 0, postgres: 0 };
  const stage = await setStage({ roles: ["api", "hooks"] });
  try {
    await startReceiving(stage);
    const verdicts: ReceiveVerdict[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      const load = mailIn(stage, { name: `round-${round}`, count: sends, connections: CONNECTIONS, pause_ms: 0 });
      const startedAt = performance.now();
      await Promise.all([sendMailIn(load), killWhile(stage, { chance, kills }, load)]);
      await drainMailIn(stage);
      const verdict = await judgeMailIn(stage, load);
      stage.receiver.requests.length = 0;
      stage.died.length = 0;
      verdicts.push(verdict);
      say?.(`${load.name}: ${((performance.now() - startedAt) / 1000).toFixed(1)} s ${JSON.stringify(verdict)}`);
    }
    return { ...sumUpMailIn(verdicts), kills };
  } finally {
    await stage.close();
  }
}

async function killWhile(
  stage: Stage,
  { chance, kills }: { chance: Chance; kills: Kills },
  load: MailIn,
): Promise<void> {
  const first: Target[] = chance.between(0, 1) === 0 ? ["mx", "postgres"] : ["postgres", "mx"];
  while (load.next < load.count) {
    await sleep(chance.between(300, 2_000));
    const target = first.pop() ?? chance.pick(TARGETS);
    kills[target] += 1;
    if (target === "mx") {
      await stage.kill("mx");
      await stage.start("mx");
    } else {
      process.kill(stage.postgres.pid, "SIGKILL");
      await stage.postgres.restart();
    }
  }
}
