// The timeline entries of what people do to mail that was accepted: no attempt is made, and no webhook hears of them.
import { type MailEvent, recordEvents } from "../../events/events.ts";
import type { Tx } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import type { EmailRow, RecipientRow } from "../queries.ts";

export type Change = {
  org_id: string;
  row: EmailRow;
  recipients: Pick<RecipientRow, "email">[];
  type: "canceled" | "retried" | "suppressed";
  origin?: string;
};

/** Records one event for each recipient of the change. Run the transaction in `withPartitions`. */
export function recordChange(tx: Tx, world: Pick<World, "clock" | "random">, change: Change): Promise<void> {
  return recordEvents(
    tx,
    world,
    change.recipients.map(({ email }) => toEvent(world, change, email)),
  );
}

function toEvent(world: Pick<World, "clock" | "random">, { org_id, row, type, origin }: Change, email: string) {
  const event: MailEvent = {
    org_id,
    id: world.random.uuid(),
    event_type: type,
    message_id: row.id,
    recipient: email,
    at: new Date(world.clock.now()),
    attempt: null,
    smtp_code: null,
    enhanced_code: null,
    message: null,
    mx_host: null,
    mx_ip: null,
    source_ip: null,
    tls: null,
    duration_ms: null,
    class: null,
    isp: null,
    bounce_type: null,
    suppress: false,
    next_attempt_at: null,
    announces: false,
    about: {
      domain_id: row.domain_id,
      rfc_message_id: row.message_id,
      from_address: row.from,
      subject: row.subject,
      tags: row.tags,
      metadata: row.metadata,
      environment: row.environment,
      ...(origin === undefined ? {} : { origin }),
    },
  };
  return event;
}
