// Wake-ups: hints only. A dispatcher in this process is rung directly, those of other processes by a NOTIFY
// (platform/database/notify.ts). Losing all of them costs the poll interval.
import type { Db } from "../platform/database/db.ts";
import { type Notify, notifierOn } from "../platform/database/notify.ts";
import type { World } from "../platform/world.ts";

export const CHANNEL = "postern_hooks";

export type Bell = {
  ring(): void;
  /** Resolves true at the next ring, at once if it rang since the last call; false after `ms`. */
  heard(ms: number): Promise<boolean>;
};

/** A bell that remembers one ring. */
export function createBell(): Bell {
  let rung = false;
  let listener: (() => void) | null = null;
  return {
    ring() {
      rung = true;
      listener?.();
    },
    heard(ms) {
      return new Promise((resolve) => {
        const settle = () => {
          clearTimeout(timer);
          listener = null;
          const heard = rung;
          rung = false;
          resolve(heard);
        };
        const timer = setTimeout(settle, ms);
        listener = settle;
        if (rung) settle();
      });
    },
  };
}

type Wakers = { bells: Set<Bell>; tellOthers: Notify | null };

const wakers = new WeakMap<Db, Wakers>();

function wakersOf(db: Db): Wakers {
  let known = wakers.get(db);
  if (!known) {
    known = { bells: new Set(), tellOthers: null };
    wakers.set(db, known);
  }
  return known;
}

/** Rings `bell` whenever this process queues webhooks; returns how to stop that. */
export function listenInProcess(db: Db, bell: Bell): () => void {
  const { bells } = wakersOf(db);
  bells.add(bell);
  return () => bells.delete(bell);
}

/** Says that webhooks were queued. To be called after the commit; costs nothing and never fails. */
export function wakeHooks(world: Pick<World, "db" | "log">): void {
  const state = wakersOf(world.db);
  for (const bell of state.bells) bell.ring();
  if (state.bells.size > 0) return;
  state.tellOthers ??= notifierOn(world, CHANNEL);
  state.tellOthers();
}
