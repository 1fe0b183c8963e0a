// A mail that leaves because its owner pressed a button, not because they wrote a reply just now, or somebody wrote to them: a
// reply counts and is noted like one that people write, a forward was counted when its mail came.
import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { enqueueRaw, withLane } from "../../sending/sending.ts";
import type { RawMessage } from "../../sending/types.ts";
import { toActivityRow } from "../activity.ts";
import type { BouncePorts } from "../settle/ports.ts";
import { toRows } from "../settle/traces.ts";
import type * as carry from "./carry.ts";
import { type ConcludedMail, concludeMails } from "./conclude-queries.ts";

/** `owner_id`: the mailbox that wrote the reply, or that the forward is for. */
export type Pressed = {
  kind: "reply" | "forward";
  alias_id: string;
  contact_id: string;
  owner_id: string | null;
  reason: string;
};

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
  const { kind, alias_id, contact_id, owner_id, reason } = pressed;
  const isReply = kind === "reply";
  const trace = isReply ? { contact_id, owner_id } : { contact_id, destination_id: owner_id };
  const { org_id, id, message_id, mime } = raw;
  const entry = { org_id, alias_id, id, contact_id, destination_id: owner_id, message_id: `<${message_id}>`, reason };
  return {
    org_id,
    alias_id,
    at: raw.created_at,
    traces: toRows(world, [{ org_id, id, kind, alias_id, ...trace }], raw.environment),
    ids: [],
    sent: [],
    contact: isReply ? { id: contact_id, received: 0, sent: 1 } : null,
    entries: [toActivityRow(world, { ...entry, type: kind, outcome: "sent", size: mime.length })],
    counts: { received: 0, forwarded: 0, replied: isReply ? 1 : 0, blocked: 0 },
  };
}
