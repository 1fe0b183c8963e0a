// A domain as the API shows it: its record, with how much it may send while mailbox providers get to know it. That is the
// warming feature's, which comes in through `DomainPorts`.
import type { World } from "../platform/world.ts";
import type { DomainRecord } from "./domains.ts";
import type { DomainPorts, DomainWarming } from "./types.ts";

export type ShownDomain<R extends DomainRecord = DomainRecord> = R & { warming: DomainWarming | null };

/** The records with their limits; null for a domain that never began. */
export async function showDomains<R extends DomainRecord>(
  world: Pick<World, "db">,
  ports: Pick<DomainPorts, "warmingOf">,
  orgId: string,
  records: R[],
): Promise<ShownDomain<R>[]> {
  const ids = records.map(({ id }) => id);
  const known = ids.length === 0 ? new Map() : await world.db.asOrg(orgId, (tx) => ports.warmingOf(tx, orgId, ids));
  return records.map((record) => ({ ...record, warming: known.get(record.id) ?? null }));
}

export async function showDomain<R extends DomainRecord>(
  world: Pick<World, "db">,
  ports: Pick<DomainPorts, "warmingOf">,
  orgId: string,
  record: R,
): Promise<ShownDomain<R>> {
  const [shown] = await showDomains(world, ports, orgId, [record]);
  return shown as ShownDomain<R>;
}

/** The summary of a check tells a domain that may send what its first days let through. */
export function withLimits<R extends DomainRecord & { summary: string }>(shown: ShownDomain<R>): ShownDomain<R> {
  const { verified, type, warming, summary } = shown;
  const sends = type === "outbound" || type === "both";
  return verified && sends && warming?.hint ? { ...shown, summary: `${summary} ${warming.hint}` } : shown;
}
