// `power-cut`: the disk under the database and the data folder loses its power in the middle of the sends, with every
// process; then it is mounted, recovered and started as after a boot. A control run with synchronous_commit = off must
// lose: else the cut would prove nothing.
import { rmSync } from "node:fs";
import { journalFolders } from "../../src/outbound/queue/journal.ts";
import { sumUp, type Verdict } from "./drain.ts";
import { sleep } from "./load.ts";
import { type LoopDisk, makeLoopDisk } from "./loop-disk.ts";
import { type ReceiveVerdict, startReceiving, sumUpMailIn } from "./mail-in.ts";
import { type Played, playRound, type ScenarioOptions } from "./round.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Role, type Stage, setStage } from "./stage.ts";

const SENDS = 800;
const DISK_BYTES = 1024 ** 3;
const ROLES: Role[] = ["api", "mta", "hooks", "mx"];

export type PowerCutVerdict = Verdict & {
  cuts: number;
  /** Of the mail that came in meanwhile. */
  received: ReceiveVerdict;
  control_acknowledged: number;
  control_lost: number;
};

/** Runs it, the control last. */
export async function runPowerCut(options: ScenarioOptions): Promise<PowerCutVerdict> {
  const { rounds, seed } = options;
  const chance = chanceOf(seed);
  const played = await cutRounds(options, chance, rounds, false);
  const summed = sumUp(played.map(({ verdict }) => verdict));
  const received = sumUpMailIn(played.flatMap((one) => one.received ?? []));
  const control = sumUp((await cutRounds(options, chance, 1, true)).map(({ verdict }) => verdict));
  const ok = summed.ok && received.ok && control.lost > 0;
  const controlled = { control_acknowledged: control.acknowledged, control_lost: control.lost };
  return { ...summed, ok, cuts: rounds, received, ...controlled };
}

async function cutRounds(
  { sends = SENDS, say }: ScenarioOptions,
  chance: Chance,
  rounds: number,
  isControl: boolean,
): Promise<Played[]> {
  const disk = makeLoopDisk(DISK_BYTES);
  try {
    // A checkpoint in the middle would make the control's losses smaller.
    const stage = await setStage({ disk: disk.path, postgres_settings: isControl ? { wal_writer_delay: "5s" } : {} });
    try {
      if (isControl) await turnDurabilityOff(stage);
      stage.sink.think(() => chance.between(0, 20));
      await startReceiving(stage);
      const played: Played[] = [];
      for (let round = 1; round <= rounds; round += 1) {
        const name = isControl ? "control" : `round-${round}`;
        // Every second time the volume alone fails, and is mounted again in the same boot.
        const during = () => cutOnce(stage, disk, chance, round % 2 === 0);
        const more = { pause_ms: 5, receives: !isControl, ...(say ? { say } : {}) };
        played.push(await playRound(stage, { name, sends, during, ...more }));
      }
      return played;
    } finally {
      await stage.close();
    }
  } finally {
    await disk.remove();
  }
}

async function cutOnce(stage: Stage, disk: LoopDisk, chance: Chance, isSameBoot: boolean): Promise<void> {
  await sleep(chance.between(200, 1_200));
  disk.cutPower();
  await Promise.all(ROLES.map((role) => stage.kill(role)));
  await killDatabase(stage);
  await disk.mountAgain();
  if (!isSameBoot) forgetThisBoot(stage);
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
  const data_dir = settings.env.POSTERN_DATA ?? "";
  for (const folder of journalFolders({ config: { data_dir } })) rmSync(folder, { recursive: true, force: true });
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
