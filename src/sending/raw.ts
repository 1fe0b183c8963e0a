// Messages that come ready-made, MIME and all: forwards of received mail, notices. They leave through the same queue as
// everything else. No validation here: who makes one vouches for it (reliability rule 13).
import { KEEP_TRYING_MS, type Lane } from "../outbound/outbound.ts";
import type { Tx } from "../platform/db.ts";
import * as queries from "./raw-queries.ts";
import type { RawMessage } from "./types.ts";

export { findHead, findMessageOwner, findSentByMessageId, isBlobOfMessage, type SentMatch } from "./raw-queries.ts";

/**
 * Queues ready-made messages in the caller's transaction; without a lane (test mail) they are only recorded. Run the
 * transaction in `withPartitions`, and wake the engine after the commit.
 */
export async function enqueueRaw(tx: Tx, messages: readonly (RawMessage & { lane: Lane | null })[]): Promise<void> {
  const ordered = [...messages].sort((a, b) => (a.lane?.id ?? 0) - (b.lane?.id ?? 0));
  for (const message of ordered) {
    const status = message.lane ? "queued" : "simulated";
    await queries.insertRawMessage(tx, { ...message, status });
    if (!message.lane) continue;
    const expires_at = new Date(message.created_at.getTime() + KEEP_TRYING_MS);
    await queries.insertRawDelivery(tx, message, { lane_id: message.lane.id, expires_at });
  }
}
