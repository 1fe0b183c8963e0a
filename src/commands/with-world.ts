// For the commands that work on a database once.
import type { Config } from "../config.ts";
import { explainStart } from "../platform/process/start-problem.ts";
import { refuseOtherMasterKey } from "../platform/storage/master-key.ts";
import type { World } from "../platform/world.ts";
import { openWorld } from "../world.ts";
import { commandConfig, logBeside } from "./command-config.ts";

/** Opens the World of this machine's settings and closes it again. Throws where the database has another master key. */
export function withWorld(work: (world: World) => Promise<void>): Promise<void> {
  return withAnyKey(async (world) => {
    await refuseOtherMasterKey(world);
    await work(world);
  });
}

/** As `withWorld`, whatever master key the database has. */
export async function withAnyKey(work: (world: World) => Promise<void>): Promise<void> {
  const config = await commandConfig();
  const opened = await explained(config, openWorld(config, logBeside(config)));
  try {
    await work(opened.world);
  } finally {
    await opened.close();
  }
}

/** A start that fails says in a sentence what the operator can do. */
export async function explained<T>(config: Config, work: Promise<T>): Promise<T> {
  return await work.catch((error) => {
    throw explainStart(config, error);
  });
}
