// Packs the texts that sent mail is searched for, a day of an organization at a time, once the day is over: for the `clock` role.
// Mail on its way pays nothing. Not here: searching in them (search.ts).
import {
  type Day,
  findPastDays,
  firstOpenDay,
  idsOf,
  PACKED_ROWS_MIN,
  unpackOpenDays,
} from "../../platform/packed/packed-days.ts";
import { type RoundsWorld, startRounds } from "../../platform/process/rounds.ts";
import { uuidFloor } from "../../platform/random.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "./pack-queries.ts";

const DAY_MS = 86_400_000;
const LOOK_EVERY_MS = 600_000;
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

/** Every day that is over is packed afterwards, for each organization that sent much on it; no other day is. */
export async function packPastDays(world: PackWorld, { signal, beat }: Turn = {}): Promise<void> {
  const open = firstOpenDay(world.clock.now());
  await unpackOpenDays(world.db, "message_texts", open);
  const days = await findPastDays(world.db, { table: "message", packed: "message_texts", before: open.day });
  await queries.forgetNotedDays(world.db, { oldest: days.at(-1) ?? open.day, open: open.day });
  const noted = await queries.findNotedDays(world.db);
  for (const day of days.filter((one) => !noted.has(one)).map(idsOf)) {
    for (const { org_id, mails } of await queries.findUnpacked(world.db, day, {
      min: PACKED_ROWS_MIN,
      max: MAILS_MAX,
    })) {
      if (signal?.aborted) return;
      beat?.();
      await packDay(world, { org_id, mails, day });
    }
    await queries.noteDay(world.db, day.day);
  }
}

/** All of the day or nothing. */
async function packDay({ db }: PackWorld, { org_id, mails, day }: { org_id: string; mails: number; day: Day }) {
  const parts = Math.ceil(mails / MAILS_AT_ONCE);
  const edge = (part: number): string => uuidFloor(Date.parse(day.day) + Math.round((part * DAY_MS) / parts));
  await db.transaction(async (tx) => {
    for (let part = 0; part < parts; part += 1)
      await queries.packRange(tx, org_id, { day: day.day, from_id: edge(part), to_id: edge(part + 1) });
  });
}
