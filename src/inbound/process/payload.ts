// The `email.received` payload, as the OpenAPI description has it: what was found about a mail, as customers get it. Every field is there, null where there is no value.
import { formatMailbox, quote } from "../../mail/address.ts";
import type { ParsedAddress } from "../../mail/mime/parse-addresses.ts";
import type { ParsedMail } from "../../mail/mime/parsed-mail.ts";
import type { World } from "../../platform/world.ts";
import type { OutgoingEvent } from "../../webhooks/types.ts";
import type { AuthSummary, Findings, Found, Mail, SenderVerdicts, StoredAttachment } from "../types.ts";

/** text and html above this are cut in the event; the record holds all. */
const BODY_BYTES_MAX = 1024 * 1024;

/** The contract's three verdicts. */
export function summarizeAuth({ spf, dkim, dmarc }: SenderVerdicts): AuthSummary {
  return {
    dkim: {
      result: dkim.result,
      domain: dkim.domain,
      selector: dkim.selector,
      passed_domains: dkim.passed_domains,
      from_aligned: dkim.from_aligned,
    },
    spf: { result: spf.result, domain: spf.domain || null, from_aligned: spf.from_aligned },
    dmarc: {
      result: dmarc.result,
      from_domain: dmarc.from_domain,
      dkim_aligned: dmarc.dkim_aligned,
      spf_aligned: dmarc.spf_aligned,
    },
  };
}

/** Mailboxes as people write them; what has no address at all is left out, unless it is all there is. */
export function showMailboxes(addresses: readonly ParsedAddress[]): string[] {
  return addresses.flatMap(({ name, email }) => {
    // In quotes where it would read as an address, which DMARC has not judged.
    if (email === null) return name ? [wellFormed(/[<>@]/.test(name) ? quote(name) : name)] : [];
    return [wellFormed(formatMailbox({ name, email }))];
  });
}

/** The From field on one line; null when there is none. */
export function showFrom(from: readonly ParsedAddress[]): string | null {
  return showMailboxes(from).join(", ") || null;
}

/** PostgreSQL takes neither NUL nor lone surrogates; nor should a receiver have to. */
export function wellFormed(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}

export type Content = { text: string | null; html: string | null; headers: ParsedMail["headers"] };

/**
 * What a record and an event of this mail have in common. `truncated`: past a limit of the parser parts or fields were left
 * out, or nothing could be read; the raw message has all.
 */
export function describeMail(world: Pick<World, "config">, mail: Mail, described: Described) {
  const { found, findings, content } = described;
  const { origin, envelope } = mail;
  return {
    email_id: mail.id,
    message_id: found.message_id,
    environment: mail.environment,
    from: found.from_address,
    to: mail.recipient,
    cc: findings.cc,
    reply_to: findings.reply_to,
    date: findings.date,
    subject: found.subject,
    text: content.text,
    html: content.html,
    headers: content.headers,
    attachments: findings.attachments.map((attachment) => showAttachment(world, mail.id, attachment)),
    spf: findings.auth.spf.result,
    dkim: findings.auth.dkim.result,
    ...(described.shows_auth ? { auth_results: findings.auth } : {}),
    envelope: {
      from: envelope.from,
      to: mail.recipient,
      remote_ip: origin.remote_ip,
      helo: origin.helo,
      tls: origin.tls !== null,
    },
    thread: {
      id: found.thread_id,
      in_reply_to: findings.in_reply_to,
      references: findings.references,
      matched_email_id: found.matched_email_id,
    },
    spam: findings.spam,
    auto_submitted: findings.auto_submitted,
    recipient_tag: mail.route.tag,
    domain_id: mail.route.domain_id,
    alias_id: mail.route.alias_id,
    raw_url: `${world.config.base_url}/v1/inbound-emails/${mail.id}/raw`,
    size: mail.size,
    truncated: findings.defects.some((defect) => /^(?:too_many_parts|head_too_large|not_parsed\b)/.test(defect)),
  };
}

export type Described = { found: Found; findings: Findings; content: Content; shows_auth: boolean };

function showAttachment(world: Pick<World, "config">, emailId: string, attachment: StoredAttachment) {
  const { id, filename, content_type, size, content_id, disposition } = attachment;
  const url = `${world.config.base_url}/v1/inbound-emails/${emailId}/attachments/${id}/download`;
  return { id, filename, content_type, size, url, content_id, disposition };
}

/** The event of a mail for these endpoints. */
export function receivedEvent(
  world: Pick<World, "config" | "random" | "clock">,
  mail: Mail,
  described: Described,
  endpointIds: string[],
): OutgoingEvent {
  const text = cut(described.content.text);
  const html = cut(described.content.html);
  const content = { ...described.content, text: text.text, html: html.text };
  const payload = describeMail(world, mail, { ...described, content });
  return {
    org_id: mail.org_id,
    event_id: world.random.uuid(),
    event: "email.received",
    domain_id: mail.route.domain_id,
    recipient: mail.recipient,
    at: new Date(world.clock.now()),
    payload: { ...payload, truncated: payload.truncated || text.isCut || html.isCut },
    endpoint_ids: endpointIds,
  };
}

/** At most 1 MiB of UTF-8, cut between characters. */
function cut(text: string | null): { text: string | null; isCut: boolean } {
  if (text === null || text.length * 3 <= BODY_BYTES_MAX) return { text, isCut: false };
  const bytes = Buffer.from(text);
  if (bytes.length <= BODY_BYTES_MAX) return { text, isCut: false };
  let end = BODY_BYTES_MAX;
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end -= 1;
  return { text: bytes.toString("utf8", 0, end), isCut: true };
}
