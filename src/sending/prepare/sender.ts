// Who may be the sender: domains of the organization that are ready, for every way mail comes in.
import { Refusal } from "../../platform/refusal.ts";
import type { Sender, SendingDeps } from "../types.ts";

/** The sender's domain if it may send now; 403 `domain_not_owned` or `domain_not_ready` naming `from`. */
export async function readySender(
  deps: Pick<SendingDeps, "findSender">,
  orgId: string,
  domain: string,
): Promise<Sender> {
  const sender = await deps.findSender(orgId, domain);
  if (!sender) {
    throw new Refusal("domain_not_owned", `the sender's domain ${domain} is not one of your domains`, {
      field: "from",
    });
  }
  if (!sender.ready) {
    const why = sender.not_ready_reason ?? "it is not verified";
    throw new Refusal("domain_not_ready", `the sender's domain ${domain} cannot send yet: ${why}`, { field: "from" });
  }
  return sender;
}
