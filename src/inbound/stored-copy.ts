// The stored copy of a received mail, as people get it and as it is sent on: our trace fields and verdicts in front,
// forged ones of ours taken out, everything else byte for byte.
import { stripForged } from "../mail/auth/strip-forged.ts";
import { receivedField, returnPathField } from "../mail/trace.ts";
import type { World } from "../platform/world.ts";
import type { Mail } from "./types.ts";

export type CopyOf = Pick<Mail, "raw_id" | "origin" | "envelope" | "recipient" | "received_at">;

/** The Received field of the hop to us. */
export function ourReceived(world: Pick<World, "config">, mail: CopyOf): string {
  const { origin } = mail;
  return receivedField({
    helo: origin.helo,
    ip: origin.remote_ip,
    by: world.config.mx_host,
    protocol: origin.protocol,
    tls: origin.tls,
    id: mail.raw_id,
    recipient: mail.recipient,
    at_ms: mail.received_at.getTime(),
  });
}

/** The copy with Return-Path, Authentication-Results (null before processing) and Received. */
export function storedCopy(
  world: Pick<World, "config">,
  mail: CopyOf,
  parts: { bytes: Buffer; authentication_results: string | null },
): Buffer {
  const head = returnPathField(mail.envelope.from) + (parts.authentication_results ?? "") + ourReceived(world, mail);
  return Buffer.concat([Buffer.from(head), stripForged(parts.bytes, world.config.mx_host)]);
}
