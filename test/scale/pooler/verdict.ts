// The last line of `npm run scale -- pooler --json`, and whether it passed.
import type { PoolerPlayed } from "./play.ts";
import { addTimes, type Kind, type TimesByKind } from "./timed-db.ts";

type Run = { nodes: number; connections: number; seconds: number; held_s: number };

/** Without these a node is not one: it is declared dead, holds no slots, or sends nothing that waits. */
const VITAL: Kind[] = ["heartbeat", "leases", "claim"];
/** A node whose last sign of life is older begins no message. */
const SILENT_MAX_MS = 22_000;

export function verdictOf({ nodes, connections, seconds, held_s }: Run, played: PoolerPlayed) {
  const { seen, held, accepted, arrived } = played;
  const { nodes: registered, ...figures } = seen;
  const here = new Set(arrived);
  const lost = accepted.filter((to) => !here.has(to)).length;
  const duplicates = arrived.length - here.size;
  const starved = played.times.filter((times) => isStarved(times)).length;
  const unanswered = held.reduce((sum, one) => sum + one.unanswered, 0);
  const isFull = seen.active_max === connections && seen.waiting_max > 0;
  const isAlive = registered === nodes && seen.declared_dead === 0 && seen.longest_silence_ms < SILENT_MAX_MS;
  const isPassed = lost + duplicates + starved + unanswered === 0;
  const ok = accepted.length > 0 && isPassed && isFull && isAlive;
  return {
    ...{ nodes, connections, acknowledged: accepted.length, lost, duplicates, starved, unanswered },
    transactions_per_s: Math.round(held.reduce((sum, one) => sum + one.answered, 0) / held_s),
    ...{ ...figures, transactions: summed(played.times), seconds, ok },
  };
}

/** A node to which one of these was not answered in its time, or that never had one. */
function isStarved(times: TimesByKind): boolean {
  return VITAL.some((kind) => times[kind].done === 0 || times[kind].unanswered > 0);
}

function summed(all: TimesByKind[]) {
  const kinds = Object.entries(addTimes(all)).map(([kind, { held_ms, ...times }]) => {
    const mean_held_ms = Math.round((held_ms / Math.max(1, times.done)) * 10) / 10;
    return [kind, { ...times, mean_held_ms }];
  });
  return Object.fromEntries(kinds);
}
