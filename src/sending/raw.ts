// Messages that come ready-made, MIME and all: forwards of received mail, notices. They leave through the same queue as
// everything else. No validation here: who makes one vouches for it (reliability rule 13).
import { domainOf } from "../mail/address.ts";
import {
  CLASS_TRANSACTIONAL,
  DEFAULT_SOURCE_ID,
  type FindLane,
  type Lane,
  lanesInPlace,
} from "../outbound/outbound.ts";
import type { Tx } from "../platform/database/db.ts";
import { acceptMessages } from "./accept/accept-queries.ts";
import { expiryOf, type HandOver, type Laned, type Queued } from "./hand-over.ts";
import type { RawMessage } from "./types.ts";

export { findBlobOwner, findHead, findLarge, findMessageOwner, findSentByMessageId } from "./raw-queries.ts";

/** The message with the lane it leaves by; test mail, which is only recorded, has none. */
export async function withLane(findLane: FindLane, message: RawMessage): Promise<Laned> {
  const { org_id, recipient, environment } = message;
  if (environment === "test") return { ...message, lane: null };
  const domain = domainOf(recipient);
  const wanted = { org_id, source_id: DEFAULT_SOURCE_ID, domain, class: CLASS_TRANSACTIONAL };
  return { ...message, lane: await findLane(wanted) };
}

/**
 * Queues ready-made messages in the caller's transaction, all in one statement; without a lane (test mail) they are only
 * recorded. Run the transaction in `withPartitions`, and after the commit wake the engine, or settle `going` with the answer.
 */
export async function enqueueRaw(tx: Tx, given: readonly Laned[], going?: HandOver): Promise<Queued[]> {
  if (given.length === 0) return [];
  const messages = await withLanes(tx, given, going);
  await acceptMessages(tx, {
    messages: messages.map(messageColumns),
    bodies: messages.map(({ org_id, id, mime, blob_key }) => ({
      org_id,
      id,
      mime: blob_key === null ? mime : null,
      blob_key,
    })),
    recipients: messages.map(recipientColumns),
    deliveries: messages.filter(({ lane }) => lane !== null).map(deliveryColumns),
    allowances: [],
    idempotency: [],
    suppressed: [],
  });
  return messages;
}

function messageColumns(message: Laned): Record<string, unknown> {
  return {
    ...message,
    reply_to: "[]",
    tags: "[]",
    metadata: JSON.stringify(message.metadata),
    class: CLASS_TRANSACTIONAL,
    status: statusOf(message),
    size: message.mime.length,
    recipient_count: 1,
    require_tls: false,
    completed_at: message.lane ? null : message.created_at,
  };
}

function recipientColumns(message: Laned): Record<string, unknown> {
  return {
    org_id: message.org_id,
    message_id: message.id,
    position: 0,
    email: message.recipient,
    kind: "to",
    status: statusOf(message),
    next_attempt_at: message.lane ? message.created_at : null,
  };
}

/** With lanes that are there: one may have been dropped since it was looked up, and with it the room that was reserved. */
async function withLanes(tx: Tx, messages: readonly Laned[], going: HandOver | undefined): Promise<Queued[]> {
  const lanes = messages.flatMap(({ lane }) => lane ?? []);
  if (lanes.length === 0) return messages.map((message) => ({ ...message, owner: null }));
  const held = await lanesInPlace(tx, lanes, (messages[0] as Laned).created_at);
  return messages.map((message) => {
    const lane = message.lane && (held.get(message.lane.id) as Lane);
    const owner = lane?.id === message.lane?.id ? (going?.ownerOf(message) ?? null) : null;
    return { ...message, lane, owner };
  });
}

function deliveryColumns(message: Queued): Record<string, unknown> {
  const { org_id, id, lane, owner, recipient, created_at, return_path_host } = message;
  return {
    org_id,
    message_id: id,
    position: 0,
    lane_id: lane?.id,
    email: recipient,
    due_at: created_at,
    created_at,
    expires_at: expiryOf(message),
    owner,
    return_path_host,
  };
}

function statusOf({ lane }: Laned): string {
  return lane ? "queued" : "simulated";
}
