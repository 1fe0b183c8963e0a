// What every command that works on a database once begins with.
import { type Config, findConfig, readConfig } from "../config.ts";
import type { User } from "../platform/postgres/own-user.ts";
import { becomeOwner } from "../platform/process/leave-root.ts";
import { createLog, type Log } from "../platform/process/log.ts";

/** Root does not write in a folder of another user: it becomes that user, once `asRoot` has made what only root can make. */
export async function commandConfig(asRoot?: (user: User) => Promise<void>): Promise<Config> {
  await becomeOwner(findConfig(), asRoot);
  return readConfig();
}

/**
 * A log on standard error, for a command whose answer is on standard output: that is taken as it is (`KEY=$(postern
 * keys create …)`).
 */
export function logBeside(config: Config): Log {
  const destination = { write: (line: string) => void process.stderr.write(line) };
  return createLog({ level: config.log_level, role: "postern", destination });
}
