// Packs the texts that sent mail is searched for, a day of an organization at a time, once the day is over: for the `clock` role.
// Mail on its way pays nothing. A day is unpacked when mail of it is erased, and packed again soon. Searching: search.ts.
import type { Query, Tx } from "../../platform/database/db.ts";
import {
  type Day,
  dayOf,
  findPastDays,
  firstOpenDay,
  idsOf,
  PACKED_ROWS_MIN,
  unpackOpenDays,
} from "../../platform/packed/packed-days.ts";
import { type RoundsWorld, startRounds } from "../../platform/process/rounds.ts";
import { uuidFloor, uuidTime } from "../../platform/random.ts";
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

/** Packs all of a day, or nothing of it. */
async function packDay({ db }: PackWorld, { org_id, mails, day }: { org_id: string; mails: number; day: Day }) {
  const parts = Math.ceil(mails / MAILS_AT_ONCE);
  const edge = (part: number): string => uuidFloor(Date.parse(day.day) + Math.round((part * DAY_MS) / parts));
  await db.transaction(async (tx) => {
    await queries.lockForPacking(tx, org_id);
    for (let part = 0; part < parts; part += 1)
      await queries.packRange(tx, org_id, { day: day.day, from_id: edge(part), to_id: edge(part + 1) });
  });
}

function daysOf(ids: readonly string[]): Day[] {
  return [...new Set(ids.map((id) => dayOf(uuidTime(id))))].sort().map(idsOf);
}

/** Before these mails are erased, or change. */
export async function unpackSent(tx: Tx, orgId: string, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await queries.unpackDays(tx, orgId, daysOf(ids));
}

/** Mail of these days came from elsewhere: they are looked at again. */
export async function packDaysAgain(db: Query, days: readonly string[]): Promise<void> {
  await queries.forgetNoted(db, days.map(idsOf));
}

/**
 * After the commit of what `unpackSent` began: their days are packed again. A round that is at such a day right now may note it all
 * the same; then mail of this organization and day is read from its rows, which only takes longer.
 */
export async function packAgain(db: Query, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await queries.forgetNoted(db, daysOf(ids));
}
