// `disk-full`: the disk under the database and the data folder has no room for some seconds in the middle of the sends.
// What cannot be stored is not acknowledged (503; 452 to mail that comes in), nothing is half there, and with room again it
// goes on by itself.
import { sumUp, type Verdict } from "./drain.ts";
import { sleep } from "./load.ts";
import { type LoopDisk, makeLoopDisk } from "./loop-disk.ts";
import { type ReceiveVerdict, startReceiving, sumUpMailIn } from "./mail-in.ts";
import { playRound, type ScenarioOptions } from "./round.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Stage, setStage } from "./stage.ts";

const SENDS = 3_000;
const DISK_BYTES = 512 * 1024 ** 2;
const LEAVE_BYTES = 256 * 1024;
const FULL_MS = 6_000;
/** A small disk wants a small log. */
const POSTGRES = { max_wal_size: "48MB", min_wal_size: "32MB" };

export type DiskFullVerdict = Verdict & {
  /** Requests that were answered 503 while there was no room. */
  turned_away: number;
  database_ended: number;
  /** Of the mail that came in meanwhile. */
  received: ReceiveVerdict;
};

/** Runs it; `ok` also asks that the room was really missed, at both doors. */
export async function runDiskFull({ rounds, seed, sends = SENDS, say }: ScenarioOptions): Promise<DiskFullVerdict> {
  const chance = chanceOf(seed);
  const disk = makeLoopDisk(DISK_BYTES);
  try {
    const stage = await setStage({ disk: disk.path, postgres_settings: POSTGRES });
    try {
      await startReceiving(stage);
      const verdicts: Verdict[] = [];
      const mail: ReceiveVerdict[] = [];
      let turnedAway = 0;
      let ended = 0;
      for (let round = 1; round <= rounds; round += 1) {
        const during = async (): Promise<void> => {
          ended += await fillOnce(stage, disk, chance);
        };
        const { verdict, load, received } = await playRound(stage, {
          name: `round-${round}`,
          sends,
          receives: true,
          during,
          ...(say ? { say } : {}),
        });
        turnedAway += load.statuses.get("503") ?? 0;
        say?.(`answers: ${JSON.stringify(Object.fromEntries(load.statuses))}`);
        verdicts.push(verdict);
        if (received) mail.push(received);
      }
      const summed = sumUp(verdicts);
      const received = sumUpMailIn(mail);
      // 451 would say that a part of Postern does not answer: the disk is no reason for it while the database is up.
      const isReported = received.no_room > 0 && (received.put_off === 0 || ended > 0);
      const ok = summed.ok && received.ok && turnedAway > 0 && isReported;
      return { ...summed, ok, turned_away: turnedAway, database_ended: ended, received };
    } finally {
      await stage.close();
    }
  } finally {
    await disk.remove();
  }
}

/** 1 when PostgreSQL itself ended for want of room, and had to be started again (its supervisor's work). */
async function fillOnce(stage: Stage, disk: LoopDisk, chance: Chance): Promise<number> {
  await sleep(chance.between(200, 800));
  const until = performance.now() + FULL_MS;
  while (performance.now() < until) {
    disk.fill(LEAVE_BYTES);
    await sleep(100);
  }
  disk.empty();
  await sleep(500);
  if (stage.postgres.alive()) return 0;
  await stage.postgres.restart();
  return 1;
}
