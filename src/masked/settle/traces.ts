// Remembering that a mail of a masked address holds people's addresses, in the transaction that makes it: settling.ts sees
// to it that they are forgotten.
import type { Tx } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "./trace-queries.ts";

export type NewTrace = { org_id: string; id: string; kind: queries.TraceRow["kind"] } & Partial<
  Pick<queries.TraceRow, "alias_id" | "destination_id" | "contact_id" | "owner_id" | "cleared">
>;

const FIRST_LOOK_MS = 1_000;
/** Somebody is about to look at what a simulated mail became. */
const SIMULATED_LOOK_MS = 60_000;

export type TraceInsert = Omit<queries.TraceRow, "org_id"> & { due_at: Date };

/** The rows of traces made now. */
export function toRows(
  world: Pick<World, "clock">,
  traces: readonly NewTrace[],
  environment: "live" | "test" = "live",
): TraceInsert[] {
  const now = world.clock.now();
  const due = now + (environment === "test" ? SIMULATED_LOOK_MS : FIRST_LOOK_MS);
  return traces.map(({ id, kind, alias_id, destination_id, contact_id, owner_id, cleared }) => ({
    id,
    kind,
    alias_id: alias_id ?? null,
    destination_id: destination_id ?? null,
    contact_id: contact_id ?? null,
    owner_id: owner_id ?? null,
    cleared: cleared ?? null,
    created_at: new Date(now),
    due_at: new Date(due),
  }));
}

/** Remembers that these mails hold addresses. In the transaction that makes them, in `withPartitions`. */
export async function insertTraces(world: Pick<World, "clock">, tx: Tx, traces: readonly NewTrace[]): Promise<void> {
  for (const [at, row] of toRows(world, traces).entries()) {
    await queries.insertTrace(tx, (traces[at] as NewTrace).org_id, row);
  }
}
