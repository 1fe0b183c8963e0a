// The complaint of a simulated recipient (mail/simulated.ts): what a feedback report of its provider would lead to.
import type { Tx } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import { type DeliveryKey, type LateComplaint, recordLateReport } from "./late-reports.ts";

const COMPLAINT: LateComplaint = {
  kind: "complained",
  feedback_type: "abuse",
  source_ip: null,
  arrival_date: null,
  reporter: "the simulator",
};

/** Records it in the transaction that records the arrival of the mail: neither is ever without the other. */
export function complainSimulated(world: Pick<World, "clock" | "random">) {
  return (tx: Tx, { org_id, message_id, position }: DeliveryKey) =>
    recordLateReport(tx, world, { org_id, message_id, position }, COMPLAINT);
}
