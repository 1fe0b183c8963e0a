// Taking due mail out of the queue into memory: lanes of the own slots with due rows, then up to a window of rows from
// each. Woken by hand, by NOTIFY from other processes, and once a second; losing every NOTIFY costs at most that second.
import type { Query } from "../../platform/database/db.ts";
import { beatOf } from "../../platform/process/watchdog.ts";
import type { World } from "../../platform/world.ts";
import type { Held } from "../operate/held.ts";
import type { Sources } from "../pools/sources.ts";
import * as queries from "../queries.ts";
import type { Job, Lane, Mark } from "../types.ts";
import type { Leases } from "./leases.ts";
import type { Memory } from "./memory.ts";
import { ration } from "./ration.ts";
import { watchSteps } from "./stepped-clock.ts";
import type { Suspended } from "./suspended.ts";
import { tellerOfWaits } from "./waits.ts";

const POLL_MS = 1_000;
const SWEEP_MS = 30_000;
/** A lane that nobody used for so long is dropped. Who remembers it finds out when mail is put into it (lanes.ts). */
const LANES_KEPT_MS = 7 * 86_400_000;
const LANES_PER_CLAIM = 200;
const EXPIRED_PER_SWEEP = 500;
const IDLE_PER_SWEEP = 5_000;
const ROWS_PER_CLAIM = 400;
/** A lane in which nothing is due is looked at once more after this: an insert may be committing. */
const LINGER_MS = 2_000;

export type Claimer = { wake(): void; stop(): Promise<void> };

type Parts = {
  leases: Leases;
  memory: Memory;
  sources: Sources;
  suspended: Pick<Suspended, "ids">;
  held: Pick<Held, "domains">;
  /** Absent: nobody watches whether the database was restored. */
  mark?: Mark | undefined;
  take(lane: Lane, job: Job): void;
};

/** Starts claiming; `take` gets each claimed job, already counted in `memory`. */
export function createClaimer(world: World, parts: Parts): Claimer {
  const lingering = new Set<number>();
  let stopped = false;
  let again = false;
  let running: Promise<void> | null = null;
  let sweptAtMs = 0;
  const steps = watchSteps(world);
  const tellWaits = tellerOfWaits(world, parts.sources, (rows) => describe(world.db, rows));
  const rounds = beatOf(world, "mta claims");

  async function run(): Promise<void> {
    let more = false;
    try {
      do {
        again = false;
        rounds.beat();
        // Also when nothing can be claimed: what is in memory of such an organization waits for this answer.
        const end = world.moves.begin();
        try {
          const [suspended, held] = await Promise.all([parts.suspended.ids(), parts.held.domains()]);
          await sweepIfDue(suspended);
          more = !stopped && (await claimOnce(world, parts, { lingering, suspended, held }));
          if (mayClaim(parts)) await tellWaits(restingSlots(parts), { crowded: suspended, held });
        } finally {
          end();
        }
      } while (!stopped && (more || again));
    } catch (err) {
      world.log.warn({ err }, "claiming failed; trying again");
    }
    running = null;
  }

  async function sweepIfDue(suspended: string[]): Promise<void> {
    const now = world.clock.monotonic();
    if (now - sweptAtMs < SWEEP_MS) return;
    sweptAtMs = now;
    await steps.look(parts.leases.slots());
    await queries.wakeForgottenLanes(world.db, parts.leases.slots(), new Date(world.clock.now()));
    await takeExpired(world, parts, suspended);
    await queries.dropIdleLanes(world.db, new Date(world.clock.now() - LANES_KEPT_MS), IDLE_PER_SWEEP);
  }

  function wake(): void {
    steps.notice();
    again = true;
    if (!running && !stopped) running = run();
  }

  const timer = setInterval(wake, POLL_MS);
  wake();
  return {
    wake,
    async stop() {
      stopped = true;
      clearInterval(timer);
      rounds.end();
      await running;
    },
  };
}

type Round = { lingering: Set<number>; suspended: string[]; held: string[] };

/** One round; true when there may be more due mail than was taken. */
async function claimOnce(world: World, parts: Parts, { lingering, suspended, held }: Round): Promise<boolean> {
  const { leases, memory, sources, take, mark = null } = parts;
  const resting = restingOf(parts);
  const slots = leases.slots().filter(({ source_id }) => !resting.has(source_id));
  if (slots.length === 0 || !mayClaim(parts) || memory.roomInAll() <= 0) return false;
  const now = new Date(world.clock.now());
  const taken = { busy: memory.busyLanes(), crowded: [...memory.crowded(), ...suspended], held };
  const lanes = await queries.dueLanes(world.db, slots, { ...taken, now, limit: LANES_PER_CLAIM });
  if (lanes.length === 0) return false;
  const rationed = await ration(sources, lanes, shareRows(lanes, memory));
  const { wanted } = rationed;
  const claimed =
    wanted.length > 0 ? queries.claimDue(world.db, leases.node(), wanted, { now, mark }) : Promise.resolve([]);
  const rows = await claimed.catch(async (err) => {
    await rationed.settle([]);
    throw err;
  });
  await rationed.settle(rows);
  const byId = new Map(lanes.map((lane) => [lane.id, lane]));
  const counted = (lane: Lane, job: Job) => take(lane, { ...job, counted: rationed.countedOf(lane.id) });
  await hand(world, rows, byId, { memory, take: counted });
  await settleLanes(world, { wanted, rows, lingering, memory });
  return rows.length > 0;
}

/** An engine that others may take for dead takes nothing, nor one that lost sight of its database. */
function mayClaim({ leases, mark }: Parts): boolean {
  return leases.mayStart() && (mark?.isFresh() ?? true);
}

/** The addresses whose mail may not leave before tomorrow. */
function restingOf({ leases, sources }: Pick<Parts, "leases" | "sources">): Set<string> {
  const ids = new Set(leases.slots().map(({ source_id }) => source_id));
  return new Set([...ids].filter((id) => "wait" in sources.departure(id)));
}

/** Behind a claim, which finds out whether there is anything left of today. */
function restingSlots(parts: Pick<Parts, "leases" | "sources">) {
  const resting = restingOf(parts);
  return parts.leases.slots().filter(({ source_id }) => resting.has(source_id));
}

/** Divides the batch among the lanes, so that one long lane does not take all of it. */
function shareRows(lanes: Lane[], memory: Memory): { id: number; k: number }[] {
  const total = Math.min(ROWS_PER_CLAIM, memory.roomInAll());
  const each = Math.max(1, Math.floor(total / lanes.length));
  return lanes
    .map((lane) => ({ id: lane.id, k: Math.min(each, memory.room(lane.id)) }))
    .filter(({ k }) => k > 0)
    .slice(0, total);
}

type Settling = {
  wanted: { id: number; k: number }[];
  rows: queries.ClaimedRow[];
  lingering: Set<number>;
  memory: Memory;
};

async function settleLanes(world: World, { wanted, rows, lingering, memory }: Settling): Promise<void> {
  const taken = new Map<number, number>();
  for (const row of rows) taken.set(row.lane_id, (taken.get(row.lane_id) ?? 0) + 1);
  const drained = wanted.filter(({ id, k }) => (taken.get(id) ?? 0) < k).map(({ id }) => id);
  for (const { id, k } of wanted) memory.setBacklog(id, (taken.get(id) ?? 0) >= k);
  const now = new Date(world.clock.now());
  // What was found at the second look may have a neighbour that is being committed: then it was a first one.
  const recheck = drained.filter((id) => lingering.delete(id) && !taken.has(id));
  const firstCheck = drained.filter((id) => !recheck.includes(id));
  if (recheck.length > 0) await queries.rescheduleLanes(world.db, recheck, now, 0);
  if (firstCheck.length > 0) {
    const looked = await queries.rescheduleLanes(world.db, firstCheck, now, LINGER_MS);
    for (const { id, asleep } of looked) if (asleep) lingering.add(id);
  }
}

async function takeExpired(world: World, parts: Parts, suspended: string[]): Promise<void> {
  const { leases, memory, take, mark = null } = parts;
  if (!mayClaim(parts)) return;
  const now = new Date(world.clock.now());
  const asked = { now, mark, suspended, limit: EXPIRED_PER_SWEEP };
  const rows = await queries.claimExpired(world.db, leases.node(), leases.slots(), asked);
  if (rows.length === 0) return;
  const lanes = await queries.findLanes(world.db, [...new Set(rows.map((row) => row.lane_id))]);
  await hand(world, rows, new Map(lanes.map((lane) => [lane.id, lane])), { memory, take });
}

async function hand(
  world: World,
  rows: queries.ClaimedRow[],
  lanes: Map<number, Lane>,
  { memory, take }: Pick<Parts, "memory" | "take">,
): Promise<void> {
  if (rows.length === 0) return;
  // Counted behind the look-up: when that fails, the rows are found again as forgotten, and no room is lost for them.
  const abouts = await describe(world.db, rows);
  for (const row of rows) memory.claimed(lanes.get(row.lane_id) as Lane);
  for (const row of rows) {
    const about = abouts.get(row.message_id);
    const job: Job = { ...row, mime: null, about: about as Job["about"] };
    if (about) take(lanes.get(row.lane_id) as Lane, job);
    else {
      memory.finish(job);
      world.log.error({ message_id: row.message_id }, "a queued message has no record; left in the queue");
    }
  }
}

/** What an attempt needs to know of the rows' messages, by message id. */
export async function describe(db: Query, rows: queries.ClaimedRow[]): Promise<Map<string, Job["about"]>> {
  const found = await queries.describeMessages(db, rows);
  return new Map(found.map(({ id, ...about }) => [id, { ...about, blob_key: null }]));
}
