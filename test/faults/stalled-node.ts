// `stalled-node`: a sending process is stopped (SIGSTOP) for longer than its lease, with mail on the wire, while another one
// takes over; woken again, what it still writes touches no row, and what it had sent is told in the timeline.
import { sumUp, type Verdict } from "./drain.ts";
import { sleep } from "./load.ts";
import { playRound, type ScenarioOptions } from "./round.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Stage, setStage } from "./stage.ts";

const SENDS = 1_500;
/** A lease is over after 30 s. */
const STALL_MS = 38_000;

export type StalledVerdict = Verdict & { taken_over: number; in_doubt: number };

/** Runs it; `ok` also asks that the other node really took over while the first was stopped. */
export async function runStalledNode({ rounds, seed, sends = SENDS, say }: ScenarioOptions): Promise<StalledVerdict> {
  const chance = chanceOf(seed);
  const stage = await setStage();
  try {
    await stage.start("mta", "second");
    stage.sink.think(() => chance.between(5, 40));
    const verdicts: Verdict[] = [];
    let takenOver = 0;
    for (let round = 1; round <= rounds; round += 1) {
      const stall = async (): Promise<void> => {
        takenOver += await stallOne(stage, chance, round % 2 === 1 ? "mta" : "second");
      };
      const during = () => stall();
      const { verdict } = await playRound(stage, {
        name: `round-${round}`,
        sends,
        pause_ms: 20,
        during,
        ...(say ? { say } : {}),
      });
      verdicts.push(verdict);
    }
    const [doubts] = await stage.rows<{ total: number }>(
      "select count(*)::int as total from event where event_type = 'ambiguous'",
    );
    const summed = sumUp(verdicts);
    return { ...summed, ok: summed.ok && takenOver === rounds, taken_over: takenOver, in_doubt: doubts?.total ?? 0 };
  } finally {
    await stage.close();
  }
}

/** 1 when the node was buried while it was stopped. */
async function stallOne(stage: Stage, chance: Chance, name: string): Promise<number> {
  await sleep(chance.between(200, 1_000));
  const stalled = stage.processes.get(name);
  if (!stalled) throw new Error(`${name} does not run`);
  stalled.child.kill("SIGSTOP");
  await sleep(STALL_MS);
  const [row] = await stage.rows<{ found: number }>("select count(*)::int as found from node where pid = $1", [
    stalled.pid,
  ]);
  stalled.child.kill("SIGCONT");
  return row?.found === 0 ? 1 : 0;
}
