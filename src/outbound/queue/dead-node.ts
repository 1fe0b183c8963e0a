// What a dead node held and may have delivered: its journal tells which messages were about to be ended, and what became of
// those whose server had answered: that is recorded now. Each of the others gets the outcome that nobody knows, `ambiguous`,
// before its delivery is free again. Without its journal (another machine, another boot, a journal that is not whole)
// everything it held is in doubt. Not here: who is dead (leases.ts).
import type { Tx } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import type { Outside } from "../outside.ts";
import { deferredLocally } from "../path/attempt.ts";
import { decide, type FinishWorld, record } from "../path/finish.ts";
import * as queries from "../queries.ts";
import type { Outcome } from "../types.ts";
import { describe } from "./claims.ts";
import type { InFlight, Noted } from "./journal.ts";

export type DeadNode = { id: number; machine: string };

const CHUNK = 250;

/** Registered at the start, so that an alert finds it before the first doubt. */
export function doubtCounter({ metrics }: Pick<World, "metrics">) {
  return metrics.counter("postern_in_doubt_total", "Deliveries of ended processes that may have arrived");
}

/**
 * Records what `dead` has delivered, and as `ambiguous` what it may have, in the transaction that frees its deliveries; returns
 * how many of the latter. They are due again at once: nothing is known against their servers.
 */
export async function recordInDoubt(
  tx: Tx,
  world: FinishWorld,
  dead: DeadNode,
  { host, journals }: Pick<Outside, "host" | "journals">,
): Promise<number> {
  const journal = dead.machine === host.machine ? journals.read(dead.id) : null;
  const rows = await findInDoubt(tx, dead.id, journal);
  const outcomes = new Map(journal?.map((noted) => [nameOf(noted), noted.outcome]));
  const known = rows.filter((row) => outcomes.get(nameOf(row)));
  const doubts = rows.length - known.length;
  for (let at = 0; at < rows.length; at += CHUNK) await recordSome(tx, world, rows.slice(at, at + CHUNK), outcomes);
  doubtCounter(world).inc(doubts);
  if (rows.length > 0) {
    const why = journal ? "their final dot may have been sent" : "there is no whole journal of it here";
    const found = { node: dead.id, deliveries: doubts, answered: known.length };
    world.log.warn(found, `deliveries of a dead node are in doubt: ${why}; of those answered the outcome is recorded`);
  }
  return doubts;
}

function findInDoubt(tx: Tx, node: number, journal: Noted[] | null): Promise<queries.ClaimedRow[]> {
  if (journal === null) return queries.ownedBy(tx, node);
  return journal.length === 0 ? Promise.resolve([]) : queries.ownedAmong(tx, node, journal);
}

function nameOf({ message_id, position, attempts }: InFlight): string {
  return `${message_id}/${position}/${attempts}`;
}

async function recordSome(
  tx: Tx,
  world: FinishWorld,
  rows: queries.ClaimedRow[],
  outcomes: Map<string, Outcome | null>,
): Promise<void> {
  const abouts = await describe(tx, rows);
  const results = rows.flatMap((row) => {
    const about = abouts.get(row.message_id);
    const outcome = outcomes.get(nameOf(row)) ?? unrecorded();
    return about ? [decide(world, { ...row, mime: null, about }, outcome)] : [];
  });
  await record(tx, world, results);
}

function unrecorded(): Outcome {
  const message =
    "the process that sent this message ended before the server's answer was recorded; the server may have accepted it";
  return { ...deferredLocally(message, "4.4.2", "ambiguous"), ambiguous: true, retry_at_once: true };
}
