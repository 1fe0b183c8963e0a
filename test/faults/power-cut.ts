// `power-cut`: the disk under the database and the data folder loses its power in the middle of the sends, with every
// process; then it is mounted, recovered and started as after a boot. A control run with synchronous_commit = off must
// lose: else the cut would prove nothing.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { sumUp, type Verdict } from "./drain.ts";
import { sleep } from "./load.ts";
import { type LoopDisk, makeLoopDisk } from "./loop-disk.ts";
import { playRound, type ScenarioOptions } from "./round.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Role, type Stage, setStage } from "./stage.ts";

const SENDS = 800;
const DISK_BYTES = 1024 ** 3;
const ROLES: Role[] = ["api", "mta", "hooks"];

export type PowerCutVerdict = Verdict & { cuts: number; control_acknowledged: number; control_lost: number };

/** Runs it, the control last. */
export async function runPowerCut(options: ScenarioOptions): Promise<PowerCutVerdict> {
  const { rounds, seed } = options;
  const chance = chanceOf(seed);
  const summed = sumUp(await cutRounds(options, chance, rounds, false));
  const control = sumUp(await cutRounds(options, chance, 1, true));
  const ok = summed.ok && control.lost > 0;
  return { ...summed, ok, cuts: rounds, control_acknowledged: control.acknowledged, control_lost: control.lost };
}

async function cutRounds(
  { sends = SENDS, say }: ScenarioOptions,
  chance: Chance,
  rounds: number,
  isControl: boolean,
): Promise<Verdict[]> {
  const disk = makeLoopDisk(DISK_BYTES);
  try {
    // A checkpoint in the middle would make the control's losses smaller.
    const stage = await setStage({ disk: disk.path, postgres_settings: isControl ? { wal_writer_delay: "5s" } : {} });
    try {
      if (isControl) await turnDurabilityOff(stage);
      stage.sink.think(() => chance.between(0, 20));
      const verdicts: Verdict[] = [];
      for (let round = 1; round <= rounds; round += 1) {
        const name = isControl ? "control" : `round-${round}`;
        const during = () => cutOnce(stage, disk, chance);
        const { verdict } = await playRound(stage, { name, sends, pause_ms: 5, during, ...(say ? { say } : {}) });
        verdicts.push(verdict);
      }
      return verdicts;
    } finally {
      await stage.close();
    }
  } finally {
    await disk.remove();
  }
}

async function cutOnce(stage: Stage, disk: LoopDisk, chance: Chance): Promise<void> {
  await sleep(chance.between(200, 1_200));
  disk.cutPower();
  await Promise.all(ROLES.map((role) => stage.kill(role)));
  await killDatabase(stage);
  await disk.mountAgain();
  forgetThisBoot(stage);
  await stage.postgres.restart();
  for (const role of ROLES) await stage.start(role);
}

/** It may have ended by itself: a log that cannot be written is a panic. */
async function killDatabase({ postgres }: Stage): Promise<void> {
  if (postgres.alive()) process.kill(postgres.pid, "SIGKILL");
  while (postgres.alive()) await sleep(10);
}

/** After a true power cut the machine has another boot id, under which no journal of the last boot is read. */
function forgetThisBoot({ settings }: Stage): void {
  rmSync(join(settings.env.POSTERN_DATA ?? "", "outbound"), { recursive: true, force: true });
}

/**
 * Postern asks for synchronous_commit = on with every session, which wins over the server's setting; a trigger at login
 * runs later still.
 */
async function turnDurabilityOff(stage: Stage): Promise<void> {
  await stage.rows(`create function durability_off() returns event_trigger language plpgsql as $$
    begin perform set_config('synchronous_commit', 'off', false); end $$`);
  await stage.rows("create event trigger durability_off on login execute function durability_off()");
  await stage.rows("alter event trigger durability_off enable always");
  // Sessions from before the trigger.
  await stage.rows("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'postern'");
}
