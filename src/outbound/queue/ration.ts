// How many rows of each lane may be claimed under the daily limits of addresses that are being warmed up. What is claimed
// has been set aside in the database before, so the limit holds exactly over any number of processes.
import type { KnownSource, Sources } from "../pools/sources.ts";
import type { Counted, Job, Lane } from "../types.ts";

type Share = { id: number; k: number };

export type Ration = {
  wanted: Share[];
  /** Where the lane's rows were counted; undefined where nothing is counted. */
  countedOf(laneId: number): Counted | undefined;
  /** Takes what was really claimed, also when that failed: the rest is given back. */
  settle(rows: { lane_id: number }[]): Promise<void>;
};

/** Cuts `wanted` to what may be attempted now. */
export async function ration(
  sources: Pick<Sources, "departure" | "isUnlimited" | "today" | "grant" | "giveBack">,
  lanes: Lane[],
  wanted: Share[],
): Promise<Ration> {
  const byId = new Map(lanes.map((lane) => [lane.id, lane]));
  const kept: Share[] = [];
  const limited = new Map<KnownSource, Share[]>();
  for (const share of wanted) {
    const sourceId = byId.get(share.id)?.source_id ?? "";
    const departure = sources.isUnlimited(sourceId) ? null : sources.departure(sourceId);
    if (departure === null || "problem" in departure) kept.push(share);
    else if ("source" in departure) {
      limited.set(departure.source, [...(limited.get(departure.source) ?? []), share]);
    }
  }
  const day = sources.today();
  const grants = new Map<string, number>();
  const counted = new Map<number, Counted>();
  async function settle(rows: { lane_id: number }[]): Promise<void> {
    for (const [sourceId, granted] of grants) {
      const used = rows.filter(({ lane_id }) => counted.get(lane_id)?.source_id === sourceId).length;
      await sources.giveBack({ source_id: sourceId, day }, granted - used);
    }
  }
  for (const [source, shares] of limited) {
    const total = shares.reduce((sum, { k }) => sum + k, 0);
    let left = await sources.grant(source, total).catch(async (err) => {
      await settle([]);
      throw err;
    });
    grants.set(source.id, left);
    for (const { id, k } of shares) {
      const share = { id, k: Math.min(k, left) };
      left -= share.k;
      counted.set(id, { source_id: source.id, day });
      if (share.k > 0) kept.push(share);
    }
  }
  return { wanted: kept, countedOf: (laneId) => counted.get(laneId), settle };
}

/**
 * True for mail that was claimed while no address of its pool could send, and so was not counted, if it would leave from a
 * limited address now: it must be claimed again.
 */
export function isUncounted(
  sources: Pick<Sources, "isUnlimited">,
  source: Pick<KnownSource, "id">,
  { counted }: Pick<Job, "counted">,
): boolean {
  return !counted && !sources.isUnlimited(source.id);
}

/** Gives back what was set aside for mail that goes back to the queue without an attempt: it is counted again when claimed. */
export async function giveBackAttempts(
  sources: Pick<Sources, "giveBack">,
  jobs: Pick<Job, "counted">[],
): Promise<void> {
  const counted = jobs.flatMap((job) => job.counted ?? []);
  for (const same of Map.groupBy(counted, ({ source_id, day }) => `${source_id} ${day}`).values()) {
    await sources.giveBack(same[0] as Counted, same.length);
  }
}
