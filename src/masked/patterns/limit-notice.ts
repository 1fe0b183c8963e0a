// Mail to the mailbox of a pattern that met one of its limits: once a day for each pattern.
import { withPartitions } from "../../platform/database/partitions.ts";
import { enqueueRaw, withLane } from "../../sending/sending.ts";
import { isFree, windowCounterIn } from "../arrive/windows.ts";
import type { CarryPorts, CarryWorld } from "../carry/carry.ts";
import { toOwner } from "../settle/notices.ts";
import { insertTraces } from "../settle/traces.ts";
import type { Environment, MaskedPorts } from "../types.ts";
import { type FoundPattern, textOf } from "./find-patterns.ts";

export type NoticePorts = CarryPorts & MaskedPorts;

/** Queues the notice, unless there was one today. */
export async function tellLimit(
  world: CarryWorld,
  ports: NoticePorts,
  pattern: FoundPattern,
  environment: Environment,
): Promise<void> {
  const { org_id, domain, aliases_hour, aliases_day } = pattern;
  if (!(await isFree(world, pattern, "pattern_notice_day"))) return;
  const { id: domain_id = null } = (await ports.findSender(org_id, domain)) ?? {};
  if (domain_id === null) return;
  const text = textOf(pattern);
  const raw = await toOwner(
    world,
    ports,
    { org_id, domain, domain_id, environment: pattern.environment },
    {
      to: pattern.destination.email,
      environment,
      about_id: null,
      subject: `Your pattern ${text} met a limit`,
      paragraphs: [
        `Mail came to more new addresses of ${text} than it may make: ${aliases_hour} an hour and ${aliases_day} a day, 10 an hour for mail from one network, and as many in all as the setting pattern_aliases says.`,
        "That mail is deferred (450): its servers try again later. The addresses that are there already work, but for the network that met the limit, which waits until the hour is over.",
        "If you did not give out so many addresses, somebody is trying made-up ones: you can remove the pattern, and its aliases stay. There is one such notice a day for each pattern.",
      ],
      failure: null,
    },
  );
  const laned = await withLane(ports.findLane, raw);
  const isQueued = await withPartitions(world, () =>
    world.db.asOrg(org_id, async (tx) => {
      if (!(await windowCounterIn(tx, world)(pattern, "pattern_notice_day"))) return false;
      await enqueueRaw(tx, [laned]);
      await insertTraces(world, tx, [{ org_id, id: laned.id, kind: "notice" }]);
      return true;
    }),
  );
  if (isQueued) ports.notify();
}
