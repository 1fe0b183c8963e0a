// Telling other processes that there is work: NOTIFY from a connection of its own, coalesced to ten a second, never inside a
// producer's transaction (it would cost more than half of an accepting one's rate). A hint only: whoever waits polls too.
import type { World } from "../world.ts";

const EVERY_MS = 100;

export type Notify = () => void;

/** A function that may be called for every row; it costs nothing and never fails. The first call tells at once. */
export function notifierOn(world: Pick<World, "db" | "log">, channel: string): Notify {
  let timer: NodeJS.Timeout | null = null;
  let again = false;
  const send = (): void => {
    again = false;
    timer = setTimeout(() => {
      timer = null;
      if (again) send();
    }, EVERY_MS);
    timer.unref();
    world.db
      .query("select pg_notify($1, '')", [channel])
      .catch((err) => world.log.debug({ err, channel }, "other processes could not be notified; they poll"));
  };
  return () => {
    again = true;
    if (!timer) send();
  };
}
