// Telling other processes that there is mail. A lost word costs a second (the poll).
import { type Notify, notifierOn } from "../../platform/database/notify.ts";
import type { World } from "../../platform/world.ts";

export const CHANNEL = "postern_mta";

/** A function that may be called for every message. */
export function notifier(world: Pick<World, "db" | "log">): Notify {
  return notifierOn(world, CHANNEL);
}
