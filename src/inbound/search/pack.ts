// Packs the texts that received mail is searched for, a day of an organization at a time, once the day is over: for the `clock` role.
// A day is unpacked when mail of it is deleted or processed again, and packed again within a day. Searching: search.ts.
import type { Tx } from "../../platform/database/db.ts";
import {
  dayOf,
  findPastDays,
  firstOpenDay,
  idsOf,
  PACKED_ROWS_MIN,
  unpackOpenDays,
} from "../../platform/packed/packed-days.ts";
import { type RoundsWorld, startRounds } from "../../platform/process/rounds.ts";
import { uuidTime } from "../../platform/random.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "./pack-queries.ts";

const LOOK_EVERY_MS = 600_000;
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

/** Every day that is over is packed afterwards, for each organization that received much on it, and no other; `seen` are left out. */
export async function packReceived(world: PackWorld, { signal, beat, seen = new Set() }: Turn = {}): Promise<void> {
  const open = firstOpenDay(world.clock.now());
  await unpackOpenDays(world.db, "inbound_email_texts", open);
  const tables = { table: "inbound_email", packed: "inbound_email_texts" };
  for (const day of await findPastDays(world.db, { ...tables, before: open.day })) {
    if (seen.has(day)) continue;
    for (const orgId of await queries.findUnpacked(world.db, idsOf(day), PACKED_ROWS_MIN)) {
      if (signal?.aborted) return;
      beat?.();
      await world.db.transaction((tx) => queries.packDay(tx, orgId, idsOf(day)), PACK_MS);
    }
    seen.add(day);
  }
}

/** Before these mails are deleted, or change. */
export async function unpack(tx: Tx, mails: readonly { org_id: string; id: string }[]): Promise<void> {
  if (mails.length === 0) return;
  const days = new Map(
    mails.map(({ org_id, id }) => {
      const day = idsOf(dayOf(uuidTime(id)));
      return [`${org_id} ${day.day}`, { org_id, ...day }];
    }),
  );
  const inOrder = [...days].sort(([one], [other]) => (one < other ? -1 : 1));
  await queries.unpackDays(
    tx,
    inOrder.map(([, day]) => day),
  );
}
