// Hard or soft, by class, and nothing else: live replies and reports are judged by this table. Whether anybody is
// suppressed asks for more than a class (classify.ts, dsn/weigh.ts).

export type ReplyClass =
  | "invalid_recipient"
  | "bad_domain"
  | "inactive_mailbox"
  | "routing"
  | "mailbox_full"
  | "too_large"
  | "busy"
  | "connection"
  | "dns"
  | "greylisted"
  | "rate_limited"
  | "blocked"
  | "content"
  | "auth"
  | "expired";

/** `soft_when`: the one case in which a hard class is soft, and why. */
type Row = { type: "hard" | "soft"; soft_when?: string };

const TEMPORARY = "the code is 4xx or the report is a warning: the server says itself that it may pass";

export const BOUNCE_TYPES: Readonly<Record<ReplyClass, Row>> = {
  invalid_recipient: { type: "hard", soft_when: TEMPORARY },
  bad_domain: { type: "hard", soft_when: TEMPORARY },
  inactive_mailbox: { type: "hard", soft_when: TEMPORARY },
  routing: { type: "hard", soft_when: TEMPORARY },
  mailbox_full: { type: "soft" },
  too_large: { type: "soft" },
  busy: { type: "soft" },
  connection: { type: "soft" },
  dns: { type: "soft" },
  greylisted: { type: "soft" },
  rate_limited: { type: "soft" },
  blocked: { type: "soft" },
  content: { type: "soft" },
  auth: { type: "soft" },
  expired: { type: "soft" },
};

/** The type of a class. `isPermanent`: a 5xx that ended the delivery. */
export function bounceType(mailClass: ReplyClass, isPermanent: boolean): "hard" | "soft" {
  return isPermanent ? BOUNCE_TYPES[mailClass].type : "soft";
}
