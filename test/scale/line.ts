// The last line of `npm run scale -- --json`: however the run ended, its fixed fields are there.
import type { Played } from "./play.ts";

type Run = { cells: number; organizations: number; seconds: number };

/** Of a run that came to its end. `duplicates`: copies that nothing explains; an explained one is `flagged`. */
export function lineOf({ cells, organizations, seconds }: Run, played: Played) {
  const { sent, received, longest_pause_ms, moves, backup, worker_killed, node_killed } = played;
  const flagged = sent.flagged + received.flagged;
  const duplicates = sent.duplicates + received.duplicates - flagged;
  const acknowledged = sent.acknowledged + received.acknowledged;
  const lost = sent.lost + received.lost;
  const counted = { acknowledged, lost, duplicates, longest_pause_ms };
  const isBackedUp = backup.rows > 0 && backup.different.length === 0;
  const ok = isBackedUp && sent.ok && received.ok && acknowledged > 0 && lost === 0 && duplicates === 0;
  const details = { flagged, backup, sent, received, seconds, ok };
  return { cells, organizations, ...counted, moves, worker_killed, node_killed, ...details };
}

/** Of one that did not: `skipped`, this machine has no Citus; `error`, it failed. */
export function lineWithout(why: { skipped: string } | { error: string }) {
  const nothing = { cells: 0, organizations: 0, acknowledged: 0, lost: 0, duplicates: 0, longest_pause_ms: 0 };
  return { ...nothing, moves: [], worker_killed: null, node_killed: null, ...why, ok: false };
}
