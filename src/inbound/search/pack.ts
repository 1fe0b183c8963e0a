// Packs the texts that received mail is searched for, a day of an organization at a time, once the day is over: for the `clock` role.
// A day is unpacked when mail of it is deleted or processed again, and packed again within a day. Searching: search.ts.
import type { Tx } from "../../platform/database/db.ts";
import { findPastDays } from "../../platform/packed/packed-days.ts";
import { type RoundsWorld, startRounds } from "../../platform/process/rounds.ts";
import { uuidFloor, uuidTime } from "../../platform/random.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "./pack-queries.ts";

const DAY_MS = 86_400_000;
const LOOK_EVERY_MS = 600_000;
/** Mail gets its id before it is committed, by the clock of a machine that may be behind. */
const SETTLED_AFTER_MS = 3_600_000;
/** Fewer mails of a day are read as quickly from their own rows. */
const MAILS_MIN = 200;
/** Packing 1,000,000 mails takes a quarter of a minute. */
const PACK_MS = 300_000;

type PackWorld = Pick<World, "clock" | "db">;

/** Packs days that are over, the newest first; each is looked at once a day. */
export function startPackingReceived(world: PackWorld & RoundsWorld): { stop(): Promise<void> } {
  let seen = new Set<string>();
  let today = "";
  return startRounds(world, {
    name: "packed texts of received mail",
    every_ms: LOOK_EVERY_MS,
    async round(signal, beat) {
      const day = dayOf(world.clock.now());
      if (day !== today) [seen, today] = [new Set(), day];
      await packReceived(world, { signal, beat, seen });
    },
  });
}

type Turn = { signal?: AbortSignal; beat?(): void; seen?: Set<string> };

/** Every day that is over is packed afterwards, for each organization that received much on it; `seen` are left out. */
export async function packReceived(world: PackWorld, { signal, beat, seen = new Set() }: Turn = {}): Promise<void> {
  const before = dayOf(world.clock.now() - SETTLED_AFTER_MS);
  for (const day of await findPastDays(world.db, { table: "inbound_email", packed: "inbound_email_texts", before })) {
    if (seen.has(day)) continue;
    const range = rangeOf(day);
    for (const orgId of await queries.findUnpacked(world.db, range, MAILS_MIN)) {
      if (signal?.aborted) return;
      beat?.();
      await world.db.transaction((tx) => queries.packDay(tx, orgId, range), PACK_MS);
    }
    seen.add(day);
  }
}

/** Before these mails are deleted, or change. Today's are not packed. */
export async function unpack(
  tx: Tx,
  world: Pick<World, "clock">,
  mails: readonly { org_id: string; id: string }[],
): Promise<void> {
  const today = dayOf(world.clock.now());
  const days = new Map<string, Parameters<typeof queries.unpackDays>[1][number]>();
  for (const { org_id, id } of mails) {
    const day = dayOf(uuidTime(id));
    if (day < today) days.set(`${org_id} ${day}`, { org_id, ...rangeOf(day) });
  }
  if (days.size === 0) return;
  const inOrder = [...days].sort(([one], [other]) => (one < other ? -1 : 1));
  await queries.unpackDays(
    tx,
    inOrder.map(([, day]) => day),
  );
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function rangeOf(day: string): queries.Day {
  const startMs = Date.parse(day);
  return { day, from_id: uuidFloor(startMs), to_id: uuidFloor(startMs + DAY_MS) };
}
