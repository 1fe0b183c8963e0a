// The stored copy of a received mail, as people get it and as it is sent on: our trace fields and verdicts in front,
// forged headers in our name taken out, everything else byte for byte.
import { stripForged } from "../../mail/auth/strip-forged.ts";
import { spamFields, withoutSpamFields } from "../../mail/spam/spam-fields.ts";
import { receivedField, returnPathField } from "../../mail/trace.ts";
import type { World } from "../../platform/world.ts";
import type { Mail, SpamReport } from "../types.ts";

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

/** The copy with Return-Path, Authentication-Results (null before processing), the judgement on spam and Received. */
export function storedCopy(
  world: Pick<World, "config">,
  mail: CopyOf,
  parts: { bytes: Buffer; authentication_results: string | null; spam: SpamReport | null },
): Buffer {
  const { authentication_results, spam } = parts;
  const judged = spam === null ? "" : spamFields(spam);
  const head = returnPathField(mail.envelope.from) + (authentication_results ?? "") + judged + ourReceived(world, mail);
  const own = stripForged(parts.bytes, world.config.mx_host);
  return Buffer.concat([Buffer.from(head), judged === "" ? own : withoutSpamFields(own)]);
}
