// Ready-made messages that the process which queues them also sends, as accept.ts does with those of the API: no claim and no read
// back. What it may not send itself, or has no room for, is queued and claimed later.
import type { Job, Lane, Outbound } from "../outbound/outbound.ts";
import { KEEP_TRYING_MS } from "../outbound/outbound.ts";
import type { RawMessage } from "./types.ts";

/** A message with the lane it leaves by; test mail, which is only recorded, has none. */
export type Laned = RawMessage & { lane: Lane | null };

/** As it is written: `owner` is the node that sends it at once, null where it is claimed later. */
export type Queued = Laned & { owner: number | null };

export type HandOver = {
  /** The node to write a message under. */
  ownerOf(message: Laned): number | null;
  /**
   * After the commit, with all that it wrote; or after it failed, with nothing: messages of this node go on from memory, and what
   * was not written gives its room back. True when others were written, which an engine must look for. Once.
   */
  settle(queued: readonly Queued[]): boolean;
};

/** Reserves room for messages that one transaction is about to write. `outbound`: this process's engine, if it has one. */
export function handOver(outbound: Outbound | null, messages: readonly Laned[]): HandOver {
  const owners = new Map<string, number>();
  for (const { id, lane, mime } of messages) {
    const owner = lane === null ? null : (outbound?.reserve(lane, mime.length) ?? null);
    if (owner !== null) owners.set(id, owner);
  }
  return {
    ownerOf: ({ id }) => owners.get(id) ?? null,
    settle(queued) {
      const ours = new Set(queued.flatMap(({ id, owner }) => (owner === null ? [] : id)));
      for (const message of messages) {
        const owner = owners.get(message.id);
        if (owner === undefined) continue;
        const lane = message.lane as Lane;
        if (ours.has(message.id)) outbound?.offer(lane, toJob(message, lane, owner));
        else outbound?.release(lane, message.mime.length);
      }
      return queued.some(({ lane, owner }) => lane !== null && owner === null);
    },
  };
}

/** Until when it is tried. */
export function expiryOf({ created_at }: RawMessage): Date {
  return new Date(created_at.getTime() + KEEP_TRYING_MS);
}

function toJob(message: RawMessage, lane: Lane, owner: number): Job {
  const { org_id, id, created_at, return_path_host, mime } = message;
  return {
    ...{ owner, org_id, message_id: id, position: 0, lane_id: lane.id, email: message.recipient, attempts: 0 },
    ...{ created_at, expires_at: expiryOf(message), return_path_host, mime },
    ...{ deferred_event_at: null, absent_since: null, charged_at: null },
    about: {
      domain_id: message.domain_id,
      rfc_message_id: message.message_id,
      from_address: message.from_address,
      subject: message.subject,
      tags: [],
      metadata: message.metadata,
      size: mime.length,
      recipient_count: 1,
      require_tls: false,
      has_expiry: false,
      environment: message.environment,
      blob_key: message.blob_key,
      template_id: null,
      unsubscribe_list: null,
      origin: message.origin,
      envelope_from: message.envelope_from,
    },
  };
}
