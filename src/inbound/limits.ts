// The limits of receiving, as data with their reasons.
import type { ClientLimits } from "../mail/smtp-server/client-limits.ts";
import type { SessionLimits } from "../mail/smtp-server/session.ts";
import { EXPIRY_MS_MAX } from "../sending/sending.ts";

const MIB = 1024 * 1024;

/** The contract: larger messages are refused with 552. */
export const MESSAGE_BYTES_MAX = 35 * MIB;

export const SESSION: SessionLimits = {
  // RFC 5321 §4.5.3.2.7 wants five minutes; a server short of connections cannot afford them (Postfix: 10 s as well).
  command_ms: 300_000,
  command_under_load_ms: 10_000,
  handshake_ms: 30_000,
  data: {
    pause_ms: 180_000, // RFC 5321 §4.5.3.2.5, data block
    window_ms: 60_000,
    rate_bytes_min: 30_000, // 500 bytes a second: a modem of 1990 was faster
    total_ms: 3_600_000,
    bytes_max: MESSAGE_BYTES_MAX + 35 * MIB,
  },
  data_under_load: {
    pause_ms: 20_000,
    window_ms: 20_000,
    rate_bytes_min: 20_000,
    total_ms: 600_000,
    bytes_max: MESSAGE_BYTES_MAX + 5 * MIB,
  },
  size_max: MESSAGE_BYTES_MAX,
  recipients_max: 100, // RFC 5321 §4.5.3.1.8: at least
  messages_max: 1_000,
  commands_max: 300,
  errors_max: 20,
  errors_free: 5, // a harvester of addresses gets five answers at once, then one a second
  tarpit_ms: 1_000,
};

export const CLIENTS: ClientLimits = {
  connections_max: 2_000,
  load_share: 0.5,
  per_client_max: 50, // Postfix's default; large senders stay below 20
  per_client_minute_max: 600,
};

/** RFC 5321 §6.3 speaks of at least 100 hops; real paths have under 15, and ours is the end of one. */
export const RECEIVED_FIELDS_MAX = 30;

/** A bounce comes within the five days that servers try, and some; older ones are replays. */
export const RETURN_PATH_AGE_MS_MAX = 10 * 86_400_000;

/** People read late, and providers gather complaints; what is older is no news about a list. */
export const FEEDBACK_AGE_MS_MAX = 60 * 86_400_000;

/** From a message's id to its delivery: the longest schedule and the longest retry, and a day. */
export const UNTIL_DELIVERED_MS_MAX = EXPIRY_MS_MAX + 86_400_000;

/** Large messages that are worked on at once, in bytes; others wait for their turn. */
export const LARGE_BYTES_MAX = 96 * MIB;
