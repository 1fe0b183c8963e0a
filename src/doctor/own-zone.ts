// `postern dns zone`: the records of the service's own names, with the addresses and the key as they are now. Makes the
// key of the masked domain where there is none yet.
import { ensureMaskedKey } from "../masked/addresses/service-domain.ts";
import type { World } from "../platform/world.ts";
import { machineAddresses, readKnown, sendingAddresses } from "./sending-addresses.ts";
import { serviceRecords, type ZoneRecord, zoneFile } from "./zone.ts";

/** The rows and the zone file. Before the host name is in the DNS, the machine's own public addresses stand for it. */
export async function ownZone(
  world: Pick<World, "db" | "clock" | "random" | "seal" | "config" | "resolver">,
): Promise<{ records: ZoneRecord[]; text: string }> {
  const { config, resolver } = world;
  const masked_key = await ensureMaskedKey(world);
  const { pools } = await readKnown(world.db, config);
  const found = await sendingAddresses(config, resolver, pools);
  const isShared = found.some(({ ehlo }) => ehlo === config.hostname);
  const own = isShared ? [] : machineAddresses().map((ip) => ({ ip, ehlo: config.hostname }));
  const addresses = [...own, ...found];
  const records = serviceRecords(config, { addresses, masked_key });
  return { records, text: zoneFile(config, records, addresses) };
}
