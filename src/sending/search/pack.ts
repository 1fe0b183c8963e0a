// Packs the texts that sent mail is searched for, a day of an organization at a time, once the day is over: for the `clock` role.
// Mail on its way pays nothing. Not here: searching in them (search.ts).
import { findPastDays } from "../../platform/packed/packed-days.ts";
import { type RoundsWorld, startRounds } from "../../platform/process/rounds.ts";
import { uuidFloor } from "../../platform/random.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "./pack-queries.ts";

const DAY_MS = 86_400_000;
const LOOK_EVERY_MS = 600_000;
/** Mail gets its id before it is committed, by the clock of a machine that may be behind. */
const SETTLED_AFTER_MS = 3_600_000;
/** Fewer e-mails of a day are read as quickly from their own rows. */
const MAILS_MIN = 200;
/** So many are packed by one statement, in some 2 s; a day that would take minutes is left out. */
const MAILS_AT_ONCE = 200_000;
const MAILS_MAX = 50 * MAILS_AT_ONCE;

type PackWorld = Pick<World, "clock" | "db">;

/** Packs days that are over, the newest first. */
export function startPacking(world: PackWorld & RoundsWorld): { stop(): Promise<void> } {
  return startRounds(world, {
    name: "packed texts",
    every_ms: LOOK_EVERY_MS,
    round: (signal, beat) => packPastDays(world, { signal, beat }),
  });
}

type Turn = { signal?: AbortSignal; beat?(): void };

/** Every day that is over is packed afterwards, for each organization that sent much on it. */
export async function packPastDays(world: PackWorld, { signal, beat }: Turn = {}): Promise<void> {
  const before = new Date(world.clock.now() - SETTLED_AFTER_MS).toISOString().slice(0, 10);
  const days = await findPastDays(world.db, { table: "message", packed: "message_texts", before });
  const noted = await queries.findNotedDays(world.db);
  for (const day of days.filter((one) => !noted.has(one))) {
    const range = rangeOf(day, Date.parse(day), Date.parse(day) + DAY_MS);
    for (const { org_id, mails } of await queries.findUnpacked(world.db, range, { min: MAILS_MIN, max: MAILS_MAX })) {
      if (signal?.aborted) return;
      beat?.();
      await packDay(world, { org_id, mails, day });
    }
    await queries.noteDay(world.db, day);
  }
  const oldest = days.at(-1);
  if (oldest !== undefined) await queries.forgetNotedDays(world.db, oldest);
}

/** All of the day or nothing. */
async function packDay({ db }: PackWorld, { org_id, mails, day }: { org_id: string; mails: number; day: string }) {
  const parts = Math.ceil(mails / MAILS_AT_ONCE);
  const edge = (part: number): number => Date.parse(day) + Math.round((part * DAY_MS) / parts);
  await db.transaction(async (tx) => {
    for (let part = 0; part < parts; part += 1)
      await queries.packRange(tx, org_id, rangeOf(day, edge(part), edge(part + 1)));
  });
}

function rangeOf(day: string, fromMs: number, toMs: number): queries.Day {
  return { day, from_id: uuidFloor(fromMs), to_id: uuidFloor(toMs) };
}
