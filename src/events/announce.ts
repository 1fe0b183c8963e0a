// From an event to what the outside hears: the payloads of email.delivered, email.bounced, email.deferred and
// email.complained, field by field as the contract has them. Pure.
import type { OutgoingEvent } from "../webhooks/types.ts";
import { isSentByCustomer } from "./origins.ts";
import type { MailEvent } from "./types.ts";

/**
 * The webhook event that `event` becomes, or null when it stays in the timeline. Test mail announces nothing, nor does
 * what nobody sent with a key: the contract's outbound events are for live-key sends only.
 */
export function toOutgoing(event: MailEvent): OutgoingEvent | null {
  const name = nameOf(event);
  if (name === null || event.about.environment === "test" || event.recipient === null) return null;
  if (!isSentByCustomer(event.about)) return null;
  return {
    org_id: event.org_id,
    event_id: event.id,
    event: name,
    domain_id: event.about.domain_id,
    recipient: event.recipient,
    at: event.at,
    payload: {
      email_id: event.message_id,
      message_id: event.about.rfc_message_id,
      environment: event.about.environment,
      tags: event.about.tags,
      metadata: event.about.metadata,
      from: event.about.from_address,
      recipient: event.recipient,
      subject: event.about.subject,
      ...particulars(event),
    },
  };
}

/**
 * Mail that ran out of time or never found a server (`expired`, `failed`) is announced as a soft bounce: the contract
 * has no other event that tells the customer that a message did not arrive.
 */
function nameOf({ event_type, announces }: MailEvent): OutgoingEvent["event"] | null {
  switch (event_type) {
    case "delivered":
      return "email.delivered";
    case "bounced":
    case "failed":
    case "expired":
      return "email.bounced";
    case "deferred":
    case "ambiguous":
      return announces ? "email.deferred" : null;
    case "complained":
      return "email.complained";
    default:
      return null;
  }
}

function particulars(event: MailEvent): Record<string, unknown> {
  const answer = { bounce_code: event.smtp_code, diag_code: event.enhanced_code, diag_message: event.message };
  switch (nameOf(event)) {
    case "email.bounced":
      return { bounce_type: event.bounce_type ?? "soft", ...answer, bounce_class: event.class };
    case "email.deferred":
      return { ...answer, attempt: event.attempt, next_attempt_at: event.next_attempt_at?.toISOString() ?? null };
    case "email.complained":
      return {
        feedback_type: event.complaint?.feedback_type ?? "abuse",
        source_ip: event.complaint?.source_ip ?? null,
        arrival_date: event.complaint?.arrival_date ?? null,
      };
    default:
      return {};
  }
}
