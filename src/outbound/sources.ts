// Sending addresses. Every source has a name for EHLO; the shared one uses the machine's default address.
import type { World } from "../platform/world.ts";
import type { Source } from "./links.ts";
import { listSources } from "./node-queries.ts";

/** All sources by id. */
export async function findSources(world: Pick<World, "db" | "config">): Promise<Map<string, Source>> {
  const rows = await listSources(world.db);
  return new Map(rows.map((row) => [row.id, { id: row.id, ip: row.ip, ehlo: row.ehlo ?? world.config.hostname }]));
}
