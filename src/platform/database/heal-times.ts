// Times that are stored ahead of the clock, each with the furthest that one is ever stored. One beyond it was written before
// the clock was set back: it is brought within its bound, so that nothing waits for as long as the step. Not here: times
// that people chose (an e-mail's schedule, a suppression's end), and which times there are (future-times.ts).

import { type RoundsWorld, startRounds } from "../process/rounds.ts";
import type { World } from "../world.ts";
import type { FutureTime } from "./future-times.ts";
import { FUTURE_TIMES } from "./future-times.ts";

type Healer = Pick<World, "db" | "clock" | "log">;

const ROWS_AT_ONCE = 5_000;
const STEPS_MAX = 1_000;
const LOOK_EVERY_MS = 500;
/** Also without a step that was seen: another process may have written by a clock of its own. */
const HEAL_EVERY_MS = 3_600_000;
/** What clocks differ by at any time, and what this process may have slept. */
const STEP_MS_MIN = 250;
/** The database's clock is followed every few seconds only: rows may come in meanwhile by the old one. */
const AGAIN_MS = 15_000;
const SLACK_S = 1;

/** Brings every time of `times` within its bound; answers how many rows were beyond it. */
export async function healFutureTimes(world: Healer, times: readonly FutureTime[]): Promise<number> {
  let healed = 0;
  for (const time of times) {
    const rows = await healOne(world, time);
    if (rows > 0)
      world.log.warn({ table: time.table, column: time.column, rows }, "times too far ahead were brought back");
    healed += rows;
  }
  return healed;
}

/** By ctid, with the leaf it is in: a table may be partitioned. Rows that somebody holds are for the next round. */
async function healOne({ db, clock }: Healer, time: FutureTime): Promise<number> {
  const now = time.clock === "database" ? "statement_timestamp()" : "$1::timestamptz";
  const bound = `${now} + make_interval(secs => ${time.ahead_s})`;
  const text = `with beyond as materialized (
      select t.tableoid, t.ctid from ${time.table} t
       where t.${time.column} > ${bound} + interval '${SLACK_S} second' and t.${time.column} < 'infinity'
         and ${time.where ?? "true"}
       limit ${ROWS_AT_ONCE} for update skip locked)
    update ${time.table} t set ${time.column} = ${time.becomes === "now" ? now : bound}
      from beyond b where t.tableoid = b.tableoid and t.ctid = b.ctid and $1::timestamptz is not null`;
  let healed = 0;
  for (let step = 0; step < STEPS_MAX; step += 1) {
    const rows = await db.execute(text, [new Date(clock.now())]);
    healed += rows;
    if (rows < ROWS_AT_ONCE) break;
  }
  return healed;
}

/** Heals at once, every hour, and when the clock was set: then again a little later, for what came in meanwhile. */
export function startHealing(world: Healer & RoundsWorld, times = FUTURE_TIMES): { stop(): Promise<void> } {
  const { clock } = world;
  let aheadMs = clock.now() - clock.monotonic();
  let dueMs = clock.monotonic();
  let againMs = Number.POSITIVE_INFINITY;
  return startRounds(world, {
    name: "future times",
    every_ms: LOOK_EVERY_MS,
    async round() {
      const monotonic = clock.monotonic();
      const offset = clock.now() - monotonic;
      const isSet = Math.abs(offset - aheadMs) >= STEP_MS_MIN;
      if (!isSet && monotonic < dueMs && monotonic < againMs) return;
      await healFutureTimes(world, times);
      aheadMs = offset;
      againMs = isSet ? monotonic + AGAIN_MS : monotonic >= againMs ? Number.POSITIVE_INFINITY : againMs;
      dueMs = monotonic + HEAL_EVERY_MS;
    },
  });
}
