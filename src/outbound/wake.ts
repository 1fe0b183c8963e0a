// Telling other processes that there is mail: NOTIFY from a connection of its own, coalesced to ten a second, never
// inside an accepting transaction (it would cost more than half of its rate). A lost one costs a second (the poll).
import type { World } from "../platform/world.ts";

export const CHANNEL = "postern_mta";
const EVERY_MS = 100;

export type Notify = () => void;

/** A function that may be called for every message. */
export function notifier(world: Pick<World, "db" | "log">, channel: string = CHANNEL): Notify {
  let timer: NodeJS.Timeout | null = null;
  let again = false;
  const send = (): void => {
    again = false;
    timer = setTimeout(() => {
      timer = null;
      if (again) send();
    }, EVERY_MS);
    timer.unref();
    world.db.query("select pg_notify($1, '')", [channel]).catch((err) => world.log.warn({ err }, "notify failed"));
  };
  return () => {
    again = true;
    if (!timer) send();
  };
}
