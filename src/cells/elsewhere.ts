// Is a domain another cell's? A mail for two cells comes through the door to the cell of its first recipient, which must not turn the
// other away for good (find-cell.ts says whose it is).

import { askOperatorUrl } from "../platform/net/operator-fetch.ts";
import { addressOf } from "../platform/net/places.ts";
import type { World } from "../platform/world.ts";
import { owns } from "./owns.ts";

/** Asked while a sender waits for its answer to RCPT. */
const ANSWER_MS = 5_000;

/** `fresh`: what the door found before does not count. Null where it cannot be known now; rejects where the database does not answer. False without POSTERN_CELLS_DOOR: there are no other cells then. */
export async function isElsewhere(
  world: Pick<World, "config" | "db" | "seal" | "clock" | "moves">,
  domain: string,
  { fresh = false }: { fresh?: boolean } = {},
): Promise<boolean | null> {
  if (world.config.cells_door === null) return false;
  // Here, but no mail comes to it: no other cell takes it.
  if ((await owns(world, { kind: "domain", value: domain })) !== "no") return false;
  const answer = await where(world, domain, fresh);
  return answer?.cell === undefined ? null : answer.cell !== null;
}

/**
 * True if another cell holds the domain, which moves away from here. Null where that cannot be known now; false without
 * a door.
 */
export async function hasArrived(world: Pick<World, "config">, domain: string): Promise<boolean | null> {
  if (world.config.cells_door === null) return false;
  const answer = await where(world, domain, true);
  return answer?.cell === undefined ? null : answer.cell !== null && answer.moving !== true;
}

async function where({ config }: Pick<World, "config">, domain: string, fresh: boolean) {
  if (config.cells_door === null) return null;
  const asked = new URLSearchParams({ domain, ...(fresh ? { fresh: "1" } : {}) });
  const url = `http://${addressOf(config.cells_door)}/where?${asked}`;
  return (await askOperatorUrl(url, ANSWER_MS)) as { cell?: unknown; moving?: unknown } | null;
}
