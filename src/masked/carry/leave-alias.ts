// A mail that leaves because its owner pressed a button, not because they wrote a reply just now, or somebody wrote to them: a
// reply counts and is noted like one that people write, a forward was counted when its mail came.
import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { enqueueRaw, withLane } from "../../sending/sending.ts";
import type { RawMessage } from "../../sending/types.ts";
import { toActivityRow } from "../activity.ts";
import { type IsWithin, type Over, windowCounterIn } from "../arrive/windows.ts";
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
  /** For a reply: the mailboxes that it was searched for. */
  cleared?: string[];
};

/** `also` commits with it, and false there lets nothing leave; `limits` counts it, and an answer there lets it leave later. */
type Conditions = { also?: (tx: Tx) => Promise<boolean>; limits?: (isWithin: IsWithin) => Promise<Over | null> };

/** Queues it with its entry and its counts. What does not leave was not counted, and nothing of it is kept. */
export async function leaveAlias(
  world: carry.CarryWorld,
  ports: BouncePorts,
  { raw, pressed, also, limits }: { raw: RawMessage; pressed: Pressed } & Conditions,
): Promise<"sent" | "gone" | Over> {
  const mail = await withLane(ports.findLane, raw);
  const fact = factOf(world, pressed, raw);
  const leave = async (tx: Tx) => {
    if (also && !(await also(tx))) return "gone" as const;
    const over = limits ? await limits(windowCounterIn(tx, world)) : null;
    if (over !== null) throw new TooMuch(over);
    await enqueueRaw(tx, [mail]);
    await concludeMails(tx, [fact]);
    return "sent" as const;
  };
  const ended = await withPartitions(world, () => world.db.asOrg(raw.org_id, leave)).catch((error: unknown) => {
    if (error instanceof TooMuch) return error.over;
    throw error;
  });
  if (ended === "sent") ports.notify();
  else if (raw.blob_key !== null) await ports.forgetBlobs(raw.org_id, raw.id);
  return ended;
}

/** Rolls back what was counted and taken. */
class TooMuch extends Error {
  readonly over: Over;

  constructor(over: Over) {
    super("a limit is met");
    this.over = over;
  }
}

function factOf(world: carry.CarryWorld, pressed: Pressed, raw: RawMessage): ConcludedMail {
  const { kind, alias_id, contact_id, owner_id, reason, cleared } = pressed;
  const isReply = kind === "reply";
  const trace = isReply ? { contact_id, owner_id, cleared: cleared ?? null } : { contact_id, destination_id: owner_id };
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
