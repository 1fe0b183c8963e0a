// Wake-ups: hints only. A dispatcher in this process is rung directly, those of other processes by a NOTIFY
// (platform/database/notify.ts). Losing all of them costs the poll interval.
import type { Db } from "../platform/database/db.ts";
import { type Notify, notifierOn } from "../platform/database/notify.ts";
import type { World } from "../platform/world.ts";

export const CHANNEL = "postern_hooks";

export type Bell = {
  ring(): void;
  /** Resolves true at the next ring, at once if it rang since the last call; false after `ms`. */
  rang(ms: number): Promise<boolean>;
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
    rang(ms) {
      return new Promise((resolve) => {
        const settle = () => {
          clearTimeout(timer);
          listener = null;
          const noted = rung;
          rung = false;
          resolve(noted);
        };
        const timer = setTimeout(settle, ms);
        listener = settle;
        if (rung) settle();
      });
    },
  };
}

/** Who hears of queued webhooks: a dispatcher, or somebody who reads events (stream/stream.ts), beside whom other processes are notified, too. */
export type Hearer = "dispatcher" | "reader";
type Wakers = { bells: Map<Bell, Hearer>; tellOthers: Notify | null };

const wakers = new WeakMap<Db, Wakers>();

function wakersOf(db: Db): Wakers {
  let known = wakers.get(db);
  if (!known) {
    known = { bells: new Map(), tellOthers: null };
    wakers.set(db, known);
  }
  return known;
}

/** Rings `bell` whenever this process queues webhooks; returns how to stop that. */
export function listenInProcess(db: Db, bell: Bell, hearer: Hearer = "dispatcher"): () => void {
  const { bells } = wakersOf(db);
  bells.set(bell, hearer);
  return () => bells.delete(bell);
}

/** Says that webhooks were queued. To be called after the commit; costs nothing and never fails. */
export function wakeHooks(world: Pick<World, "db" | "log">): void {
  const state = wakersOf(world.db);
  let isDispatched = false;
  for (const [bell, hearer] of state.bells) {
    bell.ring();
    isDispatched ||= hearer === "dispatcher";
  }
  if (isDispatched) return;
  state.tellOthers ??= notifierOn(world, CHANNEL);
  state.tellOthers();
}
