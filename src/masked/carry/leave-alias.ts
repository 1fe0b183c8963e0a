// A mail that leaves from an alias because its owner pressed a button, not because they wrote a reply just now: it counts and
// is noted like a reply that people write.
import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { enqueueRaw, withLane } from "../../sending/sending.ts";
import type { RawMessage } from "../../sending/types.ts";
import { toActivityRow } from "../activity.ts";
import type { BouncePorts } from "../settle/bounces.ts";
import { toRows } from "../settle/traces.ts";
import type * as carry from "./carry.ts";
import { type ConcludedMail, concludeMails } from "./conclude-queries.ts";

export type Pressed = { alias_id: string; contact_id: string; owner_id: string | null; reason: string };

/** Queues it with its entry and its counts; `also` commits with it, and false there lets nothing leave. */
export async function leaveAlias(
  world: carry.CarryWorld,
  ports: BouncePorts,
  { raw, pressed, also }: { raw: RawMessage; pressed: Pressed; also?: (tx: Tx) => Promise<boolean> },
): Promise<boolean> {
  const mail = await withLane(ports.findLane, raw);
  const fact = factOf(world, pressed, raw);
  const isSent = await withPartitions(world, () =>
    world.db.asOrg(raw.org_id, async (tx) => {
      if (also && !(await also(tx))) return false;
      await enqueueRaw(tx, [mail]);
      await concludeMails(tx, [fact]);
      return true;
    }),
  );
  if (isSent) ports.notify();
  return isSent;
}

function factOf(world: carry.CarryWorld, pressed: Pressed, raw: RawMessage): ConcludedMail {
  const { alias_id, contact_id, owner_id, reason } = pressed;
  const { org_id, id, message_id, mime } = raw;
  const entry = { org_id, alias_id, id, contact_id, destination_id: owner_id, message_id: `<${message_id}>`, reason };
  return {
    org_id,
    alias_id,
    at: raw.created_at,
    traces: toRows(world, [{ org_id, id, kind: "reply", alias_id, contact_id, owner_id }], raw.environment),
    ids: [],
    sent: [],
    contact: { id: contact_id, received: 0, sent: 1 },
    entries: [toActivityRow(world, { ...entry, type: "reply", outcome: "sent", size: mime.length })],
    counts: { received: 0, forwarded: 0, replied: 1, blocked: 0 },
  };
}
