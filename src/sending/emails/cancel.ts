// Canceling mail that was accepted, before its first attempt. Sending it again: retry.ts.
import type { Account } from "../../http/http.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import type { SendingDeps } from "../types.ts";
import { recordChange } from "./change-events.ts";
import { type EmailView, lockRow, requireRow, reread } from "./emails.ts";

type CancelWorld = Pick<World, "db" | "clock" | "random">;

export type CancelDeps = Pick<SendingDeps, "outbound">;

/** Cancels what was not attempted yet; 409 once an attempt was made or is under way. */
export async function cancelEmail(
  world: CancelWorld,
  { outbound }: CancelDeps,
  account: Account,
  id: string,
): Promise<EmailView> {
  const engine = outbound();
  // What waits for its turn in the memory of this process was not attempted either.
  if (engine) {
    const row = await world.db.asOrg(account.org_id, (tx) => requireRow(tx, account.org_id, id));
    await engine.withdraw(account.org_id, row.id);
  }
  return withPartitions(world, () => cancelOnce(world, account.org_id, id));
}

async function cancelOnce(world: CancelWorld, orgId: string, id: string): Promise<EmailView> {
  return world.db.asOrg(orgId, async (tx) => {
    const row = await lockRow(tx, orgId, id);
    const recipients = await queries.listRecipients(tx, orgId, [row.id]);
    const open = recipients.filter(isOpen);
    const removed = await queries.removeUnattempted(tx, orgId, row.id);
    if (open.length === 0 || removed.length < open.length || recipients.some(({ attempts }) => attempts > 0)) {
      const only = "only mail that was not attempted can be canceled";
      throw new Refusal("invalid_state", `this e-mail is ${row.status}; ${only}`);
    }
    const positions = removed.map(({ position }) => position);
    const at = new Date(world.clock.now());
    await queries.setRecipients(tx, orgId, row.id, { positions, status: "canceled", next_attempt_at: null });
    await queries.setStatus(tx, orgId, row.id, { status: "canceled", completed_at: at });
    await recordChange(tx, world, { org_id: orgId, row, recipients: open, type: "canceled" });
    return reread(tx, orgId, row.id);
  });
}

/** Deferred without an attempt (its domain's warming, a domain that was switched off) is open as well. */
function isOpen({ status, attempts }: queries.RecipientRow): boolean {
  return status === "queued" || status === "scheduled" || (status === "deferred" && attempts === 0);
}
