// A semaphore that is shared fairly between tenants. A lone tenant may hold at most half of the places, several have equal
// shares, and a newcomer begins at once, however long the others stay.
import { createRotation, type Rotation } from "./rotation.ts";
import { mayTakeMore } from "./share.ts";

export type FairPlaces = {
  /**
   * Resolves to a function that must be called once when done; null when as many of `who` wait already as may, or the signal
   * came first.
   */
  enter(who: string, signal?: AbortSignal): Promise<(() => void) | null>;
  /** The same for somebody who does not wait: null when no place is free. */
  enterNow(who: string): (() => void) | null;
};

export type FairLimits = {
  places: number;
  /** How many may wait, of each. */
  waiting_max: number;
};

/** Somebody who waits: called with whether it is their turn. */
type Waiting = { who: string; settle: (entered: boolean) => void };

/** Places that are taken and given back; those of one organization at half of them at most. */
export function createFairPlaces({ places, waiting_max }: FairLimits): FairPlaces {
  const held = new Map<string, number>();
  const waiting = createRotation<Waiting>();
  let taken = 0;

  const mayEnter = (who: string): boolean => mayTakeMore(held.get(who) ?? 0, { max: places, taken });

  function take(who: string): void {
    taken += 1;
    held.set(who, (held.get(who) ?? 0) + 1);
  }

  function leave(who: string): void {
    taken -= 1;
    const left = (held.get(who) ?? 0) - 1;
    if (left > 0) held.set(who, left);
    else held.delete(who);
    admit();
  }

  /** One of each in turn, as long as there is a place for it. */
  function admit(): void {
    while (taken < places) {
      const next = waiting.next(mayEnter);
      if (next === null) return;
      take(next.who);
      next.settle(true);
    }
  }

  function turnOf(who: string, signal?: AbortSignal): Promise<boolean> {
    if (waiting.sizeOf(who) >= waiting_max || signal?.aborted) return Promise.resolve(false);
    return standIn(waiting, who, signal);
  }

  function leaver(who: string): () => void {
    let open = true;
    return () => {
      if (open) leave(who);
      open = false;
    };
  }

  function enterNow(who: string): (() => void) | null {
    if (waiting.sizeOf(who) > 0 || !mayEnter(who)) return null;
    take(who);
    return leaver(who);
  }

  return {
    enterNow,
    async enter(who, signal) {
      const now = signal?.aborted ? null : enterNow(who);
      return now ?? ((await turnOf(who, signal)) ? leaver(who) : null);
    },
  };
}

/** Resolves to true when its turn comes, to false when the signal comes first. */
function standIn(waiting: Rotation<Waiting>, who: string, signal: AbortSignal | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    const giveUp = (): void => settle(false);
    const settle = (entered: boolean): void => {
      signal?.removeEventListener("abort", giveUp);
      waiting.remove(who, one);
      resolve(entered);
    };
    const one: Waiting = { who, settle };
    waiting.add(who, one);
    signal?.addEventListener("abort", giveUp, { once: true });
  });
}

export type FairGate = <T>(who: string, task: () => Promise<T>) => Promise<T>;

/** A gate with `places`. What waits is the caller's to limit. */
export function createFairGate(places: number): FairGate {
  const { enter, enterNow } = createFairPlaces({ places, waiting_max: Number.POSITIVE_INFINITY });
  return async (who, task) => {
    const leave = enterNow(who) ?? (await enter(who));
    try {
      return await task();
    } finally {
      leave?.();
    }
  };
}
