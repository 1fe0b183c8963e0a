// Every process looks whether an organization moves. It begins nothing more for one that does, waits until what it had begun is over,
// and says so: what the database holds then is all that there is of it.
import { findMoving, type Moving, noteSeen } from "../accounts/move-queries.ts";
import { within } from "../platform/clock.ts";
import { type RoundsWorld, startRounds } from "../platform/process/rounds.ts";
import type { World } from "../platform/world.ts";

type FollowWorld = Pick<World, "db" | "moves"> & RoundsWorld;

const EVERY_MS = 1_000;
/** Most of what had begun is over by then. */
const AT_ONCE_MS = 500;

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
  /** What had begun may take minutes: the rounds go on meanwhile, as the watchdog ends a process whose rounds stand still. */
  let waited: { moves: Moving[]; isOver: boolean } | null = null;
  return startRounds(world, {
    name: "organizations that move",
    every_ms: EVERY_MS,
    async round() {
      const fresh = (await look()).filter(({ org_id, is_seen }) => !is_seen && isWaiting(org_id));
      if (waited === null && fresh.length > 0) {
        const wait = { moves: fresh, isOver: false };
        waited = wait;
        const ended = world.moves.begunEnded().then(() => {
          wait.isOver = true;
        });
        await within(ended, AT_ONCE_MS, null);
      }
      if (!waited?.isOver) return;
      await noteSeen(world.db, waited.moves, process_id);
      waited = null;
    },
  });
}
