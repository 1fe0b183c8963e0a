// What the API says in HTTP, in SMTP (RFC 5321 §4.2, RFC 3463): the same refusals for the same reasons.
import { type Reply, reply } from "../mail/smtp-server/reply.ts";
import type { Refusal } from "../platform/refusal.ts";

/** The reply to a refused message or sender. 4yz means that the same message may go later. */
export function toReply(refusal: Refusal): Reply {
  const { kind, message } = refusal;
  switch (kind) {
    case "rate_limit_exceeded":
      return overLimit(refusal);
    case "all_recipients_suppressed":
      return reply(550, "5.7.1", `all recipients are suppressed: ${suppressed(refusal)}`);
    case "payload_too_large":
      return reply(552, "5.3.4", message);
    case "domain_not_owned":
    case "domain_not_ready":
    case "plan_limit_reached":
    case "organization_in_review":
    case "organization_suspended":
    case "test_key_not_allowed":
      return reply(550, "5.7.1", message);
    case "unavailable":
      return reply(451, "4.3.0", message);
    default:
      return reply(554, "5.6.0", message);
  }
}

const SOON = new Set(["per_minute", "hourly", "requests_per_second"]);

function overLimit({ message, detail }: Refusal): Reply {
  const waitS = Math.max(1, Math.ceil(detail.retry_after_seconds ?? 1));
  const code = SOON.has(String(detail.body?.limit_type)) ? 450 : 452;
  return reply(code, "4.7.1", `${message}; try again in ${waitS} seconds`);
}

function suppressed({ detail }: Refusal): string {
  const entries = (detail.body?.suppressed ?? []) as { email: string; reason: string }[];
  const shown = entries.slice(0, 5).map(({ email, reason }) => `${email} (${reason})`);
  return shown.join(", ") + (entries.length > shown.length ? ` and ${entries.length - shown.length} more` : "");
}
