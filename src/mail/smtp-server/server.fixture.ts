// A server that keeps what it gets, for the tests of the SMTP server.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { type RawSmtp, rawSmtp } from "../../../test/support/raw-smtp.ts";
import { makeCertificateAuthority } from "../../../test/support/tls.ts";
import { type Reply, reply } from "./reply.ts";
import type { SmtpServerOptions } from "./server.ts";
import type { Client, SessionLimits } from "./session.ts";

export const LIMITS: SessionLimits = {
  command_ms: 5_000,
  command_under_load_ms: 1_000,
  handshake_ms: 5_000,
  data: { pause_ms: 5_000, window_ms: 5_000, rate_bytes_min: 1, total_ms: 20_000, bytes_max: 3_000_000 },
  data_under_load: { pause_ms: 1_000, window_ms: 5_000, rate_bytes_min: 1, total_ms: 20_000, bytes_max: 3_000_000 },
  size_max: 1_000_000,
  recipients_max: 3,
  messages_max: 5,
  commands_max: 60,
  errors_max: 20,
  errors_free: 20,
  tarpit_ms: 0,
};

export type Kept = { from: string; to: string[]; content: Buffer; client: Client };

/** What the server got, and what it is to say to the final dot. */
export type Box = { kept: Kept[]; failures: unknown[]; finish: (() => Promise<Reply>) | null };

/** Options of a server that puts its mail into `box`. */
export function serverOptions(
  box: Box,
  limits: Partial<SessionLimits> = {},
  more: Partial<SmtpServerOptions<string>> = {},
): SmtpServerOptions<string> {
  return {
    host: "127.0.0.1",
    port: 0,
    name: "mx.postern.test",
    limits: { ...LIMITS, ...limits },
    client_limits: { connections_max: 2_000, load_share: 0.5, per_client_max: 50, per_client_minute_max: 10_000 },
    tls: () => testContext(),
    isProxy: () => false,
    isTrusted: () => true,
    now: () => performance.now(),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    onFailure: (error) => box.failures.push(error),
    hooks: {
      rcpt: async (_client, _transaction, path) => ({ kind: "accept", route: path.text }),
      data: async (client, transaction) => {
        const pieces: Buffer[] = [];
        return {
          write: (piece) => {
            pieces.push(piece);
          },
          finish: async () => {
            const answer = await box.finish?.();
            if (answer && answer.code >= 400) return answer;
            const to = transaction.recipients.map(({ route }) => route);
            box.kept.push({ from: transaction.from.text, to, content: Buffer.concat(pieces), client });
            return reply(250, "2.0.0", "kept");
          },
          abort: () => undefined,
        };
      },
    },
    ...more,
  };
}

let context: ReturnType<typeof createSecureContext> | null = null;

function testContext() {
  if (context) return context;
  const dir = mkdtempSync(join(tmpdir(), "postern-smtp-"));
  const { key, cert } = makeCertificateAuthority(dir).issue(["mx.postern.test"]);
  rmSync(dir, { recursive: true });
  context = createSecureContext({ key, cert });
  return context;
}

const open = new Set<RawSmtp>();

/** Connects and reads the greeting. */
export async function greeted(port: number, how = {}): Promise<RawSmtp> {
  const connected = await rawSmtp(port, how);
  open.add(connected);
  assert.equal((await connected.reply()).code, 220);
  return connected;
}

/** Cuts every connection made by `greeted`. */
export function hangUp(): void {
  for (const connected of open) connected.destroy();
  open.clear();
}

/** Sends the lines one by one; the codes of the answers. */
export async function codes(smtp: RawSmtp, lines: readonly string[]): Promise<number[]> {
  const seen: number[] = [];
  for (const line of lines) seen.push((await smtp.ask(line)).code);
  return seen;
}
