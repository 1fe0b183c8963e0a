// A bounce that came back to a rewritten sender (SRS): it goes on to the sender we forwarded for, as a message from
// nobody, so that it can never bounce again (RFC 5321 §4.5.5). The way here was decided at RCPT: signed by us, fresh, and
// with a null reverse-path.
import { stripForged } from "../../mail/auth/strip-forged.ts";
import type { World } from "../../platform/world.ts";
import { keepIfLarge } from "../blobs/blob-references.ts";
import type { ForwardSender, ForwardWorld } from "../process/forward.ts";
import { KEPT } from "../process/outcome.ts";
import { ourReceived } from "../process/stored-copy.ts";
import type { Handler, Mail, RouteOf } from "../types.ts";

export type RelayPorts = { findSender(orgId: string, domain: string): Promise<ForwardSender | undefined> };

/** The handler of bounces to rewritten senders. */
export function relayBounce(world: ForwardWorld & Pick<World, "config">, ports: RelayPorts): Handler {
  return async (given) => {
    const mail = given as Mail & { route: RouteOf<"srs"> };
    const sender = await ports.findSender(mail.org_id, mail.route.domain);
    if (!sender) return { ...KEPT, status: "failed", reason: "the domain was removed" };
    const bytes = await mail.examination.bytes();
    const mime = Buffer.concat([Buffer.from(ourReceived(world, mail)), stripForged(bytes, world.config.mx_host)]);
    const id = world.random.uuid();
    const blob_key = await keepIfLarge(world, { org_id: mail.org_id, owner_id: id }, mime);
    const message = {
      org_id: mail.org_id,
      id,
      environment: mail.environment,
      domain_id: sender.id,
      origin: "forward" as const,
      message_id: `${id}@${mail.route.domain}`,
      from_address: "",
      from_header: "",
      subject: "",
      metadata: { inbound_id: mail.id },
      recipient: mail.route.sender,
      envelope_from: "",
      return_path_host: sender.return_path_host,
      mime,
      blob_key,
      created_at: new Date(world.clock.now()),
    };
    return { ...KEPT, forwards: [message] };
  };
}
