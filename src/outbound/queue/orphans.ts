// Deliveries that this node owns and does not know of: a claim that was committed while its answer was lost with the
// connection, or was not read to its end. Nobody would send them until the node ends. What is unknown at two looks in a
// row goes back to the queue; one look alone could meet a claim or a hand-over that is just being answered.
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import { type Owned, ownedName } from "../types.ts";

const EVERY_MS = 10_000;

export type ForgottenParts = {
  node(): number;
  /** True if it is in this process's hands: waiting, on the wire, or with an outcome that is not yet recorded. */
  knows(key: Owned): boolean;
  /** Some went back to the queue. */
  returned(): void;
};

export type Forgotten = {
  /** One look; resolves with how many deliveries went back. */
  look(): Promise<number>;
  stop(): Promise<void>;
};

/** Looks every ten seconds. */
export function watchForgotten(world: Pick<World, "db" | "log">, parts: ForgottenParts): Forgotten {
  let suspects = new Set<string>();
  let running: Promise<unknown> = Promise.resolve();

  async function look(): Promise<number> {
    const node = parts.node();
    const owned = (await queries.ownedKeys(world.db, node)).map((row) => ({ ...row, owner: node }));
    const unknown = owned.filter((row) => !parts.knows(row));
    const forgotten = unknown.filter((row) => suspects.has(ownedName(row)));
    suspects = new Set(unknown.map(ownedName));
    if (forgotten.length === 0) return 0;
    world.log.warn(
      { node, deliveries: forgotten.length },
      "deliveries that this node owned without knowing are free again",
    );
    await queries.returnDeliveries(world.db, forgotten, new Date(0));
    parts.returned();
    return forgotten.length;
  }

  const timer = setInterval(() => {
    running = look().catch((err) => world.log.warn({ err }, "owned deliveries could not be looked at"));
  }, EVERY_MS);
  timer.unref();
  return {
    look,
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
