// Wake-ups: hints only. A dispatcher in this process is rung directly, those of other processes by a NOTIFY from a
// connection of its own, never inside a producer's transaction and at most ten a second. Losing all of them costs the
// poll interval.
import type { Db } from "../platform/db.ts";
import type { World } from "../platform/world.ts";

export const CHANNEL = "postern_hooks";
const NOTIFY_EVERY_MS = 100;

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

type Wakers = { bells: Set<Bell>; notified_ms: number; pending: boolean };

const wakers = new WeakMap<Db, Wakers>();

function wakersOf(db: Db): Wakers {
  let known = wakers.get(db);
  if (!known) {
    known = { bells: new Set(), notified_ms: Number.NEGATIVE_INFINITY, pending: false };
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
export function wakeHooks(world: Pick<World, "db" | "clock" | "log">): void {
  const state = wakersOf(world.db);
  if (state.bells.size > 0) {
    for (const bell of state.bells) bell.ring();
    return;
  }
  if (state.pending) return;
  state.pending = true;
  const waitMs = state.notified_ms + NOTIFY_EVERY_MS - world.clock.monotonic();
  if (waitMs <= 0) notify(world, state);
  else setTimeout(() => notify(world, state), waitMs).unref();
}

function notify(world: Pick<World, "db" | "clock" | "log">, state: Wakers): void {
  state.pending = false;
  state.notified_ms = world.clock.monotonic();
  world.db
    .query("select pg_notify($1, '')", [CHANNEL])
    .catch((err) => world.log.debug({ err }, "other processes could not be notified; they poll"));
}
