// What waits because the addresses of its pool made their attempts of today: its timeline says so, once a day. Nothing in
// the queue moves for that: it stays due, and leaves as soon as the pool may send more.
import { recordEvents } from "../../events/events.ts";
import { deferredLocally } from "../path/attempt.ts";
import { decide, type FinishWorld } from "../path/finish.ts";
import { foldMessages, lockMessages } from "../path/finish-queries.ts";
import type { Sources } from "../pools/sources.ts";
import * as queries from "../queries.ts";
import type { Job, Lane } from "../types.ts";
import { findUntold, tellWaiting, type WaitingRow } from "./waits-queries.ts";

const DAY_MS = 86_400_000;
const EVERY_MS = 5_000;
const LANES_MAX = 200;
const ROWS_MAX = 400;
/** So much later than a neighbour's may an insert be committed. */
const COMMITTED_LATE_MS = 60_000;
const NEVER = new Date(8.64e15);

export type Slots = { source_id: string; slot: number }[];
type PassedOver = { crowded: string[]; held: string[] };
type Describe = (rows: queries.ClaimedRow[]) => Promise<Map<string, Job["about"]>>;

/** A teller of the waits at the slots that rest, to be called at will: it looks every few seconds, at some lanes a time. */
export function tellerOfWaits(world: FinishWorld, sources: Pick<Sources, "departure">, describe: Describe) {
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let today = 0;
  /** How far each lane was gone through today, by when its mail was due. */
  const reached = new Map<number, number>();
  const seen = new Set<number>();

  return async (slots: Slots, passedOver: PassedOver): Promise<void> => {
    const tickMs = world.clock.monotonic();
    if (slots.length === 0 || tickMs - lookedAtMs < EVERY_MS) return;
    lookedAtMs = tickMs;
    const now = new Date(world.clock.now());
    const day = new Date(now.getTime() - (now.getTime() % DAY_MS));
    if (day.getTime() !== today) reached.clear();
    today = day.getTime();
    const lanes = await queries.dueLanes(world.db, slots, { ...passedOver, busy: [...seen], now, limit: LANES_MAX });
    if (lanes.length === 0) return seen.clear();
    const k = Math.ceil(ROWS_MAX / lanes.length);
    const wanted = lanes.map(({ id }) => ({ id, since: new Date(reached.get(id) ?? 0), k }));
    const rows = await findUntold(world.db, wanted, { now, day });
    const abouts = rows.length > 0 ? await describe(rows.map((row) => ({ ...row, owner: 0 }))) : new Map();
    for (const lane of lanes) {
      const own = rows.filter(({ lane_id }) => lane_id === lane.id);
      const last = own.at(-1)?.due_at ?? now;
      if (own.length < k) seen.add(lane.id);
      await tell(world, { lane, sources, abouts, now, day }, own);
      reached.set(lane.id, Math.min(last.getTime(), now.getTime() - COMMITTED_LATE_MS));
    }
  };
}

type Telling = {
  lane: Lane;
  sources: Pick<Sources, "departure">;
  abouts: Map<string, Job["about"]>;
  now: Date;
  day: Date;
};

async function tell(world: FinishWorld, { lane, sources, abouts, now, day }: Telling, rows: WaitingRow[]) {
  const departure = sources.departure(lane.source_id);
  const known = rows.filter(({ message_id }) => abouts.has(message_id));
  if (known.length === 0 || !("wait" in departure)) return;
  const tomorrow = new Date(day.getTime() + DAY_MS);
  const waiting = known.map((row) => ({ ...row, next_attempt_at: row.expires_at > tomorrow ? tomorrow : null }));
  const why = `waits for tomorrow (UTC): ${departure.wait}`;
  await world.db.transaction(async (tx) => {
    await lockMessages(tx, waiting);
    const still = await tellWaiting(tx, waiting, { now, day, why });
    const names = new Set(still.map(nameOf));
    const kept = waiting.filter((row) => names.has(nameOf(row)));
    if (kept.length === 0) return;
    await foldMessages(tx, kept, now);
    const events = kept.map((row) => waitOf(world, row, { about: abouts.get(row.message_id) as Job["about"], why }));
    await recordEvents(tx, world, events);
  });
}

function nameOf({ message_id, position }: Pick<WaitingRow, "message_id" | "position">): string {
  return `${message_id}/${position}`;
}

type Waiting = WaitingRow & { next_attempt_at: Date | null };

/** The event of a deferral without an attempt: its own end is the business of those that take it. */
function waitOf(world: FinishWorld, row: Waiting, { about, why }: { about: Job["about"]; why: string }) {
  const job: Job = { ...row, owner: 0, mime: null, about, expires_at: NEVER };
  const retry_at = new Date(world.clock.now());
  const outcome = { ...deferredLocally(why, "4.3.0", "local"), unattempted: true, retry_at };
  return { ...decide(world, job, outcome).event, next_attempt_at: row.next_attempt_at };
}
