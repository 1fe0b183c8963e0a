// That every delivery is at any time due, held or ended: somebody has it, or a lane that is there looks at it when it is due,
// or when its destination is tried again, and that is within a day. What is not so may last as long as it takes to notice that
// a process died or that the clock was set back, and no longer.
import type { OutboundPlay } from "./outbound-play.ts";
import type { DeliveryRow } from "./outbound-rows.ts";

export type Watch = {
  look(): void;
  /** True if there is a delivery now that nobody will look at. */
  isAny(): boolean;
  problems: string[];
};

/** The longest wait of the table is under 7 h. */
const AHEAD_MAX_MS = 24 * 3_600_000;
/** Sweeps every 30 s, behind a restart, an outage of the database and a process that is declared dead. */
const UNWATCHED_MAX_MS = 240_000;

export function watchDeliveries({
  universe,
  rows,
  processes,
}: Pick<OutboundPlay, "universe" | "rows" | "processes">): Watch {
  const since = new Map<string, number>();
  const problems: string[] = [];

  function isWatched({ owner, lane_id, due_at }: DeliveryRow): boolean {
    if (owner !== null) return rows.nodes.has(owner);
    const lane = rows.lanes.get(lane_id);
    if (!lane) return false;
    const looksAt = Math.max(lane.next_at, lane.paused_until ?? 0);
    const isInTime = looksAt <= Math.max(due_at, universe.wall()) || lane.paused_until !== null;
    return isInTime && looksAt <= universe.wall() + AHEAD_MAX_MS;
  }

  function look(): void {
    const nowMs = universe.monotonic();
    const isUp = processes.all.some(({ engine, life }) => engine !== null && life.stalled_until_ms <= nowMs);
    for (const key of since.keys()) if (!rows.deliveries.has(key)) since.delete(key);
    for (const [key, row] of rows.deliveries) {
      if (isWatched(row)) since.delete(key);
      else if (!since.has(key)) since.set(key, nowMs);
      const lastsMs = nowMs - (since.get(key) ?? nowMs);
      if (isUp && lastsMs > UNWATCHED_MAX_MS) problems.push(`${row.email}: nobody looks at it: ${JSON.stringify(row)}`);
    }
  }

  return { look, isAny: () => since.size > 0, problems };
}
