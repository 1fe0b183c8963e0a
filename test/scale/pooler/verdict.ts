// The last line of `npm run scale -- pooler --json`, and whether it passed.
import type { PoolerPlayed } from "./play.ts";
import { addTimes, type Kind, type TimesByKind } from "./timed-db.ts";

type Run = { nodes: number; connections: number; seconds: number; held_s: number };

/** Without these a node is not one: it is declared dead, or holds no slots. */
const ALWAYS: Kind[] = ["heartbeat", "leases"];
/** It is asked for when mail is due, and a few nodes may be quick enough to take all of it; but a node that asks has its answer. */
const WHEN_DUE: Kind = "claim";
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
  const sending = played.times.filter((times) => times[WHEN_DUE].done > 0).length;
  const faults = [
    [accepted.length === 0, "no mail was taken in"],
    [lost > 0, `${lost} mails did not arrive`],
    [duplicates > 0, `${duplicates} mails arrived twice`],
    [starved > 0, `${starved} nodes were not answered by the database`],
    [unanswered > 0, `${unanswered} transactions of organizations were not answered`],
    [seen.active_max !== connections, `${seen.active_max} of ${connections} connections were in use at most`],
    [seen.waiting_max === 0, "nobody waited for a connection"],
    [sending < 2, `${sending} nodes had mail to send`],
    [registered !== nodes, `${registered} of ${nodes} nodes were registered at the end`],
    [seen.declared_dead > 0, `${seen.declared_dead} nodes were declared dead`],
    [seen.longest_silence_ms >= SILENT_MAX_MS, `a node gave no sign of life for ${seen.longest_silence_ms} ms`],
  ].flatMap(([isFault, text]) => (isFault ? [text as string] : []));
  const ok = faults.length === 0;
  return {
    ...{ nodes, connections, acknowledged: accepted.length, lost, duplicates, starved, unanswered, sending, faults },
    transactions_per_s: Math.round(held.reduce((sum, one) => sum + one.answered, 0) / held_s),
    ...{ ...figures, transactions: summed(played.times), seconds, ok },
  };
}

/** A node that was not answered in time, or that never had what every node has. */
function isStarved(times: TimesByKind): boolean {
  const isUnanswered = [...ALWAYS, WHEN_DUE].some((kind) => times[kind].unanswered > 0);
  return isUnanswered || ALWAYS.some((kind) => times[kind].done === 0);
}

function summed(all: TimesByKind[]) {
  const kinds = Object.entries(addTimes(all)).map(([kind, { held_ms, ...times }]) => {
    const mean_held_ms = Math.round((held_ms / Math.max(1, times.done)) * 10) / 10;
    return [kind, { ...times, mean_held_ms }];
  });
  return Object.fromEntries(kinds);
}
