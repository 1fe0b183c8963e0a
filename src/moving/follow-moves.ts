// Every process looks whether an organization moves. It begins nothing more for one that does, waits until what it had begun is over,
// and says so: what the database holds then is all that there is of it.
import { findMoving, noteSeen } from "../accounts/move-queries.ts";
import { type RoundsWorld, startRounds } from "../platform/process/rounds.ts";
import type { World } from "../platform/world.ts";

type FollowWorld = Pick<World, "db" | "moves"> & RoundsWorld;

const EVERY_MS = 1_000;

/**
 * Begins once it is known what moves now, so that nothing is let in before. `isWaiting`: of the engine that sends in this process; true
 * where none does.
 */
export async function followMoves(
  world: FollowWorld,
  process_id: string,
  isWaiting: (orgId: string) => boolean = () => true,
): Promise<{ stop(): Promise<void> }> {
  const look = async () => {
    const moving = await findMoving(world.db, process_id);
    world.moves.know(moving.map(({ org_id }) => org_id));
    return moving;
  };
  await look();
  return startRounds(world, {
    name: "organizations that move",
    every_ms: EVERY_MS,
    async round() {
      const fresh = (await look()).filter(({ org_id, is_seen }) => !is_seen && isWaiting(org_id));
      if (fresh.length === 0) return;
      await world.moves.begunEnded();
      await noteSeen(
        world.db,
        fresh.map(({ org_id }) => org_id),
        process_id,
      );
    },
  });
}
