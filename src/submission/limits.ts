// The limits of submission, as data with their reasons.
import type { ClientLimits } from "../mail/smtp-server/client-limits.ts";
import type { SessionLimits } from "../mail/smtp-server/session.ts";

const MIB = 1024 * 1024;

/** As for the API: the whole message. */
const MESSAGE_BYTES_MAX = 25 * MIB;

export const SESSION: SessionLimits = {
  // RFC 5321 §4.5.3.2.7; programs keep connections open between two messages.
  command_ms: 300_000,
  command_under_load_ms: 30_000,
  handshake_ms: 30_000,
  data: {
    pause_ms: 180_000, // RFC 5321 §4.5.3.2.5, data block
    window_ms: 60_000,
    rate_bytes_min: 30_000,
    total_ms: 1_800_000,
    bytes_max: MESSAGE_BYTES_MAX + 25 * MIB,
  },
  data_under_load: {
    pause_ms: 30_000,
    window_ms: 30_000,
    rate_bytes_min: 30_000,
    total_ms: 600_000,
    bytes_max: MESSAGE_BYTES_MAX + 5 * MIB,
  },
  size_max: MESSAGE_BYTES_MAX,
  recipients_max: 50, // as for the API
  messages_max: 10_000, // a program's connection pool may stay for hours
  commands_max: 300,
  errors_max: 100, // refused mail of a program that knows no better; guessing of keys is limited by client
  errors_free: 10,
  tarpit_ms: 1_000,
};

export const CLIENTS: ClientLimits = {
  connections_max: 1_000,
  load_share: 0.5,
  per_client_max: 100, // a customer's machine with a large connection pool
  per_client_minute_max: 1_200,
};

/**
 * Wrong logins of one client that are answered at once: five, then one every twelve seconds; the others wait. Keys are 190
 * bits, so nobody guesses one: this is about the noise, and a right key is never slowed.
 */
export const FAILED_LOGINS = { per_s: 5 / 60, burst: 5, names_max: 100_000 };

/** How long a wrong login waits beyond those. */
export const SLOW_LOGIN_MS = 5_000;
