// What happened on an alias, without subjects and bodies: entries are written in the transaction of what they tell of.
import type { Tx } from "../platform/database/db.ts";
import type { World } from "../platform/world.ts";
import { tryOpenContact, tryOpenText } from "./addresses/addresses.ts";
import * as queries from "./people-queries.ts";
import type { ActivityRecord } from "./types.ts";

/** `id`: of the message that it tells of, whose end then ends it as well (settling.ts). */
export type Entry = Pick<queries.ActivityRow, "alias_id" | "type" | "outcome"> &
  Partial<Omit<queries.ActivityRow, "at">> & { org_id: string };

/** Writes an entry. Run the transaction in `withPartitions`. */
export async function recordActivity(world: Pick<World, "clock" | "random">, tx: Tx, entry: Entry): Promise<void> {
  await queries.insertActivity(tx, entry.org_id, toActivityRow(world, entry));
}

/** The row of an entry made now. */
export function toActivityRow(world: Pick<World, "clock" | "random">, entry: Entry): queries.ActivityRow {
  const { org_id: _org, ...given } = entry;
  return {
    reason: null,
    detail: null,
    contact_id: null,
    destination_id: null,
    message_id: null,
    size: null,
    spf: null,
    dkim: null,
    dmarc: null,
    spam_score: null,
    redactions: null,
    ...given,
    id: given.id ?? world.random.uuid(),
    at: new Date(world.clock.now()),
  };
}

/** Notes a change that the owner made. */
export function recordConfig(
  world: Pick<World, "clock" | "random">,
  tx: Tx,
  { org_id, alias_id, reason }: { org_id: string; alias_id: string; reason: string },
): Promise<void> {
  return recordActivity(world, tx, { org_id, alias_id, type: "config", outcome: "sent", reason });
}

type Shown = Awaited<ReturnType<typeof queries.listActivity>>[number];

/** An entry as the API shows it; people who were forgotten since, or cannot be read, are null. */
export function showActivity(world: Pick<World, "seal">, orgId: string, row: Shown): ActivityRecord {
  const { id, type, outcome, reason, detail, message_id, size, spf, dkim, dmarc, spam_score, redactions } = row;
  return {
    id,
    type,
    outcome,
    reason,
    detail,
    contact: row.contact_sealed && (tryOpenContact(world, orgId, row.contact_sealed)?.email ?? null),
    destination: row.destination_sealed && tryOpenText(world, orgId, row.destination_sealed),
    message_id,
    size,
    spf,
    dkim,
    dmarc,
    spam_score,
    redactions,
    timestamp: row.at,
  };
}
